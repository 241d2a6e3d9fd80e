// SPDX-License-Identifier: Apache-2.0
#include "new_job/table/target.h"

#include <algorithm>
#include <cmath>

#include "file.h"
#include "host/cli/cli.h"
#include "new_job/job_text.h"

namespace tenon::new_job {

namespace {

using cli::Failure;

constexpr int64_t kMostClasses = 1000;
constexpr size_t kFewNumbers = 20;  // so few different whole numbers may be classes
constexpr int64_t kFewestRows = 10;

// Sorts by frequency, equally frequent ones by their bytes.
std::vector<std::pair<std::string, int64_t>> sorted(const TextCounts& texts) {
  std::vector<std::pair<std::string, int64_t>> counts(texts.counts().begin(), texts.counts().end());
  std::sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return counts;
}

// Whether the classes are a quantity, as far as the data shows.
bool is_quantity(const ColumnSummary& column, const Request& request) {
  if (!request.task.empty()) return request.task == "regression";
  const size_t different = column.texts.counts().size();
  const bool many = column.texts.overflowed() || different > kFewNumbers;
  if (column.others > 0) return many && column.others * 5 < column.numbers.count;  // target_of names the others
  if (many) return true;
  if (different <= 2) return false;
  if (!column.numbers.all_whole) return true;
  throw Failure(cli::kUsage, "the target " + files::quoted(column.name) + " has " + std::to_string(different) +
                                 " different whole numbers, from " + shown(column.numbers.low) + " to " +
                                 shown(column.numbers.high) +
                                 ": classes or a quantity? Say --task classification or --task regression");
}

// Throws unless the values can be a quantity.
void check_quantity(const ColumnSummary& column) {
  const std::string name = "the target " + files::quoted(column.name);
  const auto& texts = column.other_texts;
  if (column.others > 0)
    throw Failure(cli::kBadConfig,
                  name + ": a quantity needs numbers, but it has " + counted(column.others, "other value") +
                      (texts.overflowed() ? "" : ", such as " + files::quoted(sorted(texts)[0].first)) +
                      "; see --task");
  constexpr double kMost = 1e17;  // so that squares are numbers of float32, too
  const double largest = std::max(std::fabs(column.numbers.low), std::fabs(column.numbers.high));
  if (largest > kMost)
    throw Failure(cli::kBadConfig,
                  name + " reaches " + shown(largest) + ", too far for float32: state it in a larger unit");
}

void check_classes(const ColumnSummary& column, int64_t rows) {
  const auto different = static_cast<int64_t>(column.texts.counts().size());
  const std::string name = "the target " + files::quoted(column.name);
  if (column.texts.overflowed() || different > kMostClasses || (different > 20 && different * 2 > rows))
    throw Failure(cli::kBadConfig, name + " has " +
                                       (column.texts.overflowed() ? "too many" : std::to_string(different)) +
                                       " different values in " + counted(rows, "row") +
                                       ": these are not classes, of which each needs "
                                       "several rows");
}

}  // namespace

Target target_of(const Table& table, const Request& request) {
  Target target;
  const auto at = std::find_if(table.columns.begin(), table.columns.end(),
                               [&](const ColumnSummary& column) { return column.name == request.target; });
  const ColumnSummary& column = *at;
  target.column = &column;
  target.rows = column.values();
  const std::string name = "the target " + files::quoted(column.name);
  if (target.rows == 0) throw Failure(cli::kBadData, name + " is missing in all " + counted(table.records, "row"));
  const bool one_number = column.others == 0 && column.numbers.low == column.numbers.high;  // 1, 1.0
  if (column.texts.counts().size() == 1 || one_number)
    throw Failure(cli::kBadData, name + " has one value, " + files::quoted(column.texts.counts().begin()->first) +
                                     ", in all " + counted(target.rows, "row") + ": there is nothing to learn");
  if (target.rows < kFewestRows)
    throw Failure(cli::kBadData, name + " is there in " + counted(target.rows, "row") + ", of " +
                                     std::to_string(table.records) + "; expected at least " +
                                     std::to_string(kFewestRows));
  target.classes = !is_quantity(column, request);
  if (!target.classes) {
    check_quantity(column);
    return target;
  }
  check_classes(column, target.rows);
  target.counts = sorted(column.texts);
  return target;
}

}  // namespace tenon::new_job
