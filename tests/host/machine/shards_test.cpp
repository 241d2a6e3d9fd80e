// Machines of several devices: each computes a shard of the samples. SPDX-License-Identifier: Apache-2.0
#include "host/machine/shards/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tenon/tenon_cond.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_scan.hpp>

#include "tests/support/far_models.h"
#include "tests/support/fashion.h"
#include "tests/support/refused.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;
using Names = std::vector<std::string>;

TEST(ShardRange, CutsByTheNumbersAlone) {
  using tenon::host::shard_range;
  for (const int64_t samples : {0, 1, 2, 3, 7, 8, 128})
    for (const size_t shards : {1, 2, 3, 8}) {
      int64_t next = 0, before = samples;
      for (size_t i = 0; i < shards; ++i) {
        const auto [first, count] = shard_range(samples, shards, i);
        EXPECT_EQ(first, next);
        EXPECT_LE(count, before);  // the larger ones come first
        EXPECT_LE(shard_range(samples, shards, 0).count - count, 1);
        next += count;
        before = count;
      }
      EXPECT_EQ(next, samples);
    }
}

class Sharded : public testing::TestWithParam<tn_dtype> {
 protected:
  [[nodiscard]] MachineOptions options(const Names& devices, bool training = true) const {
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = training;
    options.compute = GetParam();
    options.devices = devices;
    options.seed = 7;
    return options;
  }
  // What a training of each model gives: every step has other samples, some fewer than there are shards.
  [[nodiscard]] Bytes dense(const Names& devices) const {
    DenseModel model(*host_);
    const Parameters parameters = host_->parameters(model.outputs(), 1);
    MachineOptions wanted = options(devices);
    wanted.flags = TN_MACHINE_DATA_GRADIENTS;
    const Machine machine = host_->machine(parameters, model.outputs(), wanted);
    const Updater updater = host_->updater("adam", {{"learning_rate", 0.1}, {"clip_norm", 0.5}});
    Bytes result;
    for (const int64_t samples : {kSamples, int64_t{5}, int64_t{1}, int64_t{0}, int64_t{4}}) {
      for (uint64_t pass = 0; pass < 2; ++pass) {  // gradients add up
        machine.forward(model.feeds(static_cast<uint64_t>(samples) + 10 * pass, samples));
        machine.backward();
      }
      add(result, machine.cost());
      if (samples > 0) add(result, machine.metrics().at(0).value);
      for (const Layer& layer : {model.scores, model.hidden}) result.push_back(bytes_of(machine.output(layer)));
      result.push_back(bytes_of(data_gradient(machine, "x")));
      if (samples > 0) result.push_back(bytes_of(machine.gradient("hidden.weight")));
      updater.update(machine);
      add_parameters(result, parameters);
    }
    return result;
  }
  [[nodiscard]] Bytes sequences(const Names& devices) const {
    SequenceModel model(*host_);
    const Parameters parameters = host_->parameters({model.cost}, 1);
    const Machine machine = host_->machine(parameters, {model.cost, model.states}, options(devices));
    const Updater updater = host_->updater("adam", {{"learning_rate", 0.1}, {"clip_norm", 0.5}});
    Bytes result;
    for (uint64_t step = 0; step < 4; ++step) {
      for (uint64_t pass = 0; pass <= step % 2; ++pass) {
        machine.forward(model.feeds(step + pass));
        machine.backward();
      }
      add(result, machine.cost());
      const Array states = machine.output(model.states);
      EXPECT_EQ(states.shape.at(0), model.offsets.back());
      for (int64_t i = 0; i <= kSamples; ++i) EXPECT_EQ(states.offsets[0][i], model.offsets[static_cast<size_t>(i)]);
      result.push_back(bytes_of(states));
      const Machine::Rows rows = machine.sparse_gradient("vectors.weight");
      result.push_back(bytes_of(rows.ids));
      result.push_back(bytes_of(rows.values));
      updater.update(machine);
      add_parameters(result, parameters);
    }
    return result;
  }

  void expect_equal(const Names& one, const Names& other) const {
    const auto equal = [](const Bytes& a, const Bytes& b) {
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i]) << "number " << i << " of " << a.size();
    };
    equal(dense(one), dense(other));
    equal(sequences(one), sequences(other));
  }

  FarHost host_;
};

