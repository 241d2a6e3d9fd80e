// Trainings with products in bfloat16: what is rounded, and the steps that are skipped.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/tenon_updater.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <tenon/tenon.hpp>
#include <utility>
#include <vector>

#include "tests/support/far.h"
#include "tests/support/far_models.h"

namespace tenon_tests {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Model {
  explicit Model(const Host& host) {
    const Layer x = host.data(floats("x", {16}));
    sum = host.layer("fc", {x}, {{"size", 24}}, "fc");
    hidden = host.layer("batch_norm", {sum}, {}, "norm");
    score = host.layer("fc", {hidden}, {{"size", 3}}, "score");
    cost = host.layer("square_error", {score, host.data(floats("y", {3}))}, {}, "cost");
  }
  Layer sum, hidden, score, cost;
};

std::vector<float> numbers(int64_t count, float seed) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(std::sin(seed + 0.37F * static_cast<float>(i)));
  return result;
}

std::vector<float> floats_of(const Array& array) {
  const auto* const first = static_cast<const float*>(array.data);
  EXPECT_EQ(array.dtype, TN_F32);
  return {first, first + array.count()};
}

class Bf16 : public testing::TestWithParam<const char*> {
 protected:
  Machine machine(const Parameters& parameters, tn_dtype compute) {
    MachineOptions options;
    options.max_samples = 8, options.training = true, options.device = GetParam(), options.compute = compute;
    return host_->machine(parameters, {model_.cost, model_.score}, options);
  }
  // One step; with `broken` the last number of y is infinite.
  void step(const Machine& machine, const Updater& updater, float seed, bool broken = false) {
    const std::vector<float> x = numbers(8 * 16, seed);
    std::vector<float> y = numbers(8 * 3, seed + 1);
    if (broken) y.back() = kInf;
    machine.forward({{"x", {TN_F32, {8, 16}, x.data()}}, {"y", {TN_F32, {8, 3}, y.data()}}});
    machine.backward();
    updater.update(machine);
  }
  [[nodiscard]] uint64_t count(decltype(&tn_updater_skipped) of, const Updater& updater,
                               const Parameters& parameters) const {
    uint64_t result = 0;
    EXPECT_EQ(of(host_->get(), updater.handle(), parameters.handle(), &result, nullptr), TN_OK);
    return result;
  }

  const FarHost host_;
  const Model model_{*host_};
};

// Returns the nearest number of bfloat16, ties to even.
double to_brain(float number) {
  uint32_t bits = std::bit_cast<uint32_t>(number);
  bits += 0x7fffU + (bits >> 16 & 1U);
  return static_cast<double>(std::bit_cast<float>(bits & 0xffff0000U));
}

using Floats = std::vector<float>;
using Definition = std::function<double(int64_t row, int64_t column)>;

double sum(int64_t count, const std::function<double(int64_t)>& term) {
  double result = 0;
  for (int64_t i = 0; i < count; ++i) result += term(i);
  return result;
}

// What a machine has of one step of the model. Each value follows in fp64 from those before it, with the factors of
// products rounded, and neither sums, biases, normalised values, costs nor the gradients of these.
struct StepByDefinition {
  static constexpr int64_t kRows = 8, kIn = 16, kHidden = 24, kOut = 3;

