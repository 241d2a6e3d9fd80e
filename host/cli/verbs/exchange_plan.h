// What several processes of a training tell each other in a step, by calculation. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace tenon::cli {

struct NetworkOptions {
  int64_t processes = 0;  // that train; 0: not asked for
  int64_t servers = 0;    // that own the rows of tables beside them; 0: those that train do
  double gigabits = 10;   // a second, each way
  int64_t staleness = 0;  // of the job; 0: the exact mode
};

// Adds "exchange" to the plan of a training of a job with so many shards (0: one for each process), or throws
// Failure(kUsage) if the processes are more. Its seconds are 2 (P - 1) / P times the gradients over 80 % of the line,
// and 30 us for each message: what TCP gives. In the bounded mode they are those of one minibatch of a trainer.
void add_exchange(nlohmann::json& plan, uint32_t shards, const NetworkOptions& options);
// Prints it.
void print_exchange(const nlohmann::json& plan);

}  // namespace tenon::cli
