// Updaters against the published formulas in plain fp64: 50 steps, three tensors. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tenon/tenon_updater.hpp>

#include "tests/support/paths.h"
#include "tests/support/update_model.h"
#include "tests/updaters/update_formulas.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int kSteps = 50;

// Returns the largest difference from the formula, relative to the largest change of a parameter. count_per_tensor: the
// formula counts tensors instead of steps.
double distance_to(const Rule& rule, const std::string& type, const Attributes& attributes, bool count_per_tensor,
                   int threads = 2, const UpdateModel::Shapes& shapes = UpdateModel::kShapes) {
  const UpdateModel model(threads, {}, shapes);
  const Updater updater = model.updater(type, attributes);
  std::mt19937_64 random(11);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<Tensor> tensors;
  std::vector<std::vector<double>> began;
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::vector<float> values(model.get(i).size());
    for (float& value : values) value = draw(random);
    model.set(i, values);
    tensors.emplace_back(std::vector<double>(values.begin(), values.end()));
    began.push_back(tensors[i].value);
  }
  double t = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<float>> weights;
    if (!count_per_tensor) ++t;
    for (Tensor& tensor : tensors) {
      std::vector<float> weight(tensor.value.size());
      for (float& value : weight) value = draw(random);
      std::vector<double> gradient(weight.begin(), weight.end());
      for (double& value : gradient) value /= UpdateModel::kSamples;
      if (count_per_tensor) ++t;
      rule(tensor, gradient, t);
      weights.push_back(std::move(weight));
    }
    model.step(updater, weights);
  }
  double worst = 0;
  double moved = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<double> got = model.get(i);
    for (size_t j = 0; j < got.size(); ++j) {
      worst = std::max(worst, std::abs(got[j] - tensors[i].value[j]));
      moved = std::max(moved, std::abs(tensors[i].value[j] - began[i][j]));
    }
  }
  return worst / moved;
}

constexpr double kTolerance = 5e-5;  // 50 roundings of fp32 parameters around 1, relative to changes of 0.05 or more

void expect_follows(const Rule& rule, const std::string& type, const Attributes& attributes) {
  for (const int threads : {1, 2}) EXPECT_LT(distance_to(rule, type, attributes, false, threads), kTolerance) << type;
}

TEST(Sgd, FollowsTheFormula) {
  EXPECT_LT(distance_to(sgd(0.1, 0, false, 0), "sgd", {{"learning_rate", 0.1}}, false), kTolerance);
  EXPECT_LT(distance_to(sgd(0.1, 0.9, false, 0), "sgd", {{"learning_rate", 0.1}, {"momentum", 0.9}}, false),
            kTolerance);
  EXPECT_LT(distance_to(sgd(0.1, 0.9, true, 0), "sgd", {{"learning_rate", 0.1}, {"momentum", 0.9}, {"nesterov", true}},
                        false),
            kTolerance);
  EXPECT_LT(distance_to(sgd(0.1, 0.5, false, 0.01), "sgd",
                        {{"learning_rate", 0.1}, {"momentum", 0.5}, {"weight_decay", 0.01}}, false),
            kTolerance);
}

TEST(Sgd, OtherFormulasAreToldApart) {
  EXPECT_GT(distance_to(sgd(0.1001, 0, false, 0), "sgd", {{"learning_rate", 0.1}}, false), kTolerance);
  EXPECT_GT(distance_to(sgd(0.1, 0.9, true, 0), "sgd", {{"learning_rate", 0.1}, {"momentum", 0.9}}, false), kTolerance);
}

TEST(Sgd, NesterovNeedsMomentum) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  try {
    static_cast<void>(host.updater("sgd", {{"nesterov", true}}));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_INVALID);
    EXPECT_NE(std::string(error.what()).find("nesterov"), std::string::npos) << error.what();
  }
}

