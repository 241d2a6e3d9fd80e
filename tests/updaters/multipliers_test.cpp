// The multipliers of one parameter, "param.<suffix>.rate_multiplier" and ".decay_multiplier": parameters of one set
// with different multipliers, under every updater, against the formula with the rate and the decay of each.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/update_model.h"
#include "tests/updaters/update_formulas.h"

namespace tenon_tests {

using namespace tenon;

namespace {

struct Multipliers {
  double rate, decay;
};
// The first two may be updated together. All other neighbours differ in the rate, the decay, or both.
const std::vector<Multipliers> kNeighbours = {{1, 1}, {1, 1}, {0.1, 1}, {0.1, 0}, {1, 0}, {0.5, 3}, {0, 1}};
const UpdateModel::Shapes kShapes = {{5}, {3, 4}, {2}, {16}, {7}, {1}, {5}};

// Parameters with these shapes and multipliers, and copies that the formulas update.
class Neighbours {
 public:
  Neighbours(bool rows, tn_dtype compute) : model_(2, {}, kShapes, attributes(rows), compute) {
    for (size_t i = 0; i < kShapes.size(); ++i) {
      const std::vector<float> values = drawn(model_.get(i).size());
      model_.set(i, values);
      tensors_.emplace_back(std::vector<double>(values.begin(), values.end()));
      began_.push_back(tensors_.back().value);
    }
  }

  [[nodiscard]] Updater updater(const std::string& type, const Attributes& attributes) const {
    return model_.updater(type, attributes);
  }
  [[nodiscard]] Machine machine_of(const std::vector<size_t>& numbers) const { return model_.machine_of(numbers); }
  // Updates the parameters `numbers`, those of the machine, and their copies by the rules.
  void step(const Updater& updater, const std::vector<Rule>& rules, const Machine& machine,
            const std::vector<size_t>& numbers) {
    ++steps_;
    std::vector<std::vector<float>> weights;
    for (const Tensor& tensor : tensors_) weights.push_back(drawn(tensor.value.size()));
    for (const size_t i : numbers) {
      std::vector<double> gradient(weights[i].begin(), weights[i].end());
      for (double& value : gradient) value /= UpdateModel::kSamples;
      rules[i](tensors_[i], gradient, steps_);
    }
    model_.backward_of(machine, numbers, weights);
    updater.update(machine);
  }
  // The tolerance is relative to the parameter's change: a hundredth of the effect of the nearest other multiplier.
  void expect_agreement(const std::string& what) const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const std::vector<double> got = model_.get(i);
      double worst = 0, moved = 0;
      for (size_t k = 0; k < got.size(); ++k) {
        worst = std::max(worst, std::abs(got[k] - tensors_[i].value[k]));
        moved = std::max(moved, std::abs(tensors_[i].value[k] - began_[i][k]));
      }
      EXPECT_LE(worst, 5e-4 * moved) << what << ": rate times " << kNeighbours[i].rate << ", decay times "
                                     << kNeighbours[i].decay << ", parameter " << i << " moved by " << moved;
      EXPECT_EQ(moved > 0, kNeighbours[i].rate > 0) << what;
    }
  }

 private:
  static std::vector<Attributes> attributes(bool rows) {
    std::vector<Attributes> result;
    for (const auto& [rate, decay] : kNeighbours)
      result.push_back(
          {{"sparse", rows}, {"param.values.rate_multiplier", rate}, {"param.values.decay_multiplier", decay}});
    return result;
  }
  std::vector<float> drawn(size_t count) {
    std::uniform_real_distribution<float> draw(-1, 1);
    std::vector<float> values(count);
    for (float& value : values) value = draw(random_);
    return values;
  }

  std::mt19937_64 random_{11};
  UpdateModel model_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<double>> began_;
  double steps_ = 0;
};

// The cases of all updaters, and penalties of the host, whose multiplier the updater's program may read, too.
std::vector<UpdateCase> cases() {
  const auto penalised = [&](double l1, double l2, Attributes more = {}) {
    more.insert(more.begin(), {{"l1", l1}, {"l2", l2}});
    return more;
  };
  std::vector<UpdateCase> result = update_cases();
  const std::vector<UpdateCase> penalties = {
      {"l2", "sgd", penalised(0, 0.3, rate(0.1)),
       [](double r, double d) { return with_penalty(sgd(0.1 * r, 0, false, 0), 0, 0.3 * d); }},
      {"l1", "sgd", penalised(0.05, 0, rate(0.1)),
       [](double r, double d) { return with_penalty(sgd(0.1 * r, 0, false, 0), 0.05 * d, 0); }},
      {"l1, l2 and decay", "sgd", penalised(0.05, 0.3, decayed(0.1)),
       [](double r, double d) { return with_penalty(sgd(0.1 * r, 0, false, 0.2 * d), 0.05 * d, 0.3 * d); }},
      {"l1 and l2 of adam", "adam", penalised(0.05, 0.3, rate(0.02)),
       [](double r, double d) { return with_penalty(adam(0.02 * r, 0, false), 0.05 * d, 0.3 * d); }},
  };
  result.insert(result.end(), penalties.begin(), penalties.end());
  return result;
}

using Numbers = std::vector<size_t>;
const Numbers kAll = {0, 1, 2, 3, 4, 5, 6};

// Checks updates by machines that take turns, each with the parameters of one part.
void check(const UpdateCase& of, bool rows, tn_dtype compute, const std::vector<Numbers>& parts = {kAll}) {
  Neighbours neighbours(rows, compute);
  const Updater updater = neighbours.updater(of.type, of.attributes);
  std::vector<Rule> rules;
  for (const auto& [rate, decay] : kNeighbours) rules.push_back(of.rule(rate, decay));
  std::vector<Machine> machines;
  for (const Numbers& part : parts) machines.push_back(neighbours.machine_of(part));
  for (size_t step = 0; step < 20; ++step)
    neighbours.step(updater, rules, machines[step % parts.size()], parts[step % parts.size()]);
  neighbours.expect_agreement(std::string(of.what) + (rows ? " of rows" : ""));
}

TEST(Multipliers, OfDenseGradients) {
  for (const tn_dtype compute : {TN_F32, TN_F64})
    for (const UpdateCase& of : cases()) check(of, false, compute);
}

TEST(Multipliers, OfGradientsOfRows) {
  for (const tn_dtype compute : {TN_F32, TN_F64})
    for (const UpdateCase& of : cases())
      if (!of.of_tensors) check(of, true, compute);
}

// One updater keeps separate calls for each machine, also for machines that share parameters.
TEST(Multipliers, OfMachinesThatTakeTurns) {
  for (const bool rows : {false, true})
    for (const UpdateCase& of : cases())
      if (!(rows && of.of_tensors)) check(of, rows, TN_F32, {kAll, {1, 2, 3}, {0, 2, 4}, kAll, {0, 1}, {3, 5, 6}});
}

}  // namespace
}  // namespace tenon_tests
