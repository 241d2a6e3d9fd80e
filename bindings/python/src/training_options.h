// Reads the options of trainings from dicts. Written by host/api/spec/generate_options.py.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.h"

namespace tenon_python {

inline void read(const nb::dict& from, tenon::TestOptions* to) {
  take(from, "reader", &to->reader);
  take(from, "feeding", &to->feeding);
}

inline void read(const nb::dict& from, tenon::EarlyStopOptions* to) {
  take(from, "metric", &to->metric);
  take(from, "best_is_highest", &to->best_is_highest);
  take(from, "patience", &to->patience);
  take(from, "min_delta", &to->min_delta);
}

inline void read(const nb::dict& from, tenon::CheckpointOptions* to) {
  take(from, "folder", &to->folder);
  take(from, "every_batches", &to->every_batches);
  take(from, "every_passes", &to->every_passes);
  take(from, "every_seconds", &to->every_seconds);
  take(from, "keep", &to->keep);
  take(from, "best", &to->best);
  take(from, "best_is_highest", &to->best_is_highest);
  take(from, "start", &to->start);
  take(from, "resume_with", &to->resume_with);
}

inline void read(const nb::dict& from, tenon::AverageOptions* to) {
  take(from, "parameters", &to->parameters);
  take(from, "decay", &to->decay);
  take(from, "window", &to->window);
  take(from, "begin", &to->begin);
}

inline void read(const nb::dict& from, tenon::BestOptions* to) {
  take(from, "parameters", &to->parameters);
  take(from, "averages", &to->averages);
  take(from, "metric", &to->metric);
  take(from, "best_is_highest", &to->best_is_highest);
}

inline void read(const nb::dict& from, tenon::TrainOptions* to) {
  take(from, "outputs", &to->outputs);
  take(from, "parameters", &to->parameters);
  take(from, "updater", &to->updater);
  take(from, "reader", &to->reader);
  take(from, "feeding", &to->feeding);
  take(from, "passes", &to->passes);
  take(from, "seed", &to->seed);
  take(from, "immutable_parameters", &to->immutable_parameters);
  if (const auto part = part_of(from, "checkpoint")) read(*part, &to->checkpoint.emplace());
  take(from, "pass_batches", &to->pass_batches);
  take(from, "cancel", &to->cancel);
  if (const auto part = part_of(from, "test")) read(*part, &to->test.emplace());
  if (const auto part = part_of(from, "early_stop")) read(*part, &to->early_stop.emplace());
  if (const auto part = part_of(from, "average")) read(*part, &to->average.emplace());
  take(from, "groups", &to->groups);
  take(from, "devices", &to->devices);
  take(from, "compute", &to->compute);
  if (const auto part = part_of(from, "best")) read(*part, &to->best.emplace());
  take(from, "shards", &to->shards);
  take(from, "verify_every", &to->verify_every);
  take(from, "staleness", &to->staleness);
  take(from, "team", &to->team);
  take(from, "run", &to->run);
  take(from, "run_every", &to->run_every);
  take(from, "rerun", &to->rerun);
}

}  // namespace tenon_python
