// What trainings, tests and inferences of the public API need. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "host/api/api.h"
#include "host/api/held_team.h"
#include "host/training/bounded/bounded_mode.h"
#include "host/training/training_loop.h"

// The token behind tn_cancel. The flag outlives the token as long as a call uses it.
struct tn_cancel {
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");
  std::shared_ptr<std::atomic<bool>> requested = std::make_shared<std::atomic<bool>>(false);
};

namespace tenon::host {

// The machine, set, reader and arguments of one call.
struct TrainingCall {
  std::shared_ptr<HeldTeam> team;  // null: this process trains alone
  std::unique_ptr<Use> team_use;
  std::unique_ptr<BoundedMode> bounded;  // null: the exact mode
  std::shared_ptr<HeldParameters> parameters;
  std::unique_ptr<SetTraining> training;  // null: the call does not train
  std::shared_ptr<HeldReader> reader;
  std::unique_ptr<Use> reader_use;
  std::shared_ptr<HeldMachine> machine;
  std::unique_ptr<Use> machine_use;  // null while a handler may use it
  std::unique_ptr<LoopInputs> request;
  std::vector<LayerOutput> outputs;
  std::shared_ptr<const std::atomic<bool>> cancel;  // null: nothing cancels
};

enum class Purpose { kTraining, kTest, kInference };

// where: the struct that holds outputs, reader and feeding, for messages.
[[nodiscard]] TrainingCall prepare(Host& host, const tn_train_options& options, Purpose purpose,
                                   const std::string& where = "options");

}  // namespace tenon::host
