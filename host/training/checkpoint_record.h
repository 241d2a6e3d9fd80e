// The host's own record in a checkpoint: everything of a training except the values of parameters and states.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/machine/shards/shard.h"

namespace tenon::host {

using namespace core;

// Between two minibatches: `batch` minibatches of pass number `pass` are done, and the reader continues at `reader_*`.
struct TrainingPlace {
  int64_t pass = 0, batch = 0;
  int64_t reader_pass = 0, reader_position = 0;
  bool operator==(const TrainingPlace&) const = default;
};

// Sums over the minibatches of a pass.
struct PassSums {
  double cost = 0;  // of the means of minibatches, times their samples
  int64_t samples = 0;
  std::vector<std::vector<double>> metrics;  // the states of the metrics
  std::vector<double> costs;                 // as cost, of each of two or more costs; else empty
};

// When the next test is made.
struct TestState {
  int64_t batches = 0;  // since the last one
  bool due = false;     // the training ended before it could be made
};

// What early stopping has seen.
struct EarlyStopState {
  std::string watched;  // which value of which measurement; empty: none
  std::optional<double> best;
  int64_t misses = 0;  // measurements since the best one
};

// The first minibatch of a pass of the reader.
struct DataDigest {
  int64_t pass = 0;
  std::string xxh3;  // of its samples (data_digest.h); empty: unknown
};

// The state of a training loop between two minibatches.
struct LoopState {
  TrainingPlace place;
  double seconds = 0;  // since the pass began
  PassSums sums;       // of the pass; of the last one if the place is the beginning of a pass
  CarriedStates carried;
  TestState tests;
  EarlyStopState early_stop;
  DataDigest data;  // of the newest pass of the reader that began at its first sample
};

// Of one updater.
struct UpdaterProgress {
  uint64_t steps = 0;
  double learning_rate = 0;
};

struct CheckpointRecord {
  std::string run;       // JSON: what must be equal in the training that continues (resume_check.h)
  uint64_t updates = 0;  // of the parameters: the step in the counters of random draws
  uint64_t steps = 0;    // of the updater
  double learning_rate = 0;
  LoopState loop;
  std::optional<double> best;  // the best value so far of the metric that chooses the best checkpoint
  std::string best_watched;    // that metric, as in EarlyStopState; empty in version 1
  uint64_t averaged = 0;       // updates that the averages of the parameters have seen
};

// The number of the record's layout, in the metadata of a checkpoint. It rises with each change. Version 1 ended with
// `best`, version 2 before `sums.costs`; it is still written if there are not several costs.
constexpr const char* kCheckpointVersion = "2";
constexpr const char* kFirstCheckpointVersion = "1";
constexpr const char* kCheckpointVersionOfCosts = "3";
// Returns the version in which a record is written.
[[nodiscard]] const char* version_of(const CheckpointRecord& record);

// Returns the bytes of a record in one of these versions; empty: version_of(record).
[[nodiscard]] std::string encode(const CheckpointRecord& record, const std::string& version = {});
// Decodes untrusted bytes of one of these versions: allocates at most a fixed multiple of them. Throws TN_BAD_DATA
// naming `file`, the field and what was expected.
[[nodiscard]] CheckpointRecord decode(const std::string& bytes, const std::string& file,
                                      const std::string& version = kCheckpointVersion);

}  // namespace tenon::host
