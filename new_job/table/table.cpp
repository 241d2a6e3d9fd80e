// SPDX-License-Identifier: Apache-2.0
#include "new_job/table/table.h"

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "base/text.h"
#include "host/cli/cli.h"

namespace tenon::new_job {

namespace {

using cli::Failure;

// Reads the records of the files, by the columns of the first one.
class Reading {
 public:
  Reading(files::Lines& lines, const Form& form) : lines_(lines), form_(form), splitter_(form) {}

  // Calls each(fields, line) for the records, until it returns false.
  template <typename Each>
  void for_each(const Each& each) {
    for (size_t file = 0; file < lines_.files(); ++file) {
      bool more = true;
      find_places(file);
      bool first = form_.header;
      lines_.for_each_of(file, [&](const files::Line& line) {
        if (line.text.empty() || std::exchange(first, false)) return true;
        cut(line);
        for (size_t i = 0; i < places_.size(); ++i) ordered_[i] = &fields_[places_[i]];
        return more = each(ordered_, line);
      });
      if (!more) return;
    }
  }

 private:
  void cut(const files::Line& line) {
    if (const char* const why = splitter_.split(line.text, fields_)) throw lines_.failure(line, why);
    const bool trails = fields_.size() == expected_ + 1 && fields_.back().empty() && form_.header;
    if (fields_.size() != expected_ && !trails)
      throw lines_.failure(line, "expected " + std::to_string(expected_) + " fields, as in the first line, got " +
                                     std::to_string(fields_.size()));
  }
  // Finds where the columns stand in a file.
  void find_places(size_t file) {
    places_.clear();
    ordered_.resize(form_.names.size());
    expected_ = form_.names.size();
    std::vector<std::string> names = form_.names;
    if (file > 0 && form_.header) {
      lines_.for_each_of(file, [&](const files::Line& line) {
        if (line.text.empty()) return true;
        if (const char* const why = splitter_.split(line.text, names)) throw lines_.failure(line, why);
        for (size_t i = 0; i < names.size(); ++i)
          if (names[i].empty()) names[i] = "c" + std::to_string(i);
        return false;
      });
      expected_ = names.size();
    }
    for (const std::string& name : form_.names) {
      const auto at = std::find(names.begin(), names.end(), name);
      if (at == names.end())
        throw tn::Failure(TN_BAD_DATA, lines_.path(file),
                          "its header has no column \"" + name + "\", unlike that of " + lines_.path(0));
      places_.push_back(static_cast<size_t>(at - names.begin()));
    }
  }

  files::Lines& lines_;
  const Form& form_;
  Splitter splitter_;
  size_t expected_ = 0;
  std::vector<size_t> places_;  // of the columns, in the fields of a record
  std::vector<std::string> fields_;
  std::vector<const std::string*> ordered_;
};

std::vector<ColumnSummary> empty_columns(const Form& form) {
  // Fewer texts of each column where there are many columns: a bound of the memory of all.
  const size_t most = std::clamp<size_t>(2'000'000 / form.names.size(), 1000, 20'000);
  std::vector<ColumnSummary> columns;
  for (const std::string& name : form.names) columns.emplace_back(name, most);
  return columns;
}

// Chooses, from the first records, the columns whose words or parts are counted.
void choose_counts(files::Lines& lines, const Form& form, std::vector<ColumnSummary>& columns) {
  constexpr int64_t kMostRecords = 1000;
  std::vector<ColumnSummary> first = empty_columns(form);
  const csv::NumberForm numbers = form.numbers();
  int64_t records = 0;
  Reading(lines, form).for_each([&](const std::vector<const std::string*>& fields, const files::Line&) {
    for (size_t i = 0; i < fields.size(); ++i) first[i].see(*fields[i], numbers);
    return ++records < kMostRecords;
  });
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnSummary& column = first[i];
    if (column.others * 2 < column.values() || column.dates.any()) continue;
    columns[i].count_words = column.words_of_a_text() >= 2;
    for (const char separator : ColumnSummary::kSeparators)
      if (columns[i].count_parts == '\0' && column.separated(separator) >= 0.3) columns[i].count_parts = separator;
  }
}

void check_names(const Form& form, const std::string& path) {
  std::set<std::string> names;
  for (const std::string& name : form.names) {
    if (const char* const fault = files::name_fault(name))
      throw tn::Failure(TN_BAD_DATA, path, "the name of a column, " + files::quoted(name) + ", " + fault);
    if (!names.insert(name).second)
      throw tn::Failure(TN_BAD_DATA, path, "two columns are named " + files::quoted(name));
  }
}

void read_all(files::Lines& lines, Table& table) {
  table.columns = empty_columns(table.form);
  table.records = 0;
  choose_counts(lines, table.form, table.columns);
  const csv::NumberForm numbers = table.form.numbers();
  Reading(lines, table.form).for_each([&](const std::vector<const std::string*>& fields, const files::Line&) {
    for (size_t i = 0; i < fields.size(); ++i) table.columns[i].see(*fields[i], numbers);
    ++table.records;
    return true;
  });
}

bool is_utf8(const Table& table) {
  return std::all_of(table.columns.begin(), table.columns.end(),
                     [](const ColumnSummary& column) { return column.is_utf8; });
}

void check_column(const Table& table, const std::string& name, const std::string& option) {
  std::vector<std::string> names;
  for (const ColumnSummary& column : table.columns) names.push_back(column.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::string header =
      table.form.header ? "" : "; the first line looks like a record, so that the columns have numbers for names";
  throw Failure(cli::kUsage,
                option + ": the table has no column \"" + name + "\"" + base::suggestion(name, names) + header);
}

}  // namespace

Table table_of(const Request& request) {
  Table table;
  const std::string& path = request.data.front();
  files::Lines lines = open_lines(request.data);
  table.form = form_of(lines, request.target);
  check_names(table.form, path);
  read_all(lines, table);
  if (!table.form.latin1 && !is_utf8(table)) {
    table.form.latin1 = true;
    read_all(lines, table);
  }
  if (table.records == 0)
    throw Failure(cli::kBadData, path + ": has a header and no records; expected rows to learn from");
  if (request.target.empty()) {
    const auto name = [](const ColumnSummary& column) { return column.name; };
    std::vector<std::string> names;
    std::transform(table.columns.begin(), table.columns.end(), std::back_inserter(names), name);
    throw Failure(cli::kUsage, "expected --target COLUMN, what the model is to predict; the columns are: " +
                                   base::listed(names) + "; see 'tenon new job --help'");
  }
  check_column(table, request.target, "--target");
  for (const std::string& name : request.left_out) check_column(table, name, "--leave-out");
  return table;
}

}  // namespace tenon::new_job
