// Updates of a ParameterSet that grew: added parameters are in slabs of their own, with states of their own.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "host/api/host/host.h"
#include "host/training/program_updater.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

constexpr int64_t kRows = 4;
constexpr double kRate = 0.5, kMomentum = 0.5;

// All tables have one shape, so tables in different slabs have the same offsets. The cost of a table is the mean of its
// squares, summed over a row, so the gradient of each number p is 2 p / kRows.
class AddedParameters : public testing::Test {
 protected:
  AddedParameters() : host_(options()) {
    DataSource ids, zeros;
    ids.dtype = TN_I32;
    zeros.dtype = TN_F32, zeros.shape = {kRows};
    ids_ = host_.factory.data("ids", ids);
    zeros_ = host_.factory.data("zeros", zeros);
  }

  LayerOutput cost(const std::string& name) {
    const LayerOutput table = host_.factory.layer(
        "embedding", name, {{ids_, 0}}, {{"vocabulary", kRows}, {"size", kRows}, {"param.weight.sparse", false}});
    return host_.factory.layer("square_error", name + "_cost", {table, {zeros_, 0}}, {});
  }
  std::unique_ptr<Machine> machine(const std::vector<LayerOutput>& costs) {
    MachineOptions options;
    options.max_samples = kRows;
    options.training = true;
    return std::make_unique<Machine>(Topology::trace(costs), set_, host_.registry, std::vector{host_.device("cpu")},
                                     host_.parallel, options);
  }
  // Sets every number of a table to 1; `step` computes the expected number by the formula.
  void begin(const std::string& name) {
    std::fill_n(set_->change(name + ".weight"), kRows * kRows, 1.0F);
    expected_[name] = {};
  }
  void step(Machine& machine, Updater& updater, const std::vector<std::string>& names) {
    const std::vector<int32_t> ids = {0, 1, 2, 3};
    const std::vector<float> zeros(kRows * kRows, 0.0F);
    machine.forward(by_number(
        machine.feeds(), {{"ids", {TN_I32, {kRows}, ids.data()}}, {"zeros", {TN_F32, {kRows, kRows}, zeros.data()}}}));
    machine.backward();
    updater.update(machine.step(), UsedNames());
    machine.step().commit(UsedNames());
    for (const std::string& name : names) {
      Number& number = expected_[name];
      number.velocity = kMomentum * number.velocity + 2 * number.value / kRows;
      number.value -= kRate * number.velocity;
    }
    for (const auto& [name, number] : expected_)
      for (int64_t i = 0; i < kRows * kRows; ++i)
        ASSERT_NEAR(static_cast<double>(set_->values(name + ".weight")[i]), number.value, 1e-6) << name << " " << i;
  }

  Host host_;
  LayerRef ids_, zeros_;
  std::shared_ptr<ParameterSet> set_;

 private:
  static HostOptions options() {
    HostOptions options;
    options.threads = 1;
    options.plugin_paths = {tenon_tests::plugin_folder()};
    return options;
  }
  struct Number {
    double value = 1, velocity = 0;
  };
  std::map<std::string, Number> expected_;
};

TEST_F(AddedParameters, AreUpdatedWhereTheyLie) {
  const LayerOutput x0 = cost("x0"), x1 = cost("x1"), y0 = cost("y0"), y1 = cost("y1");
  set_ = ParameterSet::create(Topology::trace({x0, x1}).declarations(), 1, host_.allocator);
  begin("x0"), begin("x1");
  ProgramUpdater updater(host_.registry.updater("sgd"), {{"learning_rate", kRate}, {"momentum", kMomentum}});
  const auto both = machine({x0, x1});
  step(*both, updater, {"x0", "x1"});
  set_->add(Topology::trace({y0, y1}).declarations(), 1);
  begin("y0"), begin("y1");
  ASSERT_NE(set_->find("x0.weight").slab, set_->find("y1.weight").slab);
  ASSERT_EQ(set_->find("x1.weight").offset, set_->find("y1.weight").offset);

  // In this machine y1 follows x0, as x1 follows x0 in its slab.
  const auto across = machine({x0, y1});
  step(*across, updater, {"x0", "y1"});
  const auto all = machine({x0, x1, y0, y1});
  step(*all, updater, {"x0", "x1", "y0", "y1"});
  step(*across, updater, {"x0", "y1"});  // the updater kept the calls of this machine
  step(*both, updater, {"x0", "x1"});
}

}  // namespace
}  // namespace tenon_tests
