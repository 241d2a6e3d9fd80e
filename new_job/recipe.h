// How large a network is and how long it trains, by the number of rows. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "new_job/job_text.h"
#include "new_job/request.h"

namespace tenon::new_job {

struct Recipe {
  int64_t batch = 0, passes = 0, patience = 0;
  double learning_rate = 0, weight_decay = 0;
};

// rows: of the training, without those held out.
[[nodiscard]] Recipe recipe_of(int64_t rows);

// Writes the end of [reader.train], which holds samples out, and the beginning of [reader.test], which has these.
// samples: what they are, such as "rows".
void write_split(JobText& job, const Request& request, const std::string& samples);

// Writes the tables [updater] and [early_stop].
void write_training(JobText& job, const Recipe& recipe, int64_t rows);

}  // namespace tenon::new_job
