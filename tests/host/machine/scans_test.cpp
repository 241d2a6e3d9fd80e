// Scans that users write, of ordinary layers: the values and gradients of built-in recurrent layers, bits that depend
// neither on threads nor on the batch, draws, and models that are saved. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <tenon/tenon.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_scan.hpp>

#include "tests/support/drawn_sequences.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Numbers = std::vector<double>;

constexpr int64_t kDepth = 3, kSize = 4;

// Sequences of rows [3] and [4], and one row [4] for each sequence.
struct Minibatch {
  std::vector<int64_t> ends{0};
  std::vector<double> x, truth, first;

  static Minibatch draw(const std::vector<int64_t>& lengths) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> number(-1, 1);
    Minibatch made;
    for (const int64_t length : lengths) made.ends.push_back(made.ends.back() + length);
    const auto fill = [&](std::vector<double>& to, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to.push_back(number(random));
    };
    fill(made.x, made.ends.back() * kDepth);
    fill(made.truth, made.ends.back() * kSize);
    fill(made.first, made.samples() * kSize);
    return made;
  }
  [[nodiscard]] int64_t samples() const { return static_cast<int64_t>(ends.size()) - 1; }
  // Sample number `i` alone.
  [[nodiscard]] Minibatch sample(size_t i) const {
    const auto part = [&](const std::vector<double>& of, int64_t begin, int64_t end, int64_t width) {
      return std::vector<double>(of.begin() + begin * width, of.begin() + end * width);
    };
    const auto at = static_cast<int64_t>(i);
    return {{0, ends[i + 1] - ends[i]},
            part(x, ends[i], ends[i + 1], kDepth),
            part(truth, ends[i], ends[i + 1], kSize),
            part(first, at, at + 1, kSize)};
  }
  [[nodiscard]] std::vector<Feed> feeds() const {
    const auto rows = [&](const std::vector<double>& of, int64_t width) {
      return Array::sequences(TN_F64, {ends.back(), width}, of.data(), samples(), ends.data());
    };
    return {
        {"x", rows(x, kDepth)}, {"truth", rows(truth, kSize)}, {"first", {TN_F64, {samples(), kSize}, first.data()}}};
  }
};

const std::vector<int64_t> kLengths = {2, 0, 5, 1, 5, 3, 0, 7, 1};

Numbers numbers(const Array& array) {
  Numbers result;
  for (int64_t i = 0; i < array.count(); ++i)
    result.push_back(array.dtype == TN_F64 ? static_cast<const double*>(array.data)[i]
                                           : static_cast<double>(static_cast<const float*>(array.data)[i]));
  return result;
}

class Scans : public testing::Test {
 protected:
  static Layer rows(const Host& host, const std::string& name, int64_t width, const std::string& sequence = "text") {
    DataOptions options;
    options.name = name, options.dtype = TN_COMPUTE, options.shape = {width}, options.storage = TN_RAGGED;
    options.sequence = sequence;
    return host.data(options);
  }
  // The mean square difference of sequences [4] from the truth, and of one row [4] per sequence from `first`.
  [[nodiscard]] Layers costs(const Layer& sequences, const Layer& each) const {
    return {host_.layer("square_error", {sequences, truth_}, {}, "cost"),
            host_.layer("square_error", {each, first_}, {}, "last_cost")};
  }
  // A step of an LSTM of ordinary layers, with the parameters of a layer "lstm".
  [[nodiscard]] ScanResult lstm(bool reverse, bool peepholes = false) const {
    ScanOptions options;
    options.reverse = reverse, options.name = "cells";
    const auto step = [&](Step& inside) {
      const Layer h = inside.memory(first_, "h"), c = inside.memory({kSize}, 0, "c");
      const Layer z = host_.layer("fc", {inside.input(0), h}, {{"size", 4 * kSize}, {"parameter_name", "lstm"}}, "z");
      const Layer made =
          host_.layer("lstm_step", {z, c}, {{"peepholes", peepholes}, {"parameter_name", "lstm"}}, "step");
      inside.next(h, made);
      inside.next(c, made.output(1));
      return Layers{made};
    };
    return scan({x_}, step, options);
  }
  [[nodiscard]] Machine machine(const Parameters& parameters, const Layers& outputs, tn_dtype compute = TN_F64) const {
    MachineOptions options;
    options.max_samples = 16, options.training = true, options.compute = compute;
    options.flags = TN_MACHINE_DATA_GRADIENTS;
    return host_.machine(parameters, outputs, options);
  }