  void check_forward() const {
    expect("sum", kRows, kHidden, sums, [&](int64_t r, int64_t c) {
      return bias[static_cast<size_t>(c)] +
             product(kIn, [&](int64_t k) { return std::pair(x[place(r, k, kIn)], weight[place(k, c, kHidden)]); });
    });
    expect("normalised", kRows, kHidden, hidden, [&](int64_t r, int64_t c) {
      return scale[static_cast<size_t>(c)] * normal(r, c) + shift[static_cast<size_t>(c)];
    });
    expect("score", kRows, kOut, score, [&](int64_t r, int64_t c) {
      return added[static_cast<size_t>(c)] + product(kHidden, [&](int64_t k) {
               return std::pair(hidden[place(r, k, kHidden)], last[place(k, c, kOut)]);
             });
    });
    expect("cost", kRows, 1, costs, [&](int64_t r, int64_t) {
      return sum(kOut, [&](int64_t c) { return std::pow(static_cast<double>(error(r, c)), 2); });
    });
  }
  void check_backward(const Machine& made) const {
    const auto gradient = [&](const char* name, int64_t rows, int64_t columns, const Definition& wanted) {
      expect(name, rows, columns, floats_of(made.gradient(name)), wanted);
    };
    gradient("score.weight", kHidden, kOut, [&](int64_t k, int64_t c) {
      return product(kRows, [&](int64_t r) { return std::pair(hidden[place(r, k, kHidden)], slope(r, c)); });
    });
    gradient("score.bias", 1, kOut, [&](int64_t, int64_t c) {
      return sum(kRows, [&](int64_t r) { return static_cast<double>(slope(r, c)); });
    });
    const auto back = [&](int64_t r, int64_t k) {
      return product(kOut, [&](int64_t c) { return std::pair(slope(r, c), last[place(k, c, kOut)]); });
    };
    gradient("norm.shift", 1, kHidden,
             [&](int64_t, int64_t k) { return sum(kRows, [&](int64_t r) { return back(r, k); }); });
    gradient("norm.scale", 1, kHidden,
             [&](int64_t, int64_t k) { return sum(kRows, [&](int64_t r) { return back(r, k) * normal(r, k); }); });
  }

  bool rounds;
  Floats x, y, weight, bias, scale, shift, last, added;  // fed numbers and parameters
  Floats sums, hidden, score, costs;

 private:
  static size_t place(int64_t row, int64_t column, int64_t width) { return static_cast<size_t>(row * width + column); }
  static void expect(const char* what, int64_t rows, int64_t columns, const Floats& got, const Definition& wanted) {
    ASSERT_EQ(got.size(), static_cast<size_t>(rows * columns)) << what;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        EXPECT_NEAR(got[place(r, c, columns)], wanted(r, c), 1e-5) << what << ' ' << r << ' ' << c;
  }
  [[nodiscard]] double product(int64_t count, const std::function<std::pair<float, float>(int64_t)>& factors) const {
    const auto factor = [&](float number) { return rounds ? to_brain(number) : static_cast<double>(number); };
    return sum(count, [&](int64_t i) {
      const auto [a, b] = factors(i);
      return factor(a) * factor(b);
    });
  }
  [[nodiscard]] double normal(int64_t r, int64_t c) const {
    const auto at = [&](int64_t i) { return static_cast<double>(sums[place(i, c, kHidden)]); };
    const double mean = sum(kRows, at) / kRows;
    const double variance = sum(kRows, [&](int64_t i) { return std::pow(at(i) - mean, 2); }) / kRows;
    return (at(r) - mean) / std::sqrt(variance + 1e-5);
  }
  [[nodiscard]] float error(int64_t r, int64_t c) const { return score[place(r, c, kOut)] - y[place(r, c, kOut)]; }
  [[nodiscard]] float slope(int64_t r, int64_t c) const { return 2 * error(r, c) / kRows; }  // of the mean cost
};

