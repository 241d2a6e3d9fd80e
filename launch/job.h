// The job as the launcher sees it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/cli/job/include.h"
#include "host/cli/verbs/train_arguments.h"

namespace tenon::launch {

// Where a job says that data is, as written: a whole path, or one that is relative to the folder of the job.
struct LaunchedPath {
  std::string place;  // "job.toml:12: key \"path\" of a reader"
  std::string text;
};

struct LaunchedJob {
  std::string path;                     // absolute
  std::vector<cli::JobFile> files;      // with absolute paths, the job first
  std::optional<std::string> folder;    // of [checkpoint], absolute
  int64_t shards = 0;                   // of a minibatch; 0: the job does not say
  int64_t devices = 1;                  // of a process
  int64_t staleness = 0;                // of the bounded mode; 0: the exact mode
  bool states_threads = false;          // by its key or by --threads
  std::vector<LaunchedPath> data;       // of readers and of "init"
  std::optional<std::string> relative;  // a key that is relative to the folder of the job, for a message
};

// Reads the job of the command. Throws Failure as load_job, and kBadConfig for one that is not a file.
[[nodiscard]] LaunchedJob read_job(const cli::TrainCommand& command);

}  // namespace tenon::launch