  static Host with_threads(int threads) {
    HostOptions options;
    options.threads = threads;
    options.plugin_paths = {plugin_folder()};
    return Host(options);
  }

  const Host host_ = with_threads(2);
  const Layer x_ = rows(host_, "x", kDepth), truth_ = rows(host_, "truth", kSize);
  const Layer first_ = host_.data({"first", TN_COMPUTE, {kSize}});
  const Minibatch minibatch_ = Minibatch::draw(kLengths);
};

void expect_near(const Numbers& a, const Numbers& b, const char* what, double most = 1e-12) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], most) << what << " " << i;
}

class ScansOfLstm : public Scans, public testing::WithParamInterface<bool> {};

TEST_P(ScansOfLstm, AStepOfOrdinaryLayersEqualsTheLayer) {
  const bool reverse = GetParam(), peepholes = reverse;
  const Layer layer =
      host_.layer("lstm", {x_, first_}, {{"size", kSize}, {"reverse", reverse}, {"peepholes", peepholes}}, "lstm");
  const Layers of_layer = costs(layer, layer.output(2));
  const Parameters whole = host_.parameters(of_layer, 3);
  const ScanResult cells = lstm(reverse, peepholes);
  ASSERT_EQ(cells.results.size(), 1U);
  ASSERT_EQ(cells.last.size(), 2U);
  const Layers of_scan = costs(cells.results[0], cells.last[1]);
  const Parameters stepwise = host_.parameters(of_scan, 4);
  stepwise.set("lstm.weight", whole.get("lstm.weight"));
  stepwise.set("lstm.weight_1", whole.get("lstm.recurrent_weight"));
  const std::vector<float> bias(static_cast<size_t>(4 * kSize), 0.25F), seen(static_cast<size_t>(3 * kSize), 0.5F);
  for (const Parameters& each : {whole, stepwise}) {
    each.set("lstm.bias", {TN_F32, {4 * kSize}, bias.data()});
    if (peepholes) each.set("lstm.peepholes", {TN_F32, {3, kSize}, seen.data()});
  }

  const Machine expected = machine(whole, {of_layer[0], of_layer[1], layer, layer.output(1), layer.output(2)});
  const Machine actual = machine(stepwise, {of_scan[0], of_scan[1], cells.results[0], cells.last[0], cells.last[1]});
  for (const Machine& each : {expected, actual}) {
    each.forward(minibatch_.feeds());
    each.backward();
  }
  expect_near(numbers(actual.output(cells.results[0])), numbers(expected.output(layer)), "output");
  expect_near(numbers(actual.output(cells.last[0])), numbers(expected.output(layer.output(1))), "last");
  expect_near(numbers(actual.output(cells.last[1])), numbers(expected.output(layer.output(2))), "last cell");
  expect_near(numbers(actual.gradient("lstm.weight")), numbers(expected.gradient("lstm.weight")), "weight");
  expect_near(numbers(actual.gradient("lstm.weight_1")), numbers(expected.gradient("lstm.recurrent_weight")), "U");
  expect_near(numbers(actual.gradient("lstm.bias")), numbers(expected.gradient("lstm.bias")), "bias");
  for (const char* data : {"x", "first"})
    expect_near(numbers(data_gradient(actual, data)), numbers(data_gradient(expected, data)), data);
}

INSTANTIATE_TEST_SUITE_P(Forward, ScansOfLstm, testing::Values(false, true));

// ---- memories

