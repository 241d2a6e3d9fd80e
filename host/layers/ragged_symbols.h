// Symbols of the dimensions that count rows of sequences.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/layer.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/shape.h"

namespace tenon::host {

using namespace core;

// Numbers for the dimensions that count rows of sequences, TN_SYMBOL_FIRST_RAGGED and above.
class RaggedSymbols : public SymbolNames {
 public:
  // Returns the symbol of the rows of the sequences of this name, or of a part of them: "inner sequences", "entries".
  [[nodiscard]] int32_t of(const std::string& sequence, const std::string& part);
  // Returns the symbol of concatenated sequences: in each, the rows of `first`, then those of `second`.
  [[nodiscard]] int32_t concatenated(int32_t first, int32_t second);
  // For messages: `rows of "words"`.
  [[nodiscard]] std::string name_of(int32_t symbol) const override;

 private:
  int32_t add(std::string name);
  [[nodiscard]] const std::string& name(int32_t symbol) const;

  std::map<std::pair<std::string, std::string>, int32_t> known_;
  std::map<std::pair<int32_t, int32_t>, int32_t> concatenated_;
  std::vector<std::string> names_;  // by symbol
};

}  // namespace tenon::host