TEST(Adam, FollowsTheFormula) {
  const Attributes plain = {{"learning_rate", 0.01}};
  EXPECT_LT(distance_to(adam(0.01, 0, false), "adam", plain, false), kTolerance);
  EXPECT_LT(distance_to(adam(0.01, 0.1, false), "adam", {{"learning_rate", 0.01}, {"weight_decay", 0.1}}, false),
            kTolerance);
  EXPECT_LT(distance_to(adam(0.01, 0.1, true), "adam",
                        {{"learning_rate", 0.01}, {"weight_decay", 0.1}, {"decoupled", true}}, false),
            kTolerance);
}

// epsilon is so large compared with the roots that the place where it is added matters. Adam adds it to the corrected
// root, which is the absolute gradient in the first step; other updaters have other places.
TEST(Updaters, EpsilonStandsWhereTheFormulaHasIt) {
  const Attributes large = {{"learning_rate", 0.1}, {"epsilon", 0.1}};
  expect_follows(adam(0.1, 0, false, 0.1), "adam", large);
  expect_follows(adagrad(0.1, 0, 0, 0.1), "adagrad", large);
  expect_follows(rowwise_adagrad(0.1, 0, 0, UpdateModel::kSamples, 0.1), "rowwise_adagrad", large);
  expect_follows(rmsprop(0.1, false, 0, 0, 0.1), "rmsprop", large);
  expect_follows(rmsprop(0.1, true, 0.5, 0, 0.1), "rmsprop",
                 {{"learning_rate", 0.1}, {"epsilon", 0.1}, {"centered", true}, {"momentum", 0.5}});
  expect_follows(adadelta(0.1, 0.95, 0, 0.1), "adadelta", large);
  expect_follows(adamax(0.1, 0.9, 0, 0.1), "adamax", large);
  expect_follows(lamb({.rate = 0.1, .epsilon = 0.1}), "lamb", large);
}

// A power of beta that advances once per tensor, as in tiny-dnn, is wrong if there are several tensors.
TEST(Adam, BiasCorrectionAdvancesPerStep) {
  EXPECT_GT(distance_to(adam(0.01, 0, false), "adam", {{"learning_rate", 0.01}}, true), kTolerance);
}

TEST(Adagrad, FollowsTheFormula) {
  expect_follows(adagrad(0.05, 0, 0), "adagrad", {{"learning_rate", 0.05}});
  expect_follows(adagrad(0.05, 0.5, 0.01), "adagrad",
                 {{"learning_rate", 0.05}, {"initial_sum", 0.5}, {"weight_decay", 0.01}});
  EXPECT_GT(distance_to(adagrad(0.05, 0.001, 0), "adagrad", {{"learning_rate", 0.05}}, false), kTolerance);
}

TEST(RowwiseAdagrad, FollowsTheFormula) {
  expect_follows(rowwise_adagrad(0.05, 0.5, 0.01, UpdateModel::kSamples), "rowwise_adagrad",
                 {{"learning_rate", 0.05}, {"initial_sum", 0.5}, {"weight_decay", 0.01}});
  EXPECT_GT(distance_to(adagrad(0.05, 0, 0), "rowwise_adagrad", {{"learning_rate", 0.05}}, false), kTolerance);
}

TEST(RmsProp, FollowsTheFormula) {
  const Attributes plain = {{"learning_rate", 0.01}};
  expect_follows(rmsprop(0.01, false, 0, 0), "rmsprop", plain);
  expect_follows(rmsprop(0.01, false, 0.9, 0.01), "rmsprop",
                 {{"learning_rate", 0.01}, {"momentum", 0.9}, {"weight_decay", 0.01}});
  EXPECT_GT(distance_to(rmsprop(0.01, true, 0, 0), "rmsprop", plain, false), kTolerance);
}

// The variance is not 0 in the first step, because the mean and the mean square are both scaled by 1 - rho.
TEST(RmsProp, CenteredFollowsTheFormula) {
  expect_follows(rmsprop(0.01, true, 0, 0), "rmsprop", {{"learning_rate", 0.01}, {"centered", true}});
  expect_follows(rmsprop(0.01, true, 0.5, 0), "rmsprop",
                 {{"learning_rate", 0.01}, {"centered", true}, {"momentum", 0.5}});
}

