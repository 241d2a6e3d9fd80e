// Averages of the parameters over the updates of a training. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/parameter_set.h"
#include "host/training/updater.h"

namespace tenon::host {

using namespace core;

struct AverageOptions {
  double decay = 1;    // of exponential averages
  int64_t window = 0;  // 0: exponential
  int64_t begin = 0;   // updates before the first that counts
};

// Writes the averages of one set to another one after each update. With w the parameters and t = 1, 2, ... the update
// since `begin` (Polyak and Juditsky, 1992):
//   exponential  a_t = d_t a_{t-1} + (1 - d_t) w_t,  d_t = min(decay, (t - 1) / t): the plain mean at first, so that w
//                before the first update has no weight
//   window n     the mean of the present block of n updates so far and of the whole block before it
// Computed in double, stored in float. Buffers are copied.
class Averages : base::NotCopied {
 public:
  // Throws TN_INVALID for bad options, or if the sets are the same or have different parameters; TN_MISUSE if a set has
  // no values.
  // pool: of the host itself, which tn_execution's is not where plugins are checked; outlives the object.
  Averages(std::shared_ptr<const ParameterSet> of, std::shared_ptr<ParameterSet> to, const AverageOptions& options,
           const tn_parallel& pool);

  // Called after each update.
  void update();
  [[nodiscard]] const std::shared_ptr<ParameterSet>& set() const { return to_; }
  // Copies the parameters, as before the first update.
  void begin();
  void take_names() { to_->set_names(of_->names()); }

  // For checkpoints: what must be equal in a training that resumes, the updates seen, and all values.
  [[nodiscard]] nlohmann::json describe() const;
  [[nodiscard]] uint64_t seen() const { return seen_; }
  [[nodiscard]] std::vector<Updater::StateValues> values();
  // Values to replace the present ones. `read` fills them; if it throws, nothing has changed.
  struct Restored;
  [[nodiscard]] std::shared_ptr<Restored> read(const std::function<void(const Updater::StateValues&)>& read) const;
  void adopt(Restored& restored, uint64_t seen);

 private:
  // A piece of a parameter or buffer: the work of one task.
  struct Piece {
    const float* of = nullptr;
    float* to = nullptr;
    uint64_t at = 0;  // in block_ and former_
    uint64_t count = 0;
    bool buffer = false;
  };
  // The weights of an update: to = keep * to + take * of, or with windows the block's, and its part of the result.
  struct Step {
    bool copy = false;
    double keep = 0, take = 0;
    double of_block = 1;  // the rest is the former block's
    bool ends = false;    // the block is whole
  };
  [[nodiscard]] Step step_of(uint64_t update) const;
  void run(const Step& step);
  void average(const Piece& piece, const Step& step);
  [[nodiscard]] std::vector<Updater::StateValues> views(float* average, float* block, float* former) const;

  std::shared_ptr<const ParameterSet> of_;
  std::shared_ptr<ParameterSet> to_;
  AverageOptions options_;
  const tn_parallel& pool_;
  std::vector<Piece> pieces_;
  Buffer block_, former_;  // float [total_]: means of the present block and of the one before it; empty if exponential
  uint64_t total_ = 0;     // elements of all parameters
  uint64_t seen_ = 0;      // updates
};

}  // namespace tenon::host
