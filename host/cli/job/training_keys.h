// The keys of a job that are options of its training alone. Written by host/api/spec/generate_options.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tenon/tenon.hpp>

#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

inline void read_training_keys(Section& job, TrainOptions* to) {
  to->passes = job.integer("passes", 1, INT64_MAX).value_or(to->passes);
  to->pass_batches = job.integer("pass_batches", 1, INT64_MAX).value_or(to->pass_batches);
  to->verify_every = job.integer("verify_every", 0, INT64_MAX).value_or(to->verify_every);
  to->staleness = job.integer("staleness", 0, INT64_MAX).value_or(to->staleness);
}

}  // namespace tenon::cli
