// The command line of each process. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/cli/verbs/train_arguments.h"

namespace tenon::launch {

struct WordsOptions {
  std::string job;                         // the path of its file
  int64_t servers = 0;                     // of the processes that are left
  std::optional<int64_t> threads;          // empty: as the job and the options say
  std::optional<int64_t> shards;           // likewise
  std::optional<std::string> resume_from;  // a relaunch: from this checkpoint; "": as --resume
  bool absolute = false;                   // whether paths become absolute, for another machine
};

// Returns "train" and what follows it: all options of the command but those of the launcher.
[[nodiscard]] std::vector<std::string> words_of(const cli::TrainCommand& command, const WordsOptions& options);

}  // namespace tenon::launch
