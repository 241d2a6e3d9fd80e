// SPDX-License-Identifier: Apache-2.0
#include "new_job/table/roles.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/text.h"
#include "host/cli/cli.h"
#include "new_job/job_text.h"

namespace tenon::new_job {

namespace {

constexpr int64_t kMostNames = 10'000;  // rows of a table of vectors

Column left_out(const std::string& why) {
  Column column;
  column.why = why;
  return column;
}

// Whether the name is that of a number for each row: "id", "PassengerId", "customer_id", "Unnamed: 0", "rownames".
bool is_id_name(const std::string& name) {
  std::string small;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) small += static_cast<char>(std::tolower(c));
  for (const char* const usual : {"id", "index", "idx", "row", "rowname", "rownames", "unnamed0", "uuid", "guid", "c0"})
    if (small == usual) return true;
  return name.ends_with("_id") || name.ends_with("Id") || name.ends_with("ID") || name.ends_with(" id");
}

// Whether the farthest numbers are much farther from the middle than those between the quartiles.
bool has_tail(const NumberStatistics& numbers, double* unit) {
  constexpr double kFar = 6;  // a normal distribution has 1.7, an exponential one 3.6
  const std::vector<double> sample = numbers.sample();
  constexpr size_t kFewest = 50;
  if (sample.size() < kFewest) return false;
  const auto quantile = [&](double share) {
    return sample[static_cast<size_t>(share * static_cast<double>(sample.size() - 1))];
  };
  const double middle = quantile(0.5), range = quantile(0.75) - quantile(0.25);
  const double far = std::max(quantile(0.99) - middle, middle - quantile(0.01));
  std::vector<double> sizes;
  for (const double number : sample)
    if (number != 0) sizes.push_back(std::fabs(number));
  if (sizes.empty()) return false;
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(sizes.size() / 2), sizes.end());
  *unit = sizes[sizes.size() / 2];
  const double largest = std::max(std::fabs(numbers.low), std::fabs(numbers.high));
  if (range == 0) return far > 0 && largest > 10 * *unit;
  return far > kFar * range;
}

Column number(const ColumnSummary& summary, const Table& table) {
  const NumberStatistics& numbers = summary.numbers;
  const bool different =
      summary.texts.overflowed() || static_cast<int64_t>(summary.texts.counts().size()) == table.records;
  if (numbers.low == numbers.high && summary.missing == 0)
    return left_out("it is " + shown(numbers.low) + " in every row");
  const bool unique = different && summary.missing == 0;
  if (numbers.all_whole && unique && numbers.counting && (numbers.low == 0 || numbers.low == 1))
    return left_out("it numbers the rows");
  if (numbers.all_whole && unique && is_id_name(summary.name)) return left_out("it names the rows");
  constexpr double kMost = 1e37;  // of float32, with room for sums
  if (std::max(std::fabs(numbers.low), std::fabs(numbers.high)) > kMost)
    return left_out("its numbers reach " + shown(std::fabs(numbers.high) > kMost ? numbers.high : numbers.low) +
                    ", too far for float32");
  Column column;
  column.role = summary.missing > 0 ? Role::kGap : Role::kNumber;
  if (has_tail(numbers, &column.unit)) column.role = Role::kTail;
  return column;
}

Column text(const ColumnSummary& summary) {
  Column column;
  column.role = Role::kText;
  const int64_t words = summary.words.overflowed() ? kMostNames : summary.words.at_least(2) + 1;
  column.names = std::min(words, kMostNames);
  if (column.names < 2) return left_out("no word of it occurs twice");
  return column;
}

// Whether the texts have several words, and are too many for categories.
bool is_text(const ColumnSummary& summary) {
  const auto different = static_cast<int64_t>(summary.texts.counts().size());
  const bool many = summary.texts.overflowed() || (different > 20 && different * 5 > summary.values());
  return summary.count_words && many && summary.words_of_a_text() >= 2;
}

bool is_list(const ColumnSummary& summary) {
  if (summary.count_parts == '\0' || summary.parts.overflowed()) return false;
  const auto parts = static_cast<int64_t>(summary.parts.counts().size());
  const auto different = static_cast<int64_t>(summary.texts.counts().size());
  const bool fewer = summary.texts.overflowed() || parts * 2 < different;
  return summary.separated(summary.count_parts) >= 0.3 && fewer && parts >= 2 && parts <= kMostNames;
}

// missing: texts that mean missing, besides those of means_missing.
Column category(const ColumnSummary& summary, const std::set<std::string>& missing) {
  Column column;
  column.role = Role::kCategory;
  const auto different = static_cast<int64_t>(summary.texts.counts().size());
  if (different == 1 && summary.missing == 0)
    return left_out("it is " + files::quoted(summary.texts.counts().begin()->first) + " in every row");
  if (summary.texts.overflowed() || different * 2 > summary.values())
    return left_out("it has " + (summary.texts.overflowed() ? "too many" : std::to_string(different)) +
                    " different texts in " + counted(summary.values(), "row") + ", names rather than categories");
  int64_t kept = summary.texts.at_least(2);
  for (const std::string& text : missing) {
    const auto at = summary.texts.counts().find(text);
    kept -= at != summary.texts.counts().end() && at->second >= 2 ? 1 : 0;
  }
  if (kept == 0) return left_out("no text of it occurs twice");
  column.names = std::min(kept, kMostNames) + 1;
  return column;
}