TEST(Adadelta, FollowsTheFormula) {
  expect_follows(adadelta(1, 0.95, 0), "adadelta", {});
  expect_follows(adadelta(0.5, 0.8, 0.01), "adadelta", {{"learning_rate", 0.5}, {"rho", 0.8}, {"weight_decay", 0.01}});
  EXPECT_GT(distance_to(adadelta(1, 0.9, 0), "adadelta", {}, false), kTolerance);
}

TEST(Adamax, FollowsTheFormula) {
  expect_follows(adamax(0.01, 0.9, 0), "adamax", {{"learning_rate", 0.01}});
  expect_follows(adamax(0.01, 0, 0.05), "adamax", {{"learning_rate", 0.01}, {"beta1", 0.0}, {"weight_decay", 0.05}});
  EXPECT_GT(distance_to(adamax(0.01, 0.9, 0), "adamax", {{"learning_rate", 0.01}}, true), kTolerance);
}

TEST(Lion, FollowsTheFormula) {
  expect_follows(lion(0.01, 0), "lion", {{"learning_rate", 0.01}});
  expect_follows(lion(0.01, 0.1), "lion", {{"learning_rate", 0.01}, {"weight_decay", 0.1}});
}
TEST(Nadam, FollowsTheFormula) {
  expect_follows(nadam(0.01, 0), "nadam", {{"learning_rate", 0.01}});
  expect_follows(nadam(0.01, 0.05), "nadam", {{"learning_rate", 0.01}, {"weight_decay", 0.05}});
}
// With beta2 = 0.9 the first steps are not rectified and the later ones are.
TEST(Radam, FollowsTheFormula) {
  expect_follows(radam(0.01, 0, 0.999), "radam", {{"learning_rate", 0.01}});
  expect_follows(radam(0.01, 0.05, 0.9), "radam", {{"learning_rate", 0.01}, {"weight_decay", 0.05}, {"beta2", 0.9}});
}
TEST(Ftrl, FollowsTheFormula) {
  expect_follows(ftrl(0.1, 0, 0), "ftrl", {{"learning_rate", 0.1}});
  expect_follows(ftrl(0.1, 0.3, 0.2), "ftrl", {{"learning_rate", 0.1}, {"l1_strength", 0.3}, {"l2_strength", 0.2}});
}
// Also where the square of the gradient is smaller than every float: the first value of the element is forgotten.
TEST(Ftrl, TakesATinyGradientForOne) {
  const UpdateModel model(1);
  std::vector<std::vector<float>> weights;
  for (size_t i = 0; i < UpdateModel::kShapes.size(); ++i) {
    const size_t count = model.get(i).size();
    model.set(i, std::vector<float>(count, 0.5F));
    weights.emplace_back(count, 1e-21F);
  }
  model.step(model.updater("ftrl", {{"learning_rate", 0.1}}), weights);
  for (size_t i = 0; i < weights.size(); ++i)
    for (const double value : model.get(i)) EXPECT_LT(std::abs(value), 1e-20);
}

TEST(Proximal, FollowsTheFormula) {
  expect_follows(proximal_sgd(0.1, 0, 0), "proximal_sgd", {{"learning_rate", 0.1}});
  expect_follows(proximal_sgd(0.1, 0.3, 0.2), "proximal_sgd",
                 {{"learning_rate", 0.1}, {"l1_strength", 0.3}, {"l2_strength", 0.2}});
  expect_follows(proximal_adagrad(0.1, 0.1, 0, 0), "proximal_adagrad", {{"learning_rate", 0.1}});
  expect_follows(proximal_adagrad(0.1, 0.5, 0.3, 0.2), "proximal_adagrad",
                 {{"learning_rate", 0.1}, {"initial_sum", 0.5}, {"l1_strength", 0.3}, {"l2_strength", 0.2}});
}

