// SPDX-License-Identifier: Apache-2.0
#include "new_job/table/slots.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "host/cli/cli.h"
#include "new_job/recipe.h"

namespace tenon::new_job {

namespace {

constexpr size_t kMostComments = 40;  // columns of one slot that have a comment each

// Returns the name as an entry of "columns" states it.
std::string name_in_entry(const std::string& name) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ' ' || c == '-' || c == '(' || c == ')';
  };
  const bool plain = std::all_of(name.begin(), name.end(), is_plain) && name.front() != ' ' && name.back() != ' ';
  return plain ? name : "\"" + name + "\"";
}

// Returns "first..last" for columns that follow one another in the file, and names for the others.
std::string names_in_entry(const std::vector<const Column*>& columns) {
  std::string result;
  constexpr size_t kFewest = 3;  // of a range
  for (size_t i = 0; i < columns.size();) {
    size_t end = i + 1;  // Column and its neighbours lie in one array, in the order of the file
    while (end < columns.size() && columns[end] == columns[end - 1] + 1) ++end;
    if (end - i < kFewest) end = i + 1;
    const std::string first = name_in_entry(columns[i]->summary->name);
    const bool range = end - i > 1;
    base::append(result, range ? first + ".." + name_in_entry(columns[end - 1]->summary->name) : first);
    i = end;
  }
  return result;
}

std::string range_of(const Column& column) {
  const NumberStatistics& numbers = column.summary->numbers;
  return shown(numbers.low) + " to " + shown(numbers.high) + ", mean " + shown(numbers.mean);
}

std::string missing_of(const Column& column, const Table& table) {
  const int64_t missing = table.records - column.summary->numbers.count;
  return missing == 0 ? "" : ", missing in " + per_cent(missing, table.records);
}

// Writes the entry of a slot of numbers, with a comment for each column.
void write_numbers(JobText& job, const Table& table, const std::vector<const Column*>& columns,
                   const std::string& about, const std::string& slot, const std::string& options) {
  if (columns.empty()) return;
  job.comment(about, 2);
  for (size_t i = 0; i < columns.size() && i < kMostComments; ++i)
    job.comment(
        "  " + cli::plain(columns[i]->summary->name) + ": " + range_of(*columns[i]) + missing_of(*columns[i], table),
        2);
  if (columns.size() > kMostComments)
    job.comment("  and " + std::to_string(columns.size() - kMostComments) + " more", 2);
  job.line("  " + toml_text(slot + " = " + names_in_entry(columns) + ": f32 " + options) + ",");
}

// Returns the entry of a slot of one column: "name: type", or "slot = name: type".
std::string entry(const Column& column, const std::string& type) {
  const std::string name = name_in_entry(column.summary->name);
  return toml_text((column.slot == name ? "" : column.slot + " = ") + name + ": " + type);
}

// Returns the most frequent texts of a category, for a comment.
std::string examples(const TextCounts& texts) {
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [text, count] : texts.counts()) sorted.emplace_back(-count, text);
  constexpr size_t kShown = 4;
  std::sort(sorted.begin(), sorted.end());
  std::string result;
  for (size_t i = 0; i < sorted.size() && i < kShown; ++i) base::append(result, files::quoted(sorted[i].second));
  return result + (sorted.size() > kShown ? ", ..." : "");
}

void write_category(JobText& job, const Table& table, const Column& column) {
  const ColumnSummary& summary = *column.summary;
  const auto different = static_cast<int64_t>(summary.texts.counts().size());
  const int64_t rare = different - (column.names - 1);
  const std::string others = rare == 0 ? "" : "; rare ones (" + std::to_string(rare) + ") share a number";
  const std::string missing =
      summary.missing == 0 ? "" : "; " + per_cent(summary.missing, table.records) + " are missing";
  job.comment(cli::plain(summary.name) + ": " + std::to_string(different) + " categories, " + examples(summary.texts) +
                  others + missing,
              2);
  job.line("  " + entry(column, "category least 2 most " + std::to_string(column.names - 1) + " missing value") + ",");
}

void write_list(JobText& job, const Column& column) {
  job.comment(cli::plain(column.summary->name) + ": several of " + std::to_string(column.names - 1) +
                  " categories in a field, such as " + examples(column.summary->parts),
              2);
  job.line("  " +
           entry(column, std::string("category list(") + column.separator + ") least 2 most " +
                             std::to_string(column.names - 1)) +
           ",");
}

