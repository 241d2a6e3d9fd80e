// The buffers of machines of several devices. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tenon/plugin.hpp>
#include <tenon/tenon_machine.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/far_models.h"

namespace tenon_tests {

namespace {

using Names = std::vector<std::string>;

// Adds the mean of the minibatch to buffers of every rule.
struct Merged {
  static void describe(tn::LayerDescription& d) {
    d.type("test_merged", "its input, beside buffers");
    d.input("value", "[samples, features]");
    d.output("output", "the value");
    for (const char* suffix : {"mean", "sum", "max", "first"}) d.parameter(suffix);
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec value = planner.input_of_rank(0, 2, "[samples, features]");
    const tn::Spec columns({value[1]});
    planner.buffer("mean", columns, tn::constant_initializer(0), TN_MERGE_MEAN);
    planner.buffer("sum", columns, tn::constant_initializer(0), TN_MERGE_SUM);
    planner.buffer("max", columns, tn::constant_initializer(0), TN_MERGE_MAX);
    planner.buffer("first", columns, tn::constant_initializer(0), TN_MERGE_FIRST);
    planner.output(0, value);
  }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) {
    body.output(0, body.input(0));
    if (!body.training()) return;
    tn::Program program;
    const tn::Float value = program.full(), kept = program.per_column();
    program.output(kept + stop(sum_per_column(value) / sum_per_column(to_float(value == value))));
    for (uint32_t i = 0; i < 4; ++i)
      body.buffer_next(i, body.pointwise(program, {body.input(0), body.buffer(i)}).front());
  }
};

TEST(ShardBuffers, AreMergedByTheRuleThatTheirLayerStates) {
  const FarHost host;
  const tn_layer_type* const types[] = {tn::layer_type<Merged>()};
  tn_plugin plugin = bare_plugin("tenon.test.merged");
  plugin.layers_count = 1;
  plugin.layers = types;
  host->add_plugin(&plugin);
  const Layer out = host->layer("fc", {host->layer("test_merged", {host->data(floats("x", {3}))}, {}, "merged")},
                                {{"size", 2}, {"bias", false}});
  const Layer cost = host->layer("sum_cost", {out}, {}, "cost");
  const std::vector<float> x = drawn(21, 3);
  for (const Names& devices : {Names{"cpu"}, Names{"cpu", "cpu"}, Names{"far:0", "far:1", "far:1"}}) {
    for (const int64_t samples : {7, 5, 3}) {
      SCOPED_TRACE(testing::Message() << samples << " samples on " << devices.size());
      MachineOptions options;
      options.max_samples = 7, options.training = true, options.devices = devices;
      const Parameters parameters = host->parameters({cost}, 1);
      const Machine machine = host->machine(parameters, {cost}, options);
      machine.forward({{"x", {TN_F32, {samples, 3}, x.data()}}});
      machine.backward();
      host->updater("sgd", {{"learning_rate", 0.0}}).update(machine);
      std::map<std::string, std::vector<float>> wanted;
      for (int64_t column = 0; column < 3; ++column) {
        double whole = 0, sum = 0, most = -HUGE_VAL, first = 0;
        const auto shards = static_cast<int64_t>(devices.size());
        for (int64_t shard = 0, begin = 0, count = 0; shard < shards; ++shard, begin += count) {
          count = samples / shards + (shard < samples % shards ? 1 : 0);
          double mean = 0;
          for (int64_t i = begin; i < begin + count; ++i)
            mean += static_cast<double>(x[static_cast<size_t>(3 * i + column)]) / static_cast<double>(count);
          whole += mean * static_cast<double>(count) / static_cast<double>(samples);
          sum += mean;
          most = std::max(most, mean);
          if (shard == 0) first = mean;
        }
        for (const auto& [name, value] : {std::pair{"mean", whole}, {"sum", sum}, {"max", most}, {"first", first}})
          wanted[name].push_back(static_cast<float>(value));
      }
      for (const auto& [name, values] : wanted) {
        const Array array = parameters.get("merged." + name);
        const auto* const from = static_cast<const float*>(array.data);
        EXPECT_THAT(std::vector<float>(from, from + array.count()),
                    testing::Pointwise(testing::FloatNear(1e-6F), values))
            << name;
      }
    }
  }
}

// Buffers become what their layers state: means weighted by the samples, sums or the largest.
TEST(ShardBuffers, AreThoseOfTheWholeMinibatch) {
  const FarHost host;
  const Layer input = host->data(floats("x", {3})), wanted = host->data(floats("y", {3}));
  const Layer range = host->layer("standardize", {input}, {{"kind", "range"}}, "range");
  const Layer norm = host->layer("batch_norm", {input}, {}, "norm");
  const Layer cost = host->layer("square_error", {host->layer("add", {range, norm}, {}, "both"), wanted}, {}, "cost");
  const std::vector<float> x = drawn(15, 3), y(15, 0);
  const auto buffers = [&](const Names& devices) {
    MachineOptions options;
    options.max_samples = 5, options.training = true, options.devices = devices;
    const Parameters parameters = host->parameters({cost}, 1);
    const Machine machine = host->machine(parameters, {cost}, options);
    machine.forward({{"x", {TN_F32, {5, 3}, x.data()}}, {"y", {TN_F32, {5, 3}, y.data()}}});
    machine.backward();
    host->updater("sgd", {{"learning_rate", 0.0}}).update(machine);
    std::vector<std::vector<float>> values;
    for (const char* name : {"norm.moving_mean", "range.high", "range.negative_low"}) {
      const Array array = parameters.get(name);
      const auto* const from = static_cast<const float*>(array.data);
      values.emplace_back(from, from + array.count());
    }
    return values;
  };
  const auto whole = buffers({"cpu"});
  for (const Names& devices : {Names{"cpu", "cpu"}, Names{"far:0", "far:1", "far:1"}}) {
    const auto merged = buffers(devices);
    EXPECT_THAT(merged[0], testing::Pointwise(testing::FloatNear(1e-6F), whole[0]));  // 3 and 2 samples
    EXPECT_EQ(merged[1], whole[1]);
    EXPECT_EQ(merged[2], whole[2]);
  }
}

// Buffers that stay as they are take no part: those of immutable parameters, and those that a layer only reads.
TEST(ShardBuffers, StayWhereNothingChangesThem) {
  const FarHost host;
  const Layer input = host->data(floats("x", {3})), wanted = host->data(floats("y", {3}));
  const Layer frozen = host->layer("batch_norm", {input}, {{"frozen", true}}, "frozen");
  const Layer range = host->layer("standardize", {frozen}, {{"kind", "range"}}, "range");
  const Layer norm = host->layer("batch_norm", {frozen}, {}, "norm");
  const Layer out = host->layer("fc", {range, norm}, {{"size", 3}, {"act", "tanh"}}, "out");
  const Layer cost = host->layer("square_error", {out, wanted}, {}, "cost");
  const std::vector<float> x = drawn(15, 3), y = drawn(15, 8);
  const Names buffers = {"frozen.moving_mean", "frozen.moving_variance", "norm.moving_mean", "norm.moving_variance",
                         "range.high",         "range.negative_low"};
  const Names trained = {"out.weight", "out.weight_1", "frozen.scale", "norm.scale"};
  const auto run = [&](const Names& devices, const Names& immutable) {
    MachineOptions options;
    options.max_samples = 5, options.training = true, options.devices = devices, options.compute = TN_F64;
    options.immutable_parameters = immutable;
    const Parameters parameters = host->parameters({cost}, 1);
    const Machine machine = host->machine(parameters, {cost}, options);
    Bytes values, gradients;
    machine.forward({{"x", {TN_F32, {5, 3}, x.data()}}, {"y", {TN_F32, {5, 3}, y.data()}}});
    machine.backward();
    for (const std::string& name : trained) gradients.push_back(bytes_of(machine.gradient(name)));
    host->updater("sgd", {{"learning_rate", 0.5}}).update(machine);
    for (const std::string& name : buffers) values.push_back(bytes_of(parameters.get(name)));
    return std::pair(values, gradients);
  };
  const Parameters fresh = host->parameters({cost}, 1);
  Bytes begun;
  for (const std::string& name : buffers) begun.push_back(bytes_of(fresh.get(name)));
  for (const Names& devices : {Names{"cpu", "cpu"}, Names{"far:0", "far:1", "far:1"}}) {
    const auto [moved, usual] = run(devices, {});
    for (const Names& immutable : {Names{"norm.moving_mean", "range.high"}, Names{"norm.moving_variance"},
                                   Names{"range.high", "range.negative_low"}}) {
      const auto [values, gradients] = run(devices, immutable);
      EXPECT_EQ(gradients, usual);
      for (size_t i = 0; i < buffers.size(); ++i) {
        const bool stays = i < 2 || std::find(immutable.begin(), immutable.end(), buffers[i]) != immutable.end();
        EXPECT_EQ(values[i], stays ? begun[i] : moved[i]) << buffers[i];
        EXPECT_EQ(moved[i] == begun[i], i < 2) << buffers[i];
      }
    }
  }
}

}  // namespace

}  // namespace tenon_tests
