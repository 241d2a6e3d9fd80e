// What `tenon train --cluster` asks of a cluster. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cluster/objects.h"
#include "host/cli/verbs/train_arguments.h"

namespace tenon::cluster {

struct Training {
  Plan plan;
  std::optional<std::string> save, average_save;  // where the results go on this machine
};

// Reads the job and the options. Throws cli::Failure naming the key or option: for paths that only this machine has,
// plugins that the image would have to have, and so on.
[[nodiscard]] Training training_of(const cli::TrainCommand& command);

// Returns the bytes of "2Gi", "500M", "1000"; empty if the text is none.
[[nodiscard]] std::optional<int64_t> bytes_of(const std::string& text);

}  // namespace tenon::cluster
