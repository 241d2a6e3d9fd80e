// What the layers of sequences share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.hpp>

namespace tenon::sequences {

// The input, which must be sequences.
inline tn::Spec input_of_rows(const tn::Planner& planner, uint32_t i) {
  tn::Spec spec = planner.input(i);
  if (!spec.is_ragged()) throw planner.bad_input(i, "must be sequences (ragged), [rows, ...]");
  return spec;
}

// The spec with another first dimension.
inline tn::Spec with_first(const tn::Dim& first, const tn::Spec& spec) {
  tn::Spec result({first}, spec.dtype());
  for (int32_t i = 1; i < spec.rank(); ++i) result.push_back(spec[i]);
  return result;
}

// Rows of a value become rows of the grid of a program, and the rest its columns.
constexpr int32_t kRows = 1;

void add_pool(tn::Plugin& plugin);
void add_context(tn::Plugin& plugin);

}  // namespace tenon::sequences
