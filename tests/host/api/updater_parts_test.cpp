// A step of several updaters, each for a part of the parameters, in the public API. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tenon_machine.h>

#include <functional>
#include <tenon/tenon_updater.hpp>

#include "tests/support/update_model.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::HasSubstr;

using Weights = std::vector<std::vector<float>>;

// Returns weights that are all w: the gradients are w / 4.
Weights all(float w) { return {std::vector<float>(20, w), std::vector<float>(48, w), std::vector<float>(4, w)}; }

Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {TN_OK, ""};
}

// The values in the shape of a parameter.
Array reshaped(const Parameters& of, const std::string& name, Array values) {
  values.shape = of.get(name).shape;
  return values;
}

class Parts : public testing::Test {
 protected:
  explicit Parts() {
    for (size_t i = 0; i < 3; ++i) model_.set(i, std::vector<float>(model_.get(i).size(), 0));
  }
  void expect(const std::vector<double>& values) const {
    for (size_t i = 0; i < 3; ++i)
      for (const double got : model_.get(i)) ASSERT_NEAR(got, values[i], 1e-6) << "parameter " << i;
  }
  [[nodiscard]] Updater sgd(double rate) const { return model_.updater("sgd", {{"learning_rate", rate}}); }

  const UpdateModel model_ = UpdateModel(1);
};

TEST_F(Parts, HaveUpdatersOfTheirOwn) {
  const Updater one = sgd(1), half = sgd(0.5), rest = sgd(0.25);
  for (int step = 1; step <= 2; ++step) {
    model_.backward(all(4));
    update_parameters(one, model_.machine(), {"x0"});
    update_parameters(half, model_.machine(), {"x2.values"});
    rest.update(model_.machine());
    expect({-1.0 * step, -0.25 * step, -0.5 * step});
  }
}

TEST_F(Parts, EndWithACommit) {
  const Updater one = sgd(1);
  model_.backward(all(4));
  update_parameters(one, model_.machine(), {"x1", "x1.values"});
  commit(model_.machine());
  expect({0, -1, 0});
  model_.backward(all(8));  // nothing of the dropped gradients is left
  commit(model_.machine());
  expect({0, -1, 0});
  one.update(model_.machine());  // there are no gradients
  commit(model_.machine());
  update_parameters(one, model_.machine(), {"x1"});
  expect({0, -1, 0});
}

// An update that the application computed.
TEST_F(Parts, EndWithValues) {
  const std::vector<float> twos(20, 2), threes(48, 3);
  const Array two = {TN_F32, {20}, twos.data()}, three = {TN_F32, {48}, threes.data()};
  const auto now = [&] { return model_.parameters(); };
  const std::vector<ParameterValues> both = {{"x0.values", reshaped(now(), "x0.values", two)},
                                             {"x1.values", reshaped(now(), "x1.values", three)}};
  commit(model_.machine(), both);  // without a backward
  expect({0, 0, 0});
  model_.backward(all(4));
  const auto refused = [&](const ParameterValues& last) {
    return error_of([&] { commit(model_.machine(), {both[0], last}); });
  };
  EXPECT_EQ(refused({"x1.values", two}).code(), TN_INVALID);
  EXPECT_EQ(refused({"x3.values", two}).code(), TN_NOT_FOUND);
  EXPECT_THAT(refused(both[0]).what(), HasSubstr("\"x0.values\" is given twice"));
  expect({0, 0, 0});
  commit(model_.machine(), both);
  expect({2, 3, 0});
  sgd(1).update(model_.machine());  // there are no gradients
  expect({2, 3, 0});
  model_.backward(all(4));
  sgd(1).update(model_.machine());
  expect({1, 2, -1});
}

TEST_F(Parts, CountOneUpdateOfTheSet) {
  const Parameters parameters = model_.parameters();
  const Updater one = sgd(1), other = sgd(1);
  model_.backward(all(4));
  update_parameters(one, model_.machine(), {"x0"});
  update_parameters(other, model_.machine(), {"x1"});
  EXPECT_EQ(updates_of(parameters), 0U);
  commit(model_.machine());
  EXPECT_EQ(updates_of(parameters), 1U);
  EXPECT_EQ(UpdaterState(one, parameters).steps(), 1U);
  EXPECT_EQ(UpdaterState(other, parameters).steps(), 1U);
}