void write_date(JobText& job, const Column& column) {
  const DateForms& dates = column.summary->dates;
  job.comment(cli::plain(column.summary->name) + ": dates" +
                  (dates.is_ambiguous() ? ", of which the form is a guess: is the month where it is sought?" : ""),
              2);
  const std::string missing = " missing value indicator";
  job.line("  " + entry(column, dates.type() + " " + base::joined(dates.parts(), {}, " ") + missing) + ",");
}

void write_text(JobText& job, const Column& column) {
  job.comment(cli::plain(column.summary->name) + ": texts of " + shown(column.summary->words_of_a_text()) +
                  " words; words that occur once count as unknown",
              2);
  job.line("  " + entry(column, "words lower least 2 most " + std::to_string(column.names)) + ",");
}

void write_target(JobText& job, const Table& table, const Target& target) {
  const ColumnSummary& column = *target.column;
  const int64_t missing = table.records - target.rows;
  const std::string left_out =
      missing == 0 ? "" : "; it is missing in " + counted(missing, "row") + ", which are left out";
  const std::string what = target.classes ? std::to_string(target.count()) + " classes"
                                          : range_of({&column, Role::kTarget, {}, 0, {}, 1, '\0'});
  job.comment("What is predicted: " + cli::plain(column.name) + ", " + what + left_out + ".", 2);
  const std::string type = target.classes ? "category" : "f32";
  job.line("  " + toml_text("label = " + name_in_entry(column.name) + ": " + type + " missing skip") + ",");
}

void write_left_out(JobText& job, const Roles& roles) {
  const std::vector<const Column*> columns = roles.with(Role::kLeftOut);
  if (columns.empty()) return;
  job.comment("Left out:", 2);
  for (size_t i = 0; i < columns.size() && i < kMostComments; ++i)
    job.comment("  " + cli::plain(columns[i]->summary->name + ": " + columns[i]->why), 2);
  if (columns.size() > kMostComments)
    job.comment("  and " + std::to_string(columns.size() - kMostComments) + " more", 2);
}

void write_columns(JobText& job, const Table& table, const Target& target, const Roles& roles) {
  job.line("columns = [");
  write_numbers(job, table, roles.with(Role::kNumber), "Numbers. In new data the mean stands for what is missing.",
                "numbers", "missing mean");
  write_numbers(job, table, roles.with(Role::kGap),
                "Numbers with gaps: the mean stands for what is missing, and an indicator (1 or 0) says so.", "gaps",
                "missing mean indicator");
  write_numbers(job, table, roles.with(Role::kTail),
                "Numbers of which a few are far larger than the others; their logarithms are used (tail_logs).",
                "tails", roles.tails_have_gaps() ? "missing median indicator" : "missing median");
  for (const Column& column : roles.columns) {
    if (column.role == Role::kCategory) write_category(job, table, column);
    if (column.role == Role::kList) write_list(job, column);
    if (column.role == Role::kDate) write_date(job, column);
    if (column.role == Role::kText) write_text(job, column);
  }
  write_target(job, table, target);
  write_left_out(job, roles);
  job.line("]");
}

void write_form(JobText& job, const Form& form, const Roles& roles) {
  if (form.delimiter != ',') job.key("delimiter", toml_text(std::string(1, form.delimiter)));
  if (!form.header) job.line("header = false  # the first line is a record; the columns are c0, c1, ...");
  if (form.latin1) job.key("encoding", "\"latin1\"");
  if (form.decimal != '.') job.key("decimal", toml_text(std::string(1, form.decimal)));
  if (!form.thousands.empty()) job.key("thousands", toml_text(form.thousands));
  if (!roles.missing_texts.empty()) {
    job.comment("Texts that mean a missing value, like the empty text.");
    job.key("missing_texts", toml_texts(roles.missing_texts));
  }
}

}  // namespace

void write_readers(JobText& job, const Table& table, const Target& target, const Roles& roles, const Request& request,
                   int64_t batch) {
  job.line();
  job.line("[reader.train]");
  job.key("type", "\"csv\"");
  std::vector<std::string> paths;
  for (const std::string& path : request.data) paths.push_back(request.path_in_job(path));
  job.key("files", toml_texts(paths));
  write_form(job, table.form, roles);
  write_columns(job, table, target, roles);
  job.key("batch", std::to_string(batch));
  job.key("shuffle", "true");
  write_split(job, request, "rows");
}

}  // namespace tenon::new_job
