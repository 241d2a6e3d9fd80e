// The branches of topologies: which layers are inside of one, and the layers where values enter and leave.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/topology.h"
#include "host/layers/ragged_symbols.h"

namespace tenon::host {

using namespace core;

// Returns the innermost branch that a layer with these inputs is inside of, null for none. Throws TN_INVALID, without
// the layer, if the inputs are of two branches neither of which is inside of the other, or of one that has ended.
[[nodiscard]] BranchRef branch_of(const std::vector<LayerOutput>& inputs);

// Returns the spec of an input as layers inside of `branch` see it. Of a value with one row for each row that the
// branch chooses from, these are the rows of the branch; constants, and sequences of those rows, stay as they are.
// Throws TN_INVALID, naming the subject, for any other value from outside.
[[nodiscard]] Spec in_branch(const Branch& branch, const LayerOutput& input, const SubjectName& subject,
                             const SymbolNames& names);

// Throws, without the layer, if a layer that was planned inside of a branch has no value for each row of it.
void check_in_branch(const Layer& layer, const SymbolNames& names);

// Branches that an application is building. Errors name the cond, and the layers that do not fit.
class OpenCond {
 public:
  // over: a value of the rows that are chosen from. rows: of each branch the numbers of its rows, ragged integers.
  // Borrows `symbols`.
  OpenCond(const std::string& name, const LayerOutput& over, std::vector<LayerOutput> rows, RaggedSymbols& symbols);

  // Whether it was begun with these.
  [[nodiscard]] bool is_of(const LayerOutput& over, const std::vector<LayerOutput>& rows) const;
  [[nodiscard]] size_t branches() const { return branches_.size(); }
  [[nodiscard]] bool has_ended() const { return cond_->ended; }
  // Returns the layer whose values are those of the rows of branch `branch`. rows: of sequences the numbers of their
  // rows that belong to the branch, else none; of further sequences of the same lengths the first ones are taken. An
  // empty name is generated.
  [[nodiscard]] LayerRef input(size_t branch, const std::string& name, const LayerOutput& value,
                               const LayerOutput& rows);
  // Ends it: no layers can join the branches any more. results: of each branch equally many. Throws TN_INVALID, and
  // leaves it open, if results of two branches differ.
  [[nodiscard]] LayerRef end(const std::vector<std::vector<LayerOutput>>& results);

 private:
  // The rows of sequences that belong to a branch.
  struct Chosen {
    LayerOutput rows;    // their numbers
    int32_t symbol = 0;  // of their dimension
    Spec from;           // the sequences outside
  };

  [[nodiscard]] Layer part(const std::string& name, CondPart part, std::vector<LayerOutput> inputs) const;
  [[nodiscard]] Spec around(const LayerOutput& value, const std::string& what) const;
  void check_rows(const LayerOutput& rows, const Spec& over) const;
  const Chosen& chosen_of(size_t branch, const LayerOutput& value, const Spec& spec, const LayerOutput& rows);
  // Returns the spec of a result outside, and writes the numbers of the rows of sequences, none for others, to `rows`.
  [[nodiscard]] Spec result(size_t branch, const LayerOutput& value, LayerOutput& rows) const;

  RaggedSymbols& names_;
  std::shared_ptr<Cond> cond_;
  LayerOutput over_;
  std::vector<LayerOutput> rows_;  // of each branch
  std::vector<BranchRef> branches_;
  std::vector<std::map<int32_t, Chosen>> chosen_;  // by branch, by the symbol of the rows of the sequences outside
  std::vector<size_t> inputs_;                     // by branch: how many
};

}  // namespace tenon::host
