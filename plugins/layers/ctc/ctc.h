// Shared code of the layers of connectionist temporal classification. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <tenon/kernel.hpp>
#include <tenon/plugin.hpp>

#include "bounds.h"
#include "integers.h"
#include "ragged.h"

namespace tenon::ctc {

using kernels::bound_of;
using kernels::innermost;
using kernels::Integers;
using kernels::plan_sequences;
using kernels::product;
using kernels::require_same_sequences;

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

void add_decoding(tn::Plugin& plugin);
void add_edit_distance(tn::Plugin& plugin);

}  // namespace tenon::ctc