// Layers of a scan whose memory adds up its input.
ScanResult sums(const Host& host, const Layer& x, const Layer* initial, double value, bool reverse = false) {
  ScanOptions options;
  options.reverse = reverse;
  return scan(
      {x},
      [&](Step& step) {
        const Layer sum = initial == nullptr ? step.memory({kDepth}, value) : step.memory(*initial);
        const Layer next = host.layer("add", {sum, step.input(0)});
        step.next(sum, next);
        return Layers{next, sum};  // the second: what the step before left
      },
      options);
}

// What sums computes: the sums up to each row, those before it, and the last ones.
std::vector<Numbers> expected_sums(const Minibatch& of, double value, bool reverse) {
  Numbers next(of.x.size()), before(of.x.size()), last;
  for (int64_t s = 0; s < of.samples(); ++s) {
    const int64_t begin = of.ends[static_cast<size_t>(s)], end = of.ends[static_cast<size_t>(s) + 1];
    Numbers sum(static_cast<size_t>(kDepth), value);
    for (int64_t k = begin; k < end; ++k)
      for (int64_t j = 0; j < kDepth; ++j) {
        const auto at = static_cast<size_t>((reverse ? begin + end - 1 - k : k) * kDepth + j);
        before[at] = sum[static_cast<size_t>(j)];
        next[at] = sum[static_cast<size_t>(j)] += of.x[at];
      }
    last.insert(last.end(), sum.begin(), sum.end());
  }
  return {next, before, last};
}

TEST_F(Scans, MemoriesBeginWithZerosAConstantOrALayer) {
  const Layer initial = host_.layer("constant", {first_}, {{"shape", std::vector<int64_t>{kDepth}}, {"value", 0.5}});
  for (const bool reverse : {false, true})
    for (const double value : {0.0, 0.5}) {
      for (const Layer* each : {static_cast<const Layer*>(nullptr), &initial}) {
        if (each != nullptr && value == 0) continue;
        const ScanResult made = sums(host_, x_, each, each == nullptr ? value : 0, reverse);
        const Layers outputs = {made.results[0], made.results[1], made.last[0]};
        MachineOptions options;
        options.max_samples = 16, options.compute = TN_F64;
        const Machine machine = host_.machine(host_.parameters(outputs, 1), outputs, options);
        machine.forward(each == nullptr ? std::vector<Feed>{minibatch_.feeds()[0]}
                                        : std::vector<Feed>{minibatch_.feeds()[0], minibatch_.feeds()[2]});
        const std::vector<Numbers> expected = expected_sums(minibatch_, value, reverse);
        for (size_t i = 0; i < outputs.size(); ++i)
          expect_near(numbers(machine.output(outputs[i])), expected[i], "sums");
      }
    }
}

// A delay of two rows: each memory is left a value that the step does not compute.
TEST_F(Scans, AMemoryCanBeLeftAnInputOrAnotherMemory) {
  const ScanResult made = scan({x_}, [&](Step& step) {
    const Layer once = step.memory({kDepth}), twice = step.memory({kDepth}, 7);
    step.next(once, step.input(0));
    step.next(twice, once);
    return Layers{twice};
  });
  MachineOptions options;
  options.max_samples = 16, options.compute = TN_F64;
  const Machine machine = host_.machine(host_.parameters({made.layer}, 1), {made.layer, made.last[0]}, options);
  machine.forward({minibatch_.feeds()[0]});
  Numbers expected(minibatch_.x.size());
  for (size_t s = 0; s + 1 < minibatch_.ends.size(); ++s)
    for (int64_t row = minibatch_.ends[s]; row < minibatch_.ends[s + 1]; ++row)
      for (int64_t j = 0; j < kDepth; ++j)
        expected[static_cast<size_t>(row * kDepth + j)] =
            row == minibatch_.ends[s]       ? 7
            : row - 1 == minibatch_.ends[s] ? 0
                                            : minibatch_.x[static_cast<size_t>((row - 2) * kDepth + j)];
  expect_near(numbers(machine.output(made.layer)), expected, "two rows before");
}

