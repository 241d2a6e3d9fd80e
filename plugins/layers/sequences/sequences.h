// Shared code of the layers of sequences. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/numbers.hpp>
#include <tenon/plugin.hpp>

namespace tenon::sequences {

// The spec of the input; throws unless it is ragged.
inline tn::Spec ragged_input(const tn::Planner& planner, uint32_t i) {
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

// The argument `leading` of pointwise: the rows of a value are the rows of the grid, its other dimensions the columns.
constexpr int32_t kRows = 1;

void add_pool(tn::Plugin& plugin);
void add_context(tn::Plugin& plugin);
void add_padding(tn::Plugin& plugin);
void add_row_conv(tn::Plugin& plugin);
void add_slice(tn::Plugin& plugin);

}  // namespace tenon::sequences
