// The names inside of a table with layers of its own, such as [[scan]]. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "host/cli/job/job.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

// A name inside is first that of a part or a layer of the table, then that of a layer or slot of the job. Outside, what
// the table calls "gates" is called "cells.gates".
class Scope {
 public:
  // prefix: "cells.". Takes the names of the blocks of the job that are inside.
  Scope(std::string prefix, const Job& job);

  // Takes the names of tables; those without one are refused when they are read.
  void take(const Node::List& tables);
  // Takes a name. Returns false if it is taken.
  bool take(const std::string& name) { return names_.insert(name).second; }
  // The name outside of what layers inside call `name`.
  [[nodiscard]] std::string outside(const std::string& name) const;
  [[nodiscard]] std::string own(const std::string& name) const { return prefix_ + name; }
  // Reads a layer inside, with the names of outside.
  [[nodiscard]] JobLayer layer(const Node& table) const;

 private:
  std::string prefix_;
  std::set<std::string> names_;
};

// Appends the layers of a table to those of the job. names: those that are taken, and where; the new ones are added.
void add_layers(std::vector<JobLayer> layers, const Section& top, Job& job, std::map<std::string, Place>& names);

// Appends the layers of all tables `key`. One is read by TableSection(table, its name for messages, job).read().
template <typename TableSection>
void add_tables(Section& top, const std::string& key, Job& job, std::map<std::string, Place>& names) {
  const Node* const node = top.find(key);
  if (node == nullptr) return;
  if (!node->is_list_of_tables()) top.wrong(key, *node, "[[" + key + "]] tables");
  for (const Node& table : *node->get<Node::List>()) {
    const std::string* const name = table.text("name");
    const std::string called = name == nullptr ? "[[" + key + "]]" : key + " \"" + *name + "\"";
    add_layers(TableSection(table, called, job).read(), top, job, names);
  }
}

}  // namespace tenon::cli
