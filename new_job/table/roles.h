// What each column of a table is to the model. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "new_job/table/target.h"

namespace tenon::new_job {

enum class Role {
  kLeftOut,
  kTarget,
  kNumber,    // standardised
  kGap,       // a number with missing values: standardised, with an indicator
  kTail,      // a number whose largest values are far out: its logarithm, with an indicator if any of them has gaps
  kCategory,  // few texts: one-hot; more: vectors
  kList,      // several categories in a field
  kDate,      // its parts
  kText       // words
};

struct Column {
  const ColumnSummary* summary = nullptr;
  Role role = Role::kLeftOut;
  std::string why;        // of kLeftOut
  int64_t names = 0;      // of a category or text: the rows of its table of vectors, with that for other texts
  std::string slot;       // of a category, list, date or text
  double unit = 1;        // of kTail: a usual size
  char separator = '\0';  // of kList
};

// The columns, in the order of the file, and the texts of numbers that mean missing.
struct Roles {
  std::vector<Column> columns;
  std::vector<std::string> missing_texts;

  [[nodiscard]] std::vector<const Column*> with(Role role) const;
  // Whether a column of the role kTail has missing values.
  [[nodiscard]] bool tails_have_gaps() const;
};

// Throws cli::Failure if no column is left to predict from.
[[nodiscard]] Roles roles_of(const Table& table, const Target& target, const Request& request);

}  // namespace tenon::new_job
