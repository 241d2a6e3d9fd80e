// The options of a training that its loop reads. Written by host/api/spec/generate_options.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/error.h"

namespace tenon::host {

struct LoopOptions {
  // Train only. Passes over the data, those before a resume included.
  int64_t passes = 1;
  // Minibatches of a pass; 0: a pass of the training is one of the reader.
  int64_t pass_batches = 0;
  // Train only. With a team: steps between comparisons of the parameters and buffers of its processes; 0: before the
  // first step alone.
  int64_t verify_every = 0;
  // Train only. 0: the exact mode.
  int64_t staleness = 0;
};

template <typename Number>
Number at_least(Number minimum, Number value, const char* name) {
  if (value < minimum)
    core::fail(TN_INVALID, core::SubjectName{name}, "options.", name, " is ", value, "; expected at least ", minimum);
  return value;
}

// Takes them from tn_train_options. Throws TN_INVALID for one that is out of range.
template <typename Options>
LoopOptions loop_options(const Options& from, [[maybe_unused]] bool training) {
  LoopOptions to;
  if (training) to.passes = at_least<int64_t>(0, from.passes, "passes");
  to.pass_batches = at_least<int64_t>(0, from.pass_batches, "pass_batches");
  if (training) to.verify_every = at_least<int64_t>(0, from.verify_every, "verify_every");
  if (training) to.staleness = at_least<int64_t>(0, from.staleness, "staleness");
  return to;
}

}  // namespace tenon::host
