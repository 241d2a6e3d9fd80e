// Shared code of the layers of connectionist temporal classification. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <tenon/kernel.hpp>
#include <tenon/plugin.hpp>

#include "integers.h"
#include "ragged.h"

namespace tenon::ctc {

using kernels::innermost;
using kernels::Integers;

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

inline tn::Attribute blank_attribute() {
  return tn::int_attribute("blank", 0)
      .at_least(0)
      .doc("the class that stands for none, between the others of a sequence and instead of them");
}

// The blank of a layer whose input 0 has `classes` classes.
inline void require_blank(const tn::Planner& planner, int64_t classes) {
  const int64_t blank = planner.attributes().integer("blank");
  if (blank >= classes)
    throw tn::Failure(
        TN_INVALID, "blank",
        "expected below " + std::to_string(classes) + ", the classes of the input, got " + std::to_string(blank));
}

// ---- in kernels

// The bound of a dimension of an operand.
inline uint64_t bound_of(const tn::Dim& dim, const char* port) {
  if (dim.bound < 0) throw tn::Failure(TN_INVALID, port, "has a dimension without a bound");
  return static_cast<uint64_t>(dim.bound);
}

// a * b, which must fit into 62 bits.
inline uint64_t product(uint64_t a, uint64_t b) {
  if (b != 0 && a > (uint64_t{1} << 62) / b) throw tn::Failure(TN_OUT_OF_MEMORY, "", "needs too large a workspace");
  return a * b;
}

void add_decoding(tn::Plugin& plugin);
void add_edit_distance(tn::Plugin& plugin);

}  // namespace tenon::ctc
