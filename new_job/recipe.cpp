// SPDX-License-Identifier: Apache-2.0
#include "new_job/recipe.h"

#include <algorithm>
#include <bit>

namespace tenon::new_job {

Recipe recipe_of(int64_t rows) {
  constexpr int64_t kMostRowsRead = 4'000'000;  // of all passes
  Recipe recipe;
  recipe.batch =
      std::clamp(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows / 20 + 1))), int64_t{16}, int64_t{256});
  recipe.passes = std::clamp(kMostRowsRead / std::max(rows, int64_t{1}), int64_t{10}, int64_t{200});
  recipe.patience = std::max(recipe.passes / 4, int64_t{3});
  recipe.learning_rate = 0.002;
  recipe.weight_decay = 0.01;
  return recipe;
}

void write_split(JobText& job, const Request& request, const std::string& samples) {
  job.comment("These " + samples + " are not trained on: chosen by the seed, the same in every training.");
  job.key("hold_out",
          "{ fraction = " + toml_number(request.hold_out) + ", seed = " + std::to_string(request.seed) + " }");
  job.line();
  job.line("[reader.test]");
  job.key("held_out", "true");
}

void write_training(JobText& job, const Recipe& recipe, int64_t rows) {
  const int64_t steps = recipe.passes * ((rows + recipe.batch - 1) / recipe.batch);
  job.line();
  job.comment(
      "Adam with decoupled weight decay. The rate rises for a tenth of the steps, then falls along a cosine: a "
      "schedule for which many rates do.");
  job.line("[updater]");
  job.key("type", "\"adam\"");
  job.key("learning_rate", toml_number(recipe.learning_rate));
  job.key("weight_decay", toml_number(recipe.weight_decay));
  job.key("decoupled", "true");
  job.key("clip_norm", "1.0");
  job.key("schedule", "{ type = \"one_cycle\", steps = " + std::to_string(steps) + ", rise = 0.1 }");
  job.line();
  job.comment(
      "What is held out is measured after each pass. The training ends after so many passes without a better cost, and "
      "saves the model of the best one.");
  job.line("[early_stop]");
  job.key("metric", "\"cost\"");
  job.key("patience", std::to_string(recipe.patience));
  job.line();
  job.line("[save_best]");
}

}  // namespace tenon::new_job