// A step across 0 ends at exactly 0, whatever the sign.
TEST(Proximal, SmallElementsBecomeZero) {
  for (const char* type : {"proximal_sgd", "proximal_adagrad"}) {
    const UpdateModel model(1);
    const Updater updater = model.updater(type, {{"learning_rate", 0.1}, {"l1_strength", 1.0}});
    std::vector<std::vector<float>> nothing;
    for (size_t i = 0; i < UpdateModel::kShapes.size(); ++i) {
      std::vector<float> small(model.get(i).size());
      for (size_t k = 0; k < small.size(); ++k) small[k] = k % 2 == 0 ? 0.09F : -0.09F;
      model.set(i, small);
      nothing.emplace_back(small.size(), 0.0F);
    }
    model.step(updater, nothing);
    for (size_t i = 0; i < nothing.size(); ++i)
      for (const double value : model.get(i)) EXPECT_EQ(value, 0) << type;
  }
}

TEST(Adafactor, FollowsTheFormula) {
  expect_follows(adafactor(0.05, 0, UpdateModel::kSamples), "adafactor", {{"learning_rate", 0.05}});
  expect_follows(adafactor(0.05, 0.1, UpdateModel::kSamples), "adafactor",
                 {{"learning_rate", 0.05}, {"weight_decay", 0.1}});
  for (const int threads : {1, 3})
    EXPECT_LT(distance_to(adafactor(0.05, 0, UpdateModel::kSamples), "adafactor", {{"learning_rate", 0.05}}, false,
                          threads, {{5000}, {3}, {70, 31}}),
              kTolerance);
  EXPECT_GT(distance_to(adafactor(0.05, 0, 1), "adafactor", {{"learning_rate", 0.05}}, false), kTolerance);
}

// The states are small, and saved in their shapes.
TEST(Adafactor, KeepsNumbersOfRowsAndColumns) {
  const UpdateModel model(1);
  const Updater updater = model.updater("adafactor", {});
  std::vector<std::vector<float>> weights;
  for (size_t i = 0; i < UpdateModel::kShapes.size(); ++i) weights.emplace_back(model.get(i).size(), 1.0F);
  model.step(updater, weights);
  const UpdaterState state(updater, model.parameters());
  EXPECT_EQ(state.get("rows", "x1.values").shape, (std::vector<int64_t>{4}));
  EXPECT_EQ(state.get("columns", "x1.values").shape, (std::vector<int64_t>{3, 4}));
  const float* const columns = static_cast<const float*>(state.get("columns", "x1.values").data);
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(columns[i], 1.0 / 16, 1e-7);
}

TEST(Lamb, FollowsTheFormula) {
  expect_follows(lamb({}), "lamb", {{"learning_rate", 0.01}});
  expect_follows(lamb({.decay = 0.1}), "lamb", {{"learning_rate", 0.01}, {"weight_decay", 0.1}});
  expect_follows(lamb({.least = 3, .most = 3.5}), "lamb",
                 {{"learning_rate", 0.01}, {"least_norm", 3.0}, {"most_norm", 3.5}});
}

// The norms require that all of a tensor is read before any part of it is written.
TEST(Lamb, FollowsTheFormulaOverTensorsOfManyPieces) {
  for (const int threads : {1, 3})
    EXPECT_LT(distance_to(lamb({.decay = 0.1}), "lamb", {{"learning_rate", 0.01}, {"weight_decay", 0.1}}, false,
                          threads, {{5000}, {3}, {70, 31}}),
              kTolerance);
}