TEST_F(Scans, ReadsOneValuePerSequenceFromOutsideAndWorksWithoutMemories) {
  const ScanResult made = scan({x_, truth_}, [&](Step& step) {
    return Layers{host_.layer("add", {step.input(1), first_}), first_};
  });
  MachineOptions options;
  options.max_samples = 16, options.compute = TN_F64;
  const Layers outputs = {made.results[0], made.results[1]};
  const Machine machine = host_.machine(host_.parameters(outputs, 1), outputs, options);
  machine.forward({minibatch_.feeds()});
  Numbers sums, firsts;
  for (size_t s = 0; s + 1 < minibatch_.ends.size(); ++s)
    for (int64_t row = minibatch_.ends[s]; row < minibatch_.ends[s + 1]; ++row)
      for (int64_t j = 0; j < kSize; ++j) {
        firsts.push_back(minibatch_.first[s * kSize + static_cast<size_t>(j)]);
        sums.push_back(firsts.back() + minibatch_.truth[static_cast<size_t>(row * kSize + j)]);
      }
  expect_near(numbers(machine.output(outputs[0])), sums, "sums");
  expect_near(numbers(machine.output(outputs[1])), firsts, "firsts");
}

// ---- parameters, gradients, bits

// A step with a product of its own, an outside value, a parameter that is also used outside, and dropout of what a
// memory has a part in.
Layers shared_model(const Host& host, const Layer& x, const Layer& truth, const Layer& first, double drop_rate) {
  const Layer outside = host.layer("fc", {first}, {{"size", kSize}, {"parameter_name", "shared"}}, "outside");
  const ScanResult made = scan({x}, [&](Step& step) {
    const Layer h = step.memory(outside);
    const Layer z = host.layer("fc", {step.input(0), h, first}, {{"size", kSize}, {"act", "tanh"}}, "z");
    const Layer again = host.layer("fc", {z}, {{"size", kSize}, {"parameter_name", "shared"}}, "again");
    const Layer normal = host.layer("layer_norm", {again}, {}, "normal");
    const Layer dropped = drop_rate == 0 ? normal : host.layer("dropout", {normal}, {{"rate", drop_rate}}, "dropped");
    step.next(h, host.layer("add", {dropped, h}, {}, "next"));
    return Layers{dropped};
  });
  return {host.layer("square_error", {made.results[0], truth}, {}, "cost"),
          host.layer("square_error", {made.last[0], first}, {}, "last_cost"), made.results[0]};
}

TEST_F(Scans, GradientsAreThoseOfDifferences) {
  const Layers outputs = shared_model(host_, x_, truth_, first_, 0.25);
  const Parameters parameters = host_.parameters(outputs, 5);
  const Machine of = machine(parameters, outputs);
  of.forward(minibatch_.feeds());
  of.backward();
  for (const char* name : {"shared.weight", "z.weight", "z.weight_1", "z.weight_2", "normal.scale"}) {
    const Numbers gradient = numbers(of.gradient(name));
    const Array values = parameters.get(name);
    std::vector<float> changed(static_cast<const float*>(values.data),
                               static_cast<const float*>(values.data) + values.count());
    const std::vector<int64_t> shape = values.shape;
    for (size_t i = 0; i < changed.size(); i += 3) {
      const float before = changed[i];
      Numbers costs, at;
      for (const float by : {-0.000244140625F, 0.000244140625F}) {
        changed[i] = before + by;
        parameters.set(name, {TN_F32, shape, changed.data()});
        at.push_back(static_cast<double>(changed[i]));
        of.forward(minibatch_.feeds());
        costs.push_back(of.cost());
      }
      changed[i] = before;
      parameters.set(name, {TN_F32, shape, changed.data()});
      EXPECT_NEAR(gradient[i], (costs[1] - costs[0]) / (at[1] - at[0]), 2e-4) << name << " " << i;
    }
  }
}