// Whether all but a few texts are numbers, so that the others mean missing.
bool is_number_with_others(const ColumnSummary& summary) {
  constexpr size_t kMostOthers = 5, kManyNumbers = 20;
  if (summary.others == 0) return true;
  const bool many = summary.texts.overflowed() || summary.texts.counts().size() > kManyNumbers;
  return many && !summary.other_texts.overflowed() && summary.other_texts.counts().size() <= kMostOthers &&
         summary.others * 5 <= summary.values();
}

Column column_of(const ColumnSummary& summary, const Table& table, const Target& target, const Request& request,
                 std::set<std::string>& missing_texts) {
  const auto& asked = request.left_out;
  if (&summary == target.column) {
    Column column;
    column.role = Role::kTarget;
    return column;
  }
  if (std::find(asked.begin(), asked.end(), summary.name) != asked.end()) return left_out("as --leave-out says");
  if (summary.name.find('"') != std::string::npos) return left_out("its name has a quote in it");
  if (summary.values() == 0) return left_out("it has no values");
  if (is_number_with_others(summary)) {
    const auto& classes = target.column->texts.counts();
    const auto is_class = [&](const auto& other) { return classes.contains(other.first); };
    const auto& others = summary.other_texts.counts();
    if (std::none_of(others.begin(), others.end(), is_class)) {
      for (const auto& [other, count] : others) missing_texts.insert(other);
      Column column = number(summary, table);
      if (!others.empty() && column.role == Role::kNumber) column.role = Role::kGap;
      return column;
    }
  }
  if (summary.numbers.count == 0 && summary.dates.any()) {
    Column column;
    column.role = Role::kDate;
    return column;
  }
  if (is_list(summary)) {
    Column column;
    column.role = Role::kList;
    column.separator = summary.count_parts;
    column.names = std::min(summary.parts.at_least(2), kMostNames) + 1;
    return column;
  }
  return is_text(summary) ? text(summary) : category(summary, missing_texts);
}

// Returns the name with signs that names of layers need not have replaced, and another one where it is in use.
std::string slot_name(const std::string& name, std::set<std::string>& used) {
  std::string plain;
  for (const char c : name) plain += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  if (plain.empty() || std::isdigit(static_cast<unsigned char>(plain[0])) != 0) plain = "c_" + plain;
  std::string result = plain;
  for (int number = 2; !used.insert(result).second; ++number) result = plain + "_" + std::to_string(number);
  return result;
}

}  // namespace

std::vector<const Column*> Roles::with(Role role) const {
  std::vector<const Column*> result;
  for (const Column& column : columns)
    if (column.role == role) result.push_back(&column);
  return result;
}

bool Roles::tails_have_gaps() const {
  return std::any_of(columns.begin(), columns.end(), [](const Column& column) {
    return column.role == Role::kTail && column.summary->missing + column.summary->others > 0;
  });
}

Roles roles_of(const Table& table, const Target& target, const Request& request) {
  Roles roles;
  std::set<std::string> texts;
  for (const ColumnSummary& summary : table.columns) {
    for (const auto& [missing, count] : summary.missing_texts) texts.insert(missing);
    (void)column_of(summary, table, target, request, texts);
  }
  for (const ColumnSummary& summary : table.columns) {  // again, with the missing texts of all columns
    Column column = column_of(summary, table, target, request, texts);
    column.summary = &summary;
    roles.columns.push_back(column);
  }
  roles.missing_texts.assign(texts.begin(), texts.end());
  // The names of the layers and slots that the job has whatever the table is.
  std::set<std::string> used = {"numbers",  "gaps",  "tails",   "tail_units", "tail_logs", "columns",
                                "units",    "near",  "x",       "hidden1",    "hidden2",   "wide",
                                "score",    "label", "cost",    "chance",     "class",     "prediction",
                                "accuracy", "auc",   "quality", "r2",         "error"};
  for (Column& column : roles.columns)
    if (column.role >= Role::kCategory) column.slot = slot_name(column.summary->name, used);
  const bool any = std::any_of(roles.columns.begin(), roles.columns.end(),
                               [](const Column& column) { return column.role >= Role::kNumber; });
  if (any) return roles;
  const auto reason = [](const Column& column) { return files::quoted(column.summary->name) + ": " + column.why; };
  std::vector<std::string> reasons;
  for (const Column& column : roles.columns)
    if (column.role == Role::kLeftOut) reasons.push_back(reason(column));
  throw cli::Failure(cli::kBadConfig, "no column is left to predict " + files::quoted(target.column->name) + " from" +
                                          (reasons.empty() ? "" : ": " + base::joined(reasons, {}, "; ")));
}

}  // namespace tenon::new_job