TEST_F(Parts, EndWithTheUpdateOfAModel) {
  const Updater one = sgd(1), half = sgd(0.5);
  model_.backward(all(4));
  update_parameters(half, model_.machine(), {"x1"});
  one.update(model_.machine(), model_.output(1));  // nothing of it is left
  expect({0, -0.5, 0});
  model_.backward(all(4));
  update_parameters(half, model_.machine(), {"x1"});
  one.update(model_.machine(), model_.output(0));
  expect({-1, -1, 0});
}

TEST_F(Parts, KeepTheGradientsOfTheOthers) {
  const Updater one = sgd(1);
  model_.backward(all(4));
  model_.backward(all(4));  // added
  update_parameters(one, model_.machine(), {"x0"});
  EXPECT_EQ(*static_cast<const float*>(model_.machine().gradient("x1.values").data), 2);
  one.update(model_.machine());
  expect({-2, -2, -2});
}

TEST_F(Parts, ClipByTheirOwnNorm) {
  const Updater clipped = model_.updater("sgd", {{"learning_rate", 1.0}, {"clip_norm", 1.0}});
  model_.backward(all(4));
  update_parameters(clipped, model_.machine(), {"x2"});  // 4 gradients of 1: norm 2
  commit(model_.machine());
  expect({0, 0, -0.5});
}

TEST_F(Parts, RefuseASecondUpdate) {
  const Updater one = sgd(1);
  model_.backward(all(4));
  update_parameters(one, model_.machine(), {"x0"});
  const float values[4] = {};  // set for nothing
  const tn_array given = detail::c_array({TN_F32, {4}, values});
  EXPECT_EQ(tn_machine_set_gradient(model_.machine().host(), model_.machine().handle(), "x0.values", &given, nullptr),
            TN_MISUSE);
  const Error twice = error_of([&] { update_parameters(one, model_.machine(), {"x1", "x0"}); });
  EXPECT_EQ(twice.code(), TN_MISUSE);
  EXPECT_EQ(twice.subject(), "x0.values");
  const Error added = error_of([&] { model_.backward(all(4)); });
  EXPECT_EQ(added.code(), TN_MISUSE);
  EXPECT_THAT(added.what(), AllOf(HasSubstr("x0.values"), HasSubstr("end the step first")));
  one.update(model_.machine());
  expect({-1, -1, -1});
}

TEST_F(Parts, RefuseNamesOfNothing) {
  const Updater one = sgd(1);
  model_.backward(all(4));
  const Error unknown = error_of([&] { update_parameters(one, model_.machine(), {"x0", "x", "x1.value"}); });
  EXPECT_EQ(unknown.code(), TN_INVALID);
  EXPECT_EQ(unknown.subject(), "x");
  EXPECT_THAT(unknown.what(), HasSubstr("the machine trains no parameter \"x\", \"x1.value\""));
  EXPECT_EQ(error_of([&] { update_parameters(one, model_.machine(), {}); }).code(), TN_INVALID);
  tn_host* host = model_.machine().host();
  const char* none[] = {nullptr};
  EXPECT_EQ(tn_updater_update_parameters(host, one.handle(), model_.machine().handle(), none, 1, nullptr), TN_MISUSE);
  EXPECT_EQ(tn_updater_update_parameters(host, one.handle(), model_.machine().handle(), nullptr, 1, nullptr),
            TN_MISUSE);
  EXPECT_EQ(tn_machine_commit(host, {99, 1}, nullptr), TN_MISUSE);
  expect({0, 0, 0});
  const UpdateModel frozen(1, {"x0"});
  frozen.backward(all(4));
  EXPECT_EQ(error_of([&] { update_parameters(frozen.updater("sgd", {}), frozen.machine(), {"x0"}); }).code(),
            TN_INVALID);
}

}  // namespace
}  // namespace tenon_tests