// The order of addition in the norms depends on the shape alone.
TEST(Lamb, ThreadsChangeNothing) {
  const auto after_three_steps = [](int threads) {
    const UpdateModel model(threads, {}, {{9000}});
    const Updater updater = model.updater("lamb", {{"learning_rate", 0.01}, {"weight_decay", 0.1}});
    std::vector<float> values(model.get(0).size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    model.set(0, values);
    for (int i = 0; i < 3; ++i) model.step(updater, {values});
    return model.get(0);
  };
  const std::vector<double> one = after_three_steps(1);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(after_three_steps(threads), one);
}

TEST(Lamb, OtherFormulasAreToldApart) {
  const Attributes plain = {{"learning_rate", 0.01}};
  EXPECT_GT(distance_to(lamb({.rate = 0.01001}), "lamb", plain, false), kTolerance);
  EXPECT_GT(distance_to(lamb({.decay = 0.001}), "lamb", plain, false), kTolerance);
  // With decay: without it the quotient of the norms cancels the bias correction.
  EXPECT_GT(distance_to(lamb({.decay = 0.1}), "lamb", {{"learning_rate", 0.01}, {"weight_decay", 0.1}}, true),
            kTolerance);
  EXPECT_GT(distance_to(adam(0.01, 0, false), "lamb", plain, false), kTolerance);
}

// A norm of 0 would keep a tensor of zeros at 0 forever, so its first step is that of Adam.
TEST(Lamb, LeavesZero) {
  const UpdateModel model(1);
  const Updater updater = model.updater("lamb", {{"learning_rate", 0.01}});
  std::vector<std::vector<float>> weights;
  for (size_t i = 0; i < UpdateModel::kShapes.size(); ++i) {
    model.set(i, std::vector<float>(model.get(i).size(), 0.0F));
    weights.emplace_back(model.get(i).size(), 4.0F);
  }
  model.step(updater, weights);
  for (size_t i = 0; i < weights.size(); ++i)
    for (const double value : model.get(i)) EXPECT_NEAR(value, -0.01, 1e-7);
}

// An element whose gradients were all 0 does not change.
TEST(Updaters, NoGradientIsNoStep) {
  for (const char* type : {"adagrad", "rmsprop", "adadelta", "adamax", "adam", "lamb", "sgd", "lion", "nadam", "radam",
                           "ftrl", "proximal_sgd", "proximal_adagrad", "adafactor"}) {
    const UpdateModel model(1);
    const Updater updater = model.updater(type, {});
    std::vector<std::vector<float>> nothing;
    std::vector<std::vector<double>> before;
    for (size_t i = 0; i < UpdateModel::kShapes.size(); ++i) {
      model.set(i, std::vector<float>(model.get(i).size(), 0.25F));
      nothing.emplace_back(model.get(i).size(), 0.0F);
      before.push_back(model.get(i));
    }
    for (int i = 0; i < 3; ++i) model.step(updater, nothing);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(model.get(i), before[i]) << type;
  }
}

TEST(Updaters, RangesAreChecked) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const auto refused = [&](const std::string& type, const std::string& attribute, double value) {
    try {
      static_cast<void>(host.updater(type, {{attribute, value}}));
      ADD_FAILURE() << type << " accepts " << attribute << " = " << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID);
      EXPECT_NE(std::string(error.what()).find(attribute), std::string::npos) << error.what();
    }
  };
  refused("adagrad", "initial_sum", -1);
  refused("rmsprop", "rho", 1);
  refused("rmsprop", "momentum", 1.5);
  refused("adadelta", "epsilon", 0);
  refused("adadelta", "rho", 1);
  refused("adamax", "beta1", 1);
  refused("adamax", "beta2", 1);
  for (const char* type : {"lion", "nadam", "radam"})
    for (const char* beta : {"beta1", "beta2"}) refused(type, beta, 1);
  refused("radam", "beta2", 0.7);
  refused("ftrl", "l1_strength", -1);
  refused("proximal_sgd", "l1_strength", -1);
  refused("adafactor", "epsilon", 0);
  refused("adafactor", "clip", 0);
  refused("proximal_adagrad", "initial_sum", -1);
  refused("lamb", "beta1", 1);
  refused("lamb", "beta2", 1);
  refused("lamb", "most_norm", 0);
  for (const char* type : {"adagrad", "rmsprop", "adadelta", "adamax", "lamb"}) refused(type, "weight_decay", -0.1);
}

TEST(Updaters, UnknownAttributesAndTypesAreNamed) {
  const Host host(HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const auto message = [&](const std::string& type, const Attributes& attributes) -> std::string {
    try {
      static_cast<void>(host.updater(type, attributes));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("adam", {{"beta3", 0.9}}).find("beta3"), std::string::npos);
  EXPECT_NE(message("adam", {{"learning_rat", 0.9}}).find("did you mean \"learning_rate\""), std::string::npos);
  EXPECT_NE(message("adm", {}).find("did you mean \"adam\""), std::string::npos) << message("adm", {});
}

}  // namespace
}  // namespace tenon_tests
