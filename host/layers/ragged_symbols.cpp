// SPDX-License-Identifier: Apache-2.0
#include "host/layers/ragged_symbols.h"

namespace tenon::host {

int32_t RaggedSymbols::of(const std::string& sequence, const std::string& part) {
  const auto [known, fresh] = known_.try_emplace({sequence, part}, 0);
  if (fresh) known->second = add(part.empty() ? sequence : part + " of " + sequence);
  return known->second;
}

int32_t RaggedSymbols::concatenated(int32_t first, int32_t second) {
  const auto [known, fresh] = concatenated_.try_emplace({first, second}, 0);
  if (fresh) known->second = add(name(first) + " then " + name(second));
  return known->second;
}

int32_t RaggedSymbols::add(std::string name) {
  names_.push_back(std::move(name));
  return static_cast<int32_t>(TN_SYMBOL_FIRST_RAGGED + names_.size() - 1);
}

const std::string& RaggedSymbols::name(int32_t symbol) const {
  return names_.at(static_cast<size_t>(symbol - TN_SYMBOL_FIRST_RAGGED));
}

std::string RaggedSymbols::name_of(int32_t symbol) const {
  const bool known =
      symbol >= TN_SYMBOL_FIRST_RAGGED && static_cast<size_t>(symbol - TN_SYMBOL_FIRST_RAGGED) < names_.size();
  return known ? "rows of \"" + name(symbol) + "\"" : SymbolNames::name_of(symbol);
}

}  // namespace tenon::host