TEST_P(Bf16, ProductsAreRoundedAndNothingElse) {
  using Step = StepByDefinition;
  const Floats x = numbers(Step::kRows * Step::kIn, 1), y = numbers(Step::kRows * Step::kOut, 2);
  for (const tn_dtype compute : {TN_F32, TN_BF16, TN_TF32}) {  // TF32 is for devices that have it
    SCOPED_TRACE(compute);
    const Parameters parameters = host_->parameters({model_.cost}, 1);
    float seed = 3;
    for (const auto& [name, count] : {std::pair{"fc.bias", Step::kHidden}, std::pair{"norm.scale", Step::kHidden},
                                      std::pair{"norm.shift", Step::kHidden}, std::pair{"score.bias", Step::kOut}})
      parameters.set(name, {TN_F32, {count}, numbers(count, seed += 1).data()});
    MachineOptions options;
    options.max_samples = Step::kRows, options.training = options.keep_all = true;
    options.device = GetParam(), options.compute = compute;
    const Machine made = host_->machine(parameters, {model_.cost, model_.score}, options);
    made.forward(
        {{"x", {TN_F32, {Step::kRows, Step::kIn}, x.data()}}, {"y", {TN_F32, {Step::kRows, Step::kOut}, y.data()}}});
    made.backward();
    const auto of = [&](const char* name) { return floats_of(parameters.get(name)); };
    const auto output = [&](const Layer& layer) { return floats_of(made.output(layer)); };
    const Step step = {compute == TN_BF16,
                       x,
                       y,
                       of("fc.weight"),
                       of("fc.bias"),
                       of("norm.scale"),
                       of("norm.shift"),
                       of("score.weight"),
                       of("score.bias"),
                       output(model_.sum),
                       output(model_.hidden),
                       output(model_.score),
                       output(model_.cost)};
    step.check_forward();
    step.check_backward(made);
  }
}

TEST_P(Bf16, AStepWithoutFiniteGradientsChangesNothing) {
  for (const bool clips : {false, true}) {
    const Parameters parameters = host_->parameters({model_.cost}, 1);
    const Machine made = machine(parameters, TN_BF16);
    Attributes attributes = {{"learning_rate", 0.01}};
    if (clips) attributes.emplace_back("clip_norm", 1.0);
    const Updater updater = host_->updater("adam", attributes);
    step(made, updater, 1);
    EXPECT_EQ(count(&tn_updater_skipped, updater, parameters), 0U);
    Bytes before, after;
    add_parameters(before, parameters);
    step(made, updater, 2, true);
    add_parameters(after, parameters);
    EXPECT_EQ(before, after);  // the buffers of batch_norm included
    EXPECT_EQ(count(&tn_updater_skipped, updater, parameters), 1U);
    EXPECT_EQ(count(&tn_updater_steps, updater, parameters), 1U);

    step(made, updater, 3);  // as if the step before had not been
    Bytes next, expected;
    add_parameters(next, parameters);
    EXPECT_NE(next, before);
    const Parameters others = host_->parameters({model_.cost}, 1);
    const Machine other = machine(others, TN_BF16);
    const Updater fresh = host_->updater("adam", attributes);
    step(other, fresh, 1);
    step(other, fresh, 3);
    add_parameters(expected, others);
    EXPECT_EQ(next, expected);
  }
}

// In full precision the application finds what it did: numbers that are not finite.
TEST_P(Bf16, OtherMachinesSkipNothing) {
  const Parameters parameters = host_->parameters({model_.cost}, 1);
  const Machine made = machine(parameters, TN_F32);
  const Updater updater = host_->updater("sgd", {{"learning_rate", 0.01}});
  step(made, updater, 1, true);
  EXPECT_EQ(count(&tn_updater_skipped, updater, parameters), 0U);
  EXPECT_EQ(count(&tn_updater_steps, updater, parameters), 1U);
}

INSTANTIATE_TEST_SUITE_P(Devices, Bf16, testing::Values("cpu", "far"),
                         [](const auto& test) { return std::string(test.param); });

TEST(ComputeType, IsRefusedByName) {
  const FarHost host;
  const Model model(*host);
  MachineOptions options;
  options.max_samples = 8, options.compute = TN_I32;
  try {
    (void)host->machine(host->parameters({model.cost}, 1), {model.cost}, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_UNSUPPORTED);
    EXPECT_THAT(std::string(error.what()),
                testing::HasSubstr("compute type int32; expected float32, float64, bf16 or tf32"));
  }
}

}  // namespace
}  // namespace tenon_tests
