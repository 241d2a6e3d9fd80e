// Sequences as layers with native kernels of several plugins check and read them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tensor.h>

#include <cstdint>
#include <string>
#include <tenon/kernel.hpp>
#include <tenon/plugin.hpp>

namespace tenon::kernels {

// The spec of an input that must be sequences of rows of `rank` - 1 dimensions.
inline tn::Spec plan_sequences(const tn::Planner& planner, uint32_t i, int32_t rank, const char* form) {
  const tn::Spec input = planner.input(i);
  if (!input.is_ragged() || input.without_trailing_ones().rank() > rank || input.rank() < rank)
    throw planner.bad_input(i, std::string("must be sequences (ragged), ") + form);
  return input;
}

// Throws unless two inputs have as many sequences: the same dimension outside of their rows.
inline void require_same_sequences(const tn::Planner& planner, uint32_t i, uint32_t j) {
  if (!planner.input(i).outer(0).same(planner.input(j).outer(0)))
    throw planner.bad_input(j, "must have a sequence for each of the first input");
}

// ---- in kernels

// The offsets [sequences + 1] of the innermost sequences of a ragged tensor: rows offsets[i] to offsets[i + 1] - 1.
inline const int64_t* innermost(const tn_tensor& tensor) {
  return static_cast<const tn_ragged*>(tensor.part)->offsets[0];
}

}  // namespace tenon::kernels
