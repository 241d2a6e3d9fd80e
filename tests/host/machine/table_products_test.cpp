// Products of embeddings, as of skip-gram: machines read the rows where they lie, and compute gradients of tables
// without copies of the products. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int64_t kWords = 12, kSize = 5, kSamples = 7, kTargets = 3;

// Scores [1, kTargets] of a row "centres" and of rows "targets"; the cost is their sum by `weights`.
class Scores {
 public:
  explicit Scores(int threads, bool keep_all = false) : host_({threads, {plugin_folder()}, nullptr, {}}) {
    const Attributes table = {{"vocabulary", kWords}, {"size", kSize}};
    const auto ids = [&](const char* name, int64_t count) {
      DataOptions options;
      options.name = name, options.dtype = TN_I64, options.shape = {count}, options.index_limit = kWords;
      return host_.data(options);
    };
    DataOptions weights;
    weights.name = "weights", weights.shape = {1, kTargets};
    const Layer centres = host_.layer("embedding", {ids("centre", 1)}, table, "centres");
    const Layer targets = host_.layer("embedding", {ids("target", kTargets)}, table, "targets");
    scores_ = host_.layer("matmul", {centres, targets}, {{"transpose_b", true}}, "scores");
    const Layer weighted = host_.layer("mul", {scores_, host_.data(weights)}, {}, "weighted");
    const Layer cost = host_.layer("sum_cost", {weighted}, {}, "cost");
    parameters_ = host_.parameters({cost, scores_}, 2);
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = true;
    options.keep_all = keep_all;
    machine_ = host_.machine(parameters_, {cost, scores_}, options);
    for (int64_t i = 0; i < kSamples; ++i) centre_.push_back(i * i % kWords);
    for (int64_t i = 0; i < kSamples * kTargets; ++i) {
      target_.push_back((5 * i + 2) % kWords);
      weight_.push_back(static_cast<float>(std::sin(static_cast<double>(i))));
    }
  }

  void step() const {
    machine_.forward({{"centre", {TN_I64, {kSamples, 1}, centre_.data()}},
                      {"target", {TN_I64, {kSamples, kTargets}, target_.data()}},
                      {"weights", {TN_F32, {kSamples, 1, kTargets}, weight_.data()}}});
    machine_.backward();
  }
  [[nodiscard]] std::vector<float> scores() const { return values(machine_.output(scores_)); }
  [[nodiscard]] std::vector<float> gradient(const std::string& table) const {
    return values(machine_.gradient(table + ".weight"));
  }
  [[nodiscard]] std::vector<float> weight(const std::string& table) const {
    return values(parameters_.get(table + ".weight"));
  }
  // Returns the number of calls of each primitive.
  [[nodiscard]] std::map<std::string, int> calls() const {
    std::map<std::string, int> result;
    const auto plan = nlohmann::json::parse(machine_.plan());
    for (const auto& call : plan.at("calls")) ++result[call.at("call").get<std::string>()];
    return result;
  }

  [[nodiscard]] int64_t centre(int64_t sample) const { return centre_[static_cast<size_t>(sample)]; }
  [[nodiscard]] const std::vector<int64_t>& targets() const { return target_; }
  [[nodiscard]] double cost_weight(size_t i) const { return static_cast<double>(weight_[i]); }

 private:
  static std::vector<float> values(const Array& array) {
    const auto* first = static_cast<const float*>(array.data);
    int64_t count = 1;
    for (const int64_t size : array.shape) count *= size;
    return {first, first + count};
  }

  Host host_;
  Layer scores_;
  Parameters parameters_;
  Machine machine_;
  std::vector<int64_t> centre_, target_;
  std::vector<float> weight_;
};

TEST(TableProducts, ReadRowsWhereTheyLie) {
  std::map<std::string, int> calls = Scores(1).calls();
  EXPECT_EQ(calls["gather_gemm"], 2) << "the scores, and the gradient of the centres by rows of the targets";
  EXPECT_EQ(calls["coalesce"], 2);
  EXPECT_EQ(calls["gather"], 0);
}

// Rows that are outputs themselves are gathered.
TEST(TableProducts, KeepRowsThatAreRead) {
  const Scores kept(1, true), fused(1);
  std::map<std::string, int> calls = kept.calls();
  EXPECT_EQ(calls["gather"], 2);
  EXPECT_EQ(calls["gather_gemm"], 0);
  kept.step();
  fused.step();
  // The kept product has an epilogue, whose kernel sums in another order.
  for (size_t i = 0; i < kept.scores().size(); ++i) EXPECT_NEAR(kept.scores()[i], fused.scores()[i], 1e-6F) << i;
  for (const char* table : {"centres", "targets"}) EXPECT_EQ(kept.gradient(table), fused.gradient(table)) << table;
}

TEST(TableProducts, HaveTheGradientsOfTheFormula) {
  for (const int threads : {1, 2}) {
    const Scores model(threads);
    model.step();
    const std::vector<float> of_centres = model.weight("centres"), of_targets = model.weight("targets");
    std::vector<double> centres(of_centres.size()), targets(of_targets.size());
    const std::vector<float> scores = model.scores();
    for (int64_t s = 0; s < kSamples; ++s)
      for (int64_t t = 0; t < kTargets; ++t) {
        const auto at = static_cast<size_t>(s * kTargets + t);
        const auto x = static_cast<size_t>(model.centre(s) * kSize),
                   y = static_cast<size_t>(model.targets()[at] * kSize);
        double score = 0;
        for (size_t k = 0; k < kSize; ++k) {
          const auto centre = static_cast<double>(of_centres[x + k]), target = static_cast<double>(of_targets[y + k]);
          score += centre * target;
          centres[x + k] += model.cost_weight(at) * target / kSamples;
          targets[y + k] += model.cost_weight(at) * centre / kSamples;
        }
        EXPECT_NEAR(static_cast<double>(scores[at]), score, 1e-5);
      }
    const std::vector<float> got_centres = model.gradient("centres"), got_targets = model.gradient("targets");
    for (size_t i = 0; i < centres.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(got_centres[i]), centres[i], 1e-5) << i;
      EXPECT_NEAR(static_cast<double>(got_targets[i]), targets[i], 1e-5) << i;
    }
  }
}

}  // namespace
}  // namespace tenon_tests
