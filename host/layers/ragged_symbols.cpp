// SPDX-License-Identifier: Apache-2.0
#include "host/layers/ragged_symbols.h"

#include <algorithm>

namespace tenon::host {

int32_t RaggedSymbols::of(const std::string& sequence, const std::string& part) {
  const auto [known, fresh] = known_.try_emplace({sequence, part}, 0);
  if (fresh) known->second = add(part.empty() ? sequence : part + " of " + sequence);
  return known->second;
}

int32_t RaggedSymbols::derived(const DerivedRows& rows, const std::string& layer) {
  if (rows.rule == TN_ROWS_DATA) return *written_.insert(add(layer)).first;
  const Rule rule = {rows.rule, rows.first, rows.second, rows.window, rows.stride, rows.padding, rows.count};
  const auto [known, fresh] = derived_.try_emplace(rule, 0);
  if (!fresh) return known->second;
  const std::string& from = name(rows.first);
  switch (rows.rule) {
    case TN_ROWS_CONCATENATED:
      return known->second = add(from + " then " + name(rows.second));
    case TN_ROWS_FIRST:
      return known->second = add("the first " + std::to_string(rows.count) + " of " + from);
    default:
      return known->second = add(from + " by windows of " + std::to_string(rows.window) + " and strides of " +
                                 std::to_string(rows.stride));
  }
}

int32_t RaggedSymbols::steps(int32_t rows, bool reverse) {
  const auto [known, fresh] = steps_.try_emplace({rows, reverse}, 0);
  if (fresh) known->second = add(name(rows));
  return known->second;
}

int32_t RaggedSymbols::seen(int32_t further, int32_t rows, bool reverse) {
  const auto [known, fresh] = seen_.try_emplace({further, steps(rows, reverse)}, 0);
  if (fresh) known->second = add(name(further) + "\" at the steps of \"" + name(rows));
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
  if (!known) return SymbolNames::name_of(symbol);
  const bool steps = std::any_of(steps_.begin(), steps_.end(), [&](const auto& each) { return each.second == symbol; });
  return (steps ? "steps of \"" : "rows of \"") + name(symbol) + "\"";
}

}  // namespace tenon::host