TEST_P(Sharded, DevicesGiveTheBitsOfOneDeviceWithAsManyShards) {
  expect_equal({"cpu:0", "cpu:0"}, {"far:0", "far:1"});
  expect_equal({"cpu:0", "cpu:0"}, {"far:1", "far:1"});
  expect_equal({"cpu", "cpu", "cpu", "cpu", "cpu"}, {"far:0", "far:1", "far:0", "far:1", "far:1"});
}

TEST_P(Sharded, OneShardGivesTheBitsOfADevice) { expect_equal({}, {"cpu:0"}); }

INSTANTIATE_TEST_SUITE_P(Types, Sharded, testing::Values(TN_F32, TN_F64),
                         [](const auto& it) { return it.param == TN_F32 ? "Float32" : "Float64"; });

// Costs and gradients are means over the whole minibatch, not over shards of different sizes.
TEST(Shards, AddUpToTheWholeMinibatch) {
  const FarHost host;
  SequenceModel model(*host);
  const auto gradients = [&](const Names& devices) {
    MachineOptions options;
    options.max_samples = kSamples, options.training = true, options.compute = TN_F64, options.devices = devices;
    const Parameters parameters = host->parameters({model.cost}, 1);
    const Machine machine = host->machine(parameters, {model.cost}, options);
    machine.forward(model.feeds(1));
    machine.backward();
    std::vector<double> numbers{machine.cost()};
    for (const auto& entry : nlohmann::json::parse(parameters.describe())) {
      const Array gradient = machine.gradient(entry.at("name").get<std::string>());
      const auto* const values = static_cast<const double*>(gradient.data);
      numbers.insert(numbers.end(), values, values + gradient.count());
    }
    return numbers;
  };
  const std::vector<double> whole = gradients({"cpu"});
  for (const Names& devices : {Names{"cpu", "cpu"}, Names{"far:0", "far:1", "far:0", "far:1"}})
    EXPECT_THAT(gradients(devices), testing::Pointwise(testing::DoubleNear(1e-12), whole));
}

// A machine grows with the rows of its own samples, and has another memory then: only the first one, only a later one
// where the first one has room enough, or all.
TEST(Shards, GrowOneByOne) {
  const FarHost host;
  constexpr int64_t kWords = 5000;
  DataOptions words = integers("words", kWords);
  words.storage = TN_RAGGED, words.levels = 1;
  const Layer vectors = host->layer("embedding", {host->data(words)}, {{"vocabulary", kWords}, {"size", 3}}, "vectors");
  const Layer rows = host->layer("fc", {vectors}, {{"size", 4}, {"act", "tanh"}}, "rows");
  const Layer cost = host->layer("sum_cost", {host->layer("sequence_pool", {rows}, {{"kind", "sum"}})}, {}, "cost");
  const std::vector<std::vector<int64_t>> minibatches = {{3, 2, 1, 4},       {700, 9, 3, 0},  {1, 2, 300, 5},
                                                         {2, 2, 2, 2},       {0, 3, 0, 650},  {0, 0, 0, 1},
                                                         {5, 1500, 9, 1700}, {2500, 0, 1, 1}, {1, 0, 2, 2400}};
  const auto run = [&](const Names& devices) {
    MachineOptions options;
    options.max_samples = 4, options.training = true, options.devices = devices, options.compute = TN_F64;
    const Machine machine = host->machine(host->parameters({cost}, 1), {cost}, options);
    std::vector<double> result;
    for (size_t step = 0; step < minibatches.size(); ++step) {
      std::vector<int64_t> offsets = {0};
      for (const int64_t length : minibatches[step]) offsets.push_back(offsets.back() + length);
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < offsets.back(); ++i) ids.push_back(static_cast<int32_t>(i * 7 % kWords));
      machine.forward({{"words", Array::sequences(TN_I32, {offsets.back()}, ids.data(), 4, offsets.data())}});
      machine.backward();
      result.push_back(machine.cost());
      for (const char* name : {"rows.weight", "rows.bias", "vectors.weight"}) {
        const Array gradient = machine.gradient(name);
        const auto* const values = static_cast<const double*>(gradient.data);
        result.insert(result.end(), values, values + gradient.count());
      }
      host->updater("sgd", {{"learning_rate", 0.01}}).update(machine);
    }
    return result;
  };
  const std::vector<double> whole = run({"cpu"});
  for (const Names& devices : {Names{"cpu", "cpu"}, Names{"far:0", "far:1"}, Names{"far:1", "far:0", "far:1"}})
    EXPECT_THAT(run(devices), testing::Pointwise(testing::DoubleNear(1e-9), whole));
}

