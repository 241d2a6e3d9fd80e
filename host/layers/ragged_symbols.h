// Symbols of the dimensions that count rows of sequences.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/shape.h"
#include "core/topology.h"

namespace tenon::host {

using namespace core;

// Numbers for the dimensions that count rows of sequences, TN_SYMBOL_FIRST_RAGGED and above.
class RaggedSymbols : public SymbolNames {
 public:
  // Returns the symbol of the rows of the sequences of this name, or of a part of them: "inner sequences", "entries".
  [[nodiscard]] int32_t of(const std::string& sequence, const std::string& part);
  // Returns the symbol of rows that `layer` makes. Equal rules have the same symbol, except TN_ROWS_DATA.
  [[nodiscard]] int32_t derived(const DerivedRows& rows, const std::string& layer);
  // Returns the symbol that stands for the steps of scans over rows.
  [[nodiscard]] int32_t steps(int32_t rows, bool reverse);
  // Returns the symbol that stands for the rows of further sequences as the steps of scans over `rows` see them.
  [[nodiscard]] int32_t seen(int32_t further, int32_t rows, bool reverse);
  // Whether a call writes the number of rows while a step runs.
  [[nodiscard]] bool is_written(int32_t symbol) const { return written_.contains(symbol); }
  // For messages: `rows of "words"`, `steps of "words"`.
  [[nodiscard]] std::string name_of(int32_t symbol) const override;

 private:
  int32_t add(std::string name);
  [[nodiscard]] const std::string& name(int32_t symbol) const;

  std::map<std::pair<std::string, std::string>, int32_t> known_;
  using Rule = std::array<int64_t, 7>;
  std::map<Rule, int32_t> derived_;
  std::map<std::pair<int32_t, bool>, int32_t> steps_;
  std::map<std::pair<int32_t, int32_t>, int32_t> seen_;  // by further rows and steps
  std::set<int32_t> written_;
  std::vector<std::string> names_;  // by symbol
};

}  // namespace tenon::host
