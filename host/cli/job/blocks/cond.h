// Branches of a job: [[cond]] lists layers that run for some samples alone. docs/branches.md describes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "host/cli/job/job.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

// Appends the layers of each [[cond]] to job.layers: those inside, where values enter a branch, and the one that stands
// for it. names: those that are taken, and where; the new ones are added.
void read_conds(Section& top, Job& job, std::map<std::string, Place>& names);

// A branch of a [[cond]]: its table, and what its layers begin with, such as "gate.then".
struct BranchTable {
  Node* table;
  std::string name;
};
// Returns the branches of a [[cond]] that are tables; others are refused when it is read.
[[nodiscard]] std::vector<BranchTable> branch_tables(Node& cond);

}  // namespace tenon::cli