// Branches run for some samples of each shard.
TEST(Shards, RunBranches) {
  const FarHost host;
  const Layer x = host->data(floats("x", {3})), gate = host->data(floats("gate", {1}));
  const auto deeper = [&](Branch& branch, const char* act) {
    return Layers{host->layer("fc", {branch.input(x)}, {{"size", 2}, {"act", act}, {"parameter_name", "both"}})};
  };
  const CondResult made = cond(
      gate, [&](Branch& then) { return deeper(then, "tanh"); }, [&](Branch& rest) { return deeper(rest, "relu"); });
  const Layer cost = host->layer("sum_cost", {made.results[0]}, {}, "cost");
  const std::vector<float> inputs = drawn(15, 4), gates = {1, -1, 1, -1, -1};
  const auto run = [&](const Names& devices) {
    MachineOptions options;
    options.max_samples = 5, options.training = true, options.compute = TN_F64, options.devices = devices;
    const Machine machine = host->machine(host->parameters({cost}, 1), {cost}, options);
    machine.forward({{"x", {TN_F32, {5, 3}, inputs.data()}}, {"gate", {TN_F32, {5, 1}, gates.data()}}});
    machine.backward();
    const auto* const gradient = static_cast<const double*>(machine.gradient("both.weight").data);
    std::vector<double> numbers(gradient, gradient + 6);
    numbers.push_back(machine.cost());
    return numbers;
  };
  EXPECT_THAT(run({"cpu", "cpu"}), testing::Pointwise(testing::DoubleNear(1e-12), run({"cpu"})));
}

// Each shard draws numbers of its own.
TEST(Shards, DrawDifferentNumbers) {
  const FarHost host;
  const Layer dropped = host->layer("dropout", {host->data(floats("x", {64}))}, {{"rate", 0.5}}, "dropped");
  const Layer cost = host->layer("sum_cost", {dropped}, {}, "cost");
  MachineOptions options;
  options.max_samples = 2, options.training = true, options.keep_all = true, options.devices = {"far:0", "far:1"};
  const Machine machine = host->machine(host->parameters({cost}, 1), {cost}, options);
  const std::vector<float> x(128, 1);
  machine.forward({{"x", {TN_F32, {2, 64}, x.data()}}});
  const std::vector<uint8_t> both = bytes_of(machine.output(dropped));
  const auto middle = both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2);
  EXPECT_NE(std::vector<uint8_t>(both.begin(), middle), std::vector<uint8_t>(middle, both.end()));
}

// Memories follow their samples, also where a minibatch is cut otherwise than the one before.
TEST(Shards, CarryMemoriesFromMinibatchToMinibatch) {
  const FarHost host;
  DataOptions rows = floats("x", {2});
  rows.storage = TN_RAGGED, rows.levels = 1;
  const ScanResult made = scan({host->data(rows)}, [&](Step& step) {
    const Layer h = step.memory({4}, 0, "h", true);
    step.next(h, host->layer("fc", {step.input(0), h}, {{"size", 4}, {"act", "tanh"}}, "next"));
    return Layers{h};
  });
  const auto run = [&](const Names& devices) {
    MachineOptions options;
    options.max_samples = kSamples, options.devices = devices;
    const Machine machine = host->machine(host->parameters({made.last[0]}, 1), {made.last[0]}, options);
    Bytes result;
    uint64_t step = 0;
    for (const int64_t samples : {6, 6, 5, 2, 6, 0, 6, 1}) {
      if (++step == 7) machine.reset_carried();
      std::vector<int64_t> offsets{0};
      for (int64_t i = 0; i < samples; ++i) offsets.push_back(offsets.back() + (i + static_cast<int64_t>(step)) % 3);
      const std::vector<float> x = drawn(static_cast<size_t>(2 * offsets.back()), step);
      machine.forward({{"x", Array::sequences(TN_F32, {offsets.back(), 2}, x.data(), samples, offsets.data())}});
      result.push_back(bytes_of(machine.output(made.last[0])));
    }
    return result;
  };
  const Bytes whole = run({"cpu"});
  EXPECT_EQ(whole, run({"cpu", "cpu"}));
  EXPECT_EQ(whole, run({"far:0", "far:1", "far:0", "far:1"}));
}

