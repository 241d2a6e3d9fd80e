// SPDX-License-Identifier: Apache-2.0
#include "host/layers/row_symbols.h"

namespace tenon {

int32_t RowSymbols::of(const std::string& sequence, const std::string& part) {
  const auto [known, fresh] = known_.try_emplace({sequence, part}, 0);
  if (fresh) known->second = add(part.empty() ? sequence : part + " of " + sequence);
  return known->second;
}

int32_t RowSymbols::joined(int32_t first, int32_t second) {
  const auto [known, fresh] = joined_.try_emplace({first, second}, 0);
  if (fresh) known->second = add(name(first) + " then " + name(second));
  return known->second;
}

int32_t RowSymbols::add(std::string name) {
  names_.push_back(std::move(name));
  return static_cast<int32_t>(TN_SYMBOL_FIRST_ROWS + names_.size() - 1);
}

const std::string& RowSymbols::name(int32_t symbol) const {
  return names_.at(static_cast<size_t>(symbol - TN_SYMBOL_FIRST_ROWS));
}

std::string RowSymbols::name_of(int32_t symbol) const {
  const bool known =
      symbol >= TN_SYMBOL_FIRST_ROWS && static_cast<size_t>(symbol - TN_SYMBOL_FIRST_ROWS) < names_.size();
  return known ? "rows of \"" + name(symbol) + "\"" : SymbolNames::name_of(symbol);
}

}  // namespace tenon