TEST_F(Scans, EveryNumberOfThreadsGivesTheSameBits) {
  std::vector<Numbers> known;
  for (const int threads : {1, 2, 3}) {
    const Host host = with_threads(threads);
    const Layers outputs = shared_model(host, rows(host, "x", kDepth), rows(host, "truth", kSize),
                                        host.data({"first", TN_COMPUTE, {kSize}}), 0.25);
    const Parameters parameters = host.parameters(outputs, 5);
    MachineOptions options;
    options.max_samples = 16, options.training = true, options.compute = TN_F64;
    const Machine machine = host.machine(parameters, outputs, options);
    machine.forward(minibatch_.feeds());
    machine.backward();
    std::vector<Numbers> results = {numbers(machine.output(outputs[2]))};
    for (const char* name : {"shared.weight", "z.weight_1", "z.bias"})
      results.push_back(numbers(machine.gradient(name)));
    if (known.empty()) known = results;
    EXPECT_EQ(results, known) << threads;
  }
}

TEST_F(Scans, ASampleHasTheSameBitsInAnyBatch) {
  const Layers outputs = shared_model(host_, x_, truth_, first_, 0);
  MachineOptions options;
  options.max_samples = 16, options.compute = TN_F64;
  const Machine machine = host_.machine(host_.parameters(outputs, 5), {outputs[2]}, options);
  const auto forward = [&](const Minibatch& of) {
    machine.forward({of.feeds()[0], of.feeds()[2]});
    return numbers(machine.output(outputs[2]));
  };
  const Numbers all = forward(minibatch_);
  for (size_t i = 0; i < kLengths.size(); ++i) {
    const Numbers alone = forward(minibatch_.sample(i));
    const auto begin = all.begin() + minibatch_.ends[i] * kSize;
    EXPECT_EQ(alone, Numbers(begin, begin + kLengths[i] * kSize)) << i;
  }
}

TEST_F(Scans, EachStepDrawsAMaskOfItsOwn) {
  const ScanResult made = scan({x_}, [&](Step& step) {
    const Layer sum = step.memory({kDepth}, 1);
    step.next(sum, sum);
    return Layers{host_.layer("dropout", {sum}, {{"rate", 0.5}})};
  });
  MachineOptions options;
  options.max_samples = 16, options.training = true, options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  options.compute = TN_F64;
  const Machine machine = host_.machine(host_.parameters({made.layer}, 1), {made.results[0]}, options);
  machine.forward({minibatch_.feeds()[0]});
  const Numbers dropped = numbers(machine.output(made.results[0]));
  std::set<Numbers> masks;
  for (size_t i = 0; i < dropped.size(); i += 3)
    masks.insert(Numbers(dropped.begin() + static_cast<std::ptrdiff_t>(i),
                         dropped.begin() + static_cast<std::ptrdiff_t>(i) + 3));
  EXPECT_GT(masks.size(), 4U);
  for (const double each : dropped) EXPECT_TRUE(each == 0 || each == 2) << each;
}

// ---- models

TEST_F(Scans, AModelIsSavedAndRestored) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const ScanResult cells = lstm(true);
  const Layers outputs = {cells.results[0], cells.last[1]};
  const Parameters parameters = host_.parameters(outputs, 3);
  parameters.save(outputs, path);
  MachineOptions options;
  options.max_samples = 16, options.compute = TN_F64;
  const Host other = with_threads(1);
  const Model model = other.load(path);
  ASSERT_EQ(model.outputs.size(), 2U);
  const std::vector<Feed> feeds = {minibatch_.feeds()[0], minibatch_.feeds()[2]};
  const Machine before = host_.machine(parameters, outputs, options);
  const Machine after = other.machine(model.parameters, model.outputs, options);
  before.forward(feeds);
  after.forward(feeds);
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(numbers(after.output(model.outputs[i])), numbers(before.output(outputs[i]))) << i;
  const std::string again = folder.file("again.safetensors");
  model.parameters.save(model.outputs, again);
  EXPECT_EQ(other.describe_model(again), other.describe_model(path));
}

}  // namespace

}  // namespace tenon_tests