// A training on two devices, stopped and resumed, ends with the model of an uninterrupted one; and so on the cpu.
TEST(Shards, TrainAndResume) {
  const FarHost host;
  const Perceptron model = perceptron(*host, 16);
  const TemporaryFolder folder;
  const auto run = [&](const Names& devices, const std::string& saves, int64_t stop, uint32_t start) {
    TrainOptions options;
    options.outputs = model.outputs();
    options.parameters = host->parameters(options.outputs, 5);
    options.updater = host->updater("adam", {});
    options.reader = fashion(*host, "train", 400, 64, 5);  // the last minibatch has 16 samples
    options.passes = 2;
    options.devices = devices;
    options.test = TestOptions{};
    options.test->reader = fashion(*host, "t10k", 65, 64, 5);  // and this one 1
    options.test->every_passes = 1;
    options.checkpoint = CheckpointOptions{};
    options.checkpoint->folder = folder.file(saves);
    options.checkpoint->every_batches = 3;
    options.checkpoint->outputs = {model.prediction};
    options.checkpoint->start = start;
    Bytes result;
    int64_t batches = 0;
    options.handler = [&](Event& event) {
      if (event.kind() == TN_END_PASS || event.kind() == TN_TEST)
        for (const double number : {event.cost(), event.metrics().at(0).value}) add(result, number);
      if (event.kind() == TN_END_ITERATION && ++batches == stop) event.stop();
    };
    train(options);
    add_parameters(result, options.parameters);
    return result;
  };
  const Names far = {"far:0", "far:1"};
  const Bytes whole = run({"cpu", "cpu"}, "whole", 0, TN_START_FRESH);
  EXPECT_EQ(whole, run(far, "far", 0, TN_START_FRESH));
  (void)run(far, "parts", 4, TN_START_FRESH);
  const Error error = refused([&] { (void)run({"far"}, "parts", 0, TN_START_RESUME); });
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(std::string(error.what()), HasSubstr("provider.shards: in the checkpoint (2), not now"));
  EXPECT_EQ(whole, run(far, "parts", 0, TN_START_RESUME));
}

// A late failure on one of the devices ends the step on all of them; the machine works again afterwards.
TEST(Shards, AFailureEndsTheStep) {
  const FarHost host;
  const Layer order = host->layer("argsort", {host->data(floats("x", {4}))}, {}, "order");
  const Layer few = host->layer("scale_shift", {host->data(floats("few", {2}))}, {}, "scaled");
  const Layer picked = host->layer("gather", {few, order}, {}, "picked");
  MachineOptions options;
  options.max_samples = 4, options.devices = {"far:0", "far:1"};
  const Machine machine = host->machine(host->parameters({picked}, 1), {picked}, options);
  const std::vector<float> x(16, 1), other(8, 1);
  for (int i = 0; i < 2; ++i) {
    const Error error = refused([&] {
      machine.forward({{"x", {TN_F32, {4, 4}, x.data()}}, {"few", {TN_F32, {4, 2}, other.data()}}});
    });
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    EXPECT_THAT(std::string(error.what()), HasSubstr("layer \"picked\" (gather): "));
    EXPECT_EQ(refused([&] { (void)machine.output(picked); }).code(), TN_MISUSE);
    machine.forward({{"x", {TN_F32, {0, 4}, x.data()}}, {"few", {TN_F32, {0, 2}, other.data()}}});
  }
}

