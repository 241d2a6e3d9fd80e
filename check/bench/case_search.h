// Finds cases of a layer type: those of the author, or drawn ones that its plan accepts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "check/bench/subject.h"
#include "check/cases/layer_case.h"

namespace tenon::check {

// The author's cases for the type that have a chain, or those that have none. Throws Fault for one that plan refuses.
[[nodiscard]] std::vector<LayerCase> given_cases(const Subject& subject, bool chains);

// Finds cases: the author's if there are any, else those that are drawn from the schema and that the layer's plan and,
// unless `plans_alone`, a first forward accept: at most `most` usual ones, which have rows of 1, 3, 4, 7 and 17
// elements among them, then those with the bounds of integers, all choices of texts and both values of flags, then one
// that is large. Throws Fault if there are none.
[[nodiscard]] std::vector<LayerCase> layer_cases(const Subject& subject, size_t most, bool plans_alone);

}  // namespace tenon::check
