// Features that the host adds to every updater: schedule, clipping, L1 and L2, updates of a part of the parameters,
// immutable parameters.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "host/training/updater_options.h"
#include "tests/support/update_model.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using Weights = std::vector<std::vector<float>>;

// Returns weights that are all w: the gradients are w / 4.
Weights all(float w) { return {std::vector<float>(20, w), std::vector<float>(48, w), std::vector<float>(4, w)}; }

void set_all(const UpdateModel& model, float value) {
  for (size_t i = 0; i < 3; ++i) model.set(i, std::vector<float>(model.get(i).size(), value));
}

void expect_all(const UpdateModel& model, size_t tensor, double value) {
  for (const double got : model.get(tensor)) ASSERT_NEAR(got, value, 1e-6) << "tensor " << tensor;
}

TEST(Updating, FollowsTheSchedule) {
  const UpdateModel model(1);
  set_all(model, 0);
  const Updater updater = model.updater(
      "sgd", {{"learning_rate", 1.0}, {"schedule.type", "step"}, {"schedule.steps", 2}, {"schedule.rate", 0.1}});
  const double moved[] = {1, 1.1, 1.2, 1.21};  // by 1, 0.1, 0.1, 0.01
  for (const double value : moved) {
    model.step(updater, all(-4));
    for (size_t i = 0; i < 3; ++i) expect_all(model, i, value);
  }
}

TEST(Updating, ClipsByTheNormOfAllGradients) {
  for (const int threads : {1, 3}) {
    const UpdateModel model(threads);
    set_all(model, 0);
    const Updater updater = model.updater("sgd", {{"learning_rate", 1.0}, {"clip_norm", 1.5}});
    model.step(updater, all(8));  // 72 gradients of 2: norm 2 sqrt(72)
    for (size_t i = 0; i < 3; ++i) expect_all(model, i, -1.5 / std::sqrt(72));
    set_all(model, 0);
    model.step(updater, all(0.04F));  // norm 0.085: not clipped
    for (size_t i = 0; i < 3; ++i) expect_all(model, i, -0.01);
    model.step(updater, all(0));
    for (size_t i = 0; i < 3; ++i) expect_all(model, i, -0.01);
  }
}

TEST(Updating, ClipsByValueThenDecays) {
  const UpdateModel model(2);
  set_all(model, 2);
  model.step(model.updater("sgd", {{"learning_rate", 1.0}, {"clip_value", 0.5}}), all(8));
  for (size_t i = 0; i < 3; ++i) expect_all(model, i, 1.5);
  set_all(model, 2);
  model.step(model.updater("sgd", {{"learning_rate", 1.0}, {"clip_value", 0.5}, {"l2", 0.1}}), all(8));
  for (size_t i = 0; i < 3; ++i) expect_all(model, i, 2 - 0.5 - 0.2);
  set_all(model, -2);
  model.step(model.updater("sgd", {{"learning_rate", 1.0}, {"l1", 0.25}, {"l2", 0.1}}), all(0));
  for (size_t i = 0; i < 3; ++i) expect_all(model, i, -2 + 0.25 + 0.2);
  set_all(model, 0);
  model.step(model.updater("sgd", {{"learning_rate", 1.0}, {"l1", 0.25}}), all(0));
  for (size_t i = 0; i < 3; ++i) expect_all(model, i, 0);
}

TEST(Updating, OfAModelLeavesTheOthersAndDropsTheirGradients) {
  const UpdateModel model(2);
  set_all(model, 0);
  const Updater updater = model.updater("sgd", {{"learning_rate", 1.0}});
  model.backward(all(4));
  updater.update(model.machine(), model.output(1));
  expect_all(model, 0, 0);
  expect_all(model, 1, -1);
  expect_all(model, 2, 0);
  model.step(updater, all(4));  // nothing of the dropped gradients is left
  expect_all(model, 0, -1);
  expect_all(model, 1, -2);
  expect_all(model, 2, -1);
  model.backward(all(4));
  updater.update(model.machine(), model.output(0));  // begins at the same parameter as the update of all
  expect_all(model, 0, -2);
  expect_all(model, 1, -2);
  model.step(updater, all(4));
  expect_all(model, 0, -3);
  expect_all(model, 1, -3);
  expect_all(model, 2, -2);
}

TEST(Updating, FrozenParametersCostNothing) {
  const UpdateModel frozen(1, {"x0", "x2.values"});
  set_all(frozen, 0);
  frozen.step(frozen.updater("sgd", {{"learning_rate", 1.0}}), all(4));
  expect_all(frozen, 0, 0);
  expect_all(frozen, 1, -1);
  expect_all(frozen, 2, 0);
  int64_t backward = 0;
  const nlohmann::json plan = nlohmann::json::parse(frozen.machine().plan());
  for (const nlohmann::json& call : plan.at("calls")) {
    if (call.at("phase") != "backward") continue;
    ++backward;
    for (const nlohmann::json& layer : call.at("layers")) EXPECT_TRUE(layer == "x1" || layer == "cost1") << call.dump();
  }
  EXPECT_GT(backward, 0);
  try {
    const UpdateModel wrong(1, {"x"});  // "x" names neither a parameter nor its layer
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_NOT_FOUND);
    EXPECT_NE(std::string(error.what()).find("immutable parameter \"x\""), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tenon_tests