class ShardsRefuse : public testing::Test {
 protected:
  // Returns the error of a machine on the devices.
  [[nodiscard]] Error on(const Names& devices, int64_t samples = kSamples, uint32_t flags = 0) {
    MachineOptions options;
    options.max_samples = samples, options.training = true, options.devices = devices, options.flags = flags;
    return refused([&] { (void)host_->machine(host_->parameters(model_.outputs(), 1), model_.outputs(), options); });
  }
  [[nodiscard]] static std::string text(const Error& error) { return error.what(); }

  FarHost host_;
  DenseModel model_{*host_};
};

TEST_F(ShardsRefuse, ListsTheDevices) {
  EXPECT_EQ(text(on({"far:0", "far:2"})),
            "devices \"far:0\", \"far:2\": device \"far:2\": unknown number 2; expected 0 to 1");
  EXPECT_EQ(text(on({"cpu", "far"})), "devices \"cpu\", \"far\": expected devices of one kind");
  EXPECT_THAT(text(on({"far:0", "fra:1"})), testing::StartsWith("devices \"far:0\", \"fra:1\": "));
  for (const char* name : {"far:", "far:x", "far:-1", "far:1 ", "far:99999999999"})
    EXPECT_EQ(text(on({name})),
              "device \"" + std::string(name) + "\": expected a kind, or a kind and a number, such as \"far:0\"");
  EXPECT_EQ(
      text(on({"far:0", "far:1"}, 1)),
      "a minibatch of at most 1 sample is smaller than the list of devices, \"far:0\", \"far:1\": each computes a "
      "shard of it");
}

TEST_F(ShardsRefuse, WhatCannotBeDivided) {
  const Error given = on({"cpu", "cpu"}, kSamples, TN_MACHINE_GIVEN_GRADIENTS);
  EXPECT_EQ(given.code(), TN_UNSUPPORTED);
  EXPECT_THAT(text(given), HasSubstr("given gradients cannot be divided among shards on several devices, \"cpu:0\", "
                                     "\"cpu:0\""));
  MachineOptions both;
  both.device = "cpu", both.devices = {"cpu"};
  EXPECT_EQ(
      text(refused([&] { (void)host_->machine(host_->parameters(model_.outputs(), 1), model_.outputs(), both); })),
      "options.device and options.devices are both set");
}

// A bad feed is named by its place in the whole minibatch, and nothing has run.
TEST_F(ShardsRefuse, BadFeedsBeforeAnythingRuns) {
  MachineOptions options;
  options.max_samples = kSamples, options.devices = {"cpu", "cpu", "cpu"};
  const Machine machine = host_->machine(host_->parameters(model_.outputs(), 1), model_.outputs(), options);
  std::vector<Feed> feeds = model_.feeds(1);
  machine.forward(feeds);
  const double cost = machine.cost();
  model_.label[5] = 4;
  EXPECT_EQ(text(refused([&] { machine.forward(feeds); })),
            "data layer \"label\": sample 5 of the minibatch is 4; expected 0 to 3");
  EXPECT_EQ(machine.cost(), cost);
  EXPECT_EQ(text(refused([&] { machine.forward(model_.feeds(1, 7)); })),
            "data layer \"x\": 7 samples; the machine was made for at most 6");
}

// Also if only one shard has more rows than there is room for: the forward before stays, and its backward.
TEST_F(ShardsRefuse, RowsBeyondTheBoundBeforeAnythingRuns) {
  SequenceModel model(*host_);
  for (const auto& [devices, max_rows] : {std::pair{Names{"cpu"}, 100}, std::pair{Names{"cpu", "cpu"}, 77}}) {
    MachineOptions options;
    options.max_samples = kSamples, options.training = true, options.devices = devices, options.max_rows = max_rows;
    const Machine machine = host_->machine(host_->parameters({model.cost}, 1), {model.cost, model.states}, options);
    machine.forward(model.feeds(1));
    const double cost = machine.cost();
    const std::vector<uint8_t> states = bytes_of(machine.output(model.states));
    EXPECT_THAT(text(refused([&] { machine.forward(model.feeds(2)); })),
                HasSubstr(" rows in a minibatch; the machine was made for at most " + std::to_string(max_rows)));
    EXPECT_EQ(machine.cost(), cost);
    EXPECT_EQ(bytes_of(machine.output(model.states)), states);
    machine.backward();
  }
}

}  // namespace

}  // namespace tenon_tests
