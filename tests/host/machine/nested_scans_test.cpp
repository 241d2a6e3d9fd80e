// Scans that users write within the steps of scans: the hierarchical recurrent network that equals a flat one,
// gradients of differences, bits, saved models, plans, and what is refused. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tenon/tenon.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_topology.hpp>

#include "tests/host/machine/model_gradients.h"
#include "tests/support/refused.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

const Lengths kText = {2, 0, 5, 1, 5, 3}, kOther = {3, 2, 0, 1, 6, 2};
const Lengths kParts = {2, 0, 1, 3, 1, 2, 4, 0, 1, 1, 2, 2, 3, 1, 2, 1};  // one for each row of kText

ScanOptions named(const std::string& name, bool reverse = false) {
  ScanOptions options;
  options.name = name, options.reverse = reverse;
  return options;
}

class NestedScans : public testing::Test {
 protected:
  const Host host_ = with_threads(2);
  const Data data_{host_};
};

// A step of a simple recurrent network, as a layer with the parameters "rnn".
Layer rnn(const Host& host, const Layer& token, const Layer& before, const std::string& name) {
  return host.layer("fc", {token, before}, {{"size", kSize}, {"act", "tanh"}, {"parameter_name", "rnn"}}, name);
}

// The outer scan goes through the sub-sequences, the inner one through their tokens; the inner memory begins with the
// outer one, which is left the inner one's last value. Results: all states, and the last one.
Layers hierarchical(const Host& host, const Data& data, bool reverse) {
  const ScanResult outer = scan(
      {data.part},
      [&](Step& step) {
        const Layer state = step.memory(data.first, "outer_state");
        const ScanResult inner = scan(
            {step.input(0)},
            [&](Step& token) {
              const Layer before = token.memory(state, "inner_state");
              const Layer next = rnn(host, token.input(0), before, "token");
              token.next(before, next);
              return Layers{next};
            },
            named("inner", reverse));
        step.next(state, inner.last[0]);
        return Layers{inner.results[0]};
      },
      named("outer", reverse));
  return {outer.results[0], outer.last[0]};
}

// The same over the tokens of all sub-sequences of a sample.
Layers flat(const Host& host, const Layer& tokens, const Layer& first, bool reverse) {
  const ScanResult made = scan(
      {tokens},
      [&](Step& step) {
        const Layer before = step.memory(first, "state");
        const Layer next = rnn(host, step.input(0), before, "flat_token");
        step.next(before, next);
        return Layers{next};
      },
      named("flat", reverse));
  return {made.results[0], made.last[0]};
}

// The lengths of the tokens of each sample.
Lengths ends_of_tokens(const Minibatch& of) {
  Lengths ends;
  for (const int64_t end : of.text) ends.push_back(of.parts[static_cast<size_t>(end)]);
  return ends;
}

// Feeds with the tokens of each sample as one sequence beside the sub-sequences.
std::vector<Feed> with_tokens(const Minibatch& of, const Lengths& ends, const std::vector<std::string>& names) {
  std::vector<Feed> feeds = of.feeds(names);
  feeds.push_back(
      {"tokens", Array::sequences(TN_F64, {ends.back(), kDepth}, of.part.data(), of.samples(), ends.data())});
  return feeds;
}

// Both networks of one model, with a cost for each, so that gradients of either can be compared.
struct Both {
  Layers nested, flat;  // a cost of the last state and one of all states, the last state, all states
};

Both both(const Host& host, const Data& data, bool reverse) {
  const Layer tokens = rows(host, "tokens", kDepth, "tokens");
  const auto with_costs = [&](const Layers& made, const std::string& name, const char* level) {
    const Layer sum = level == nullptr
                          ? host.layer("sequence_pool", {made[0]}, {{"kind", "sum"}}, name + "_sum")
                          : host.layer("sequence_pool", {made[0]}, {{"kind", "sum"}, {"level", level}}, name + "_sum");
    return Layers{host.layer("square_error", {made[1], data.first}, {}, name + "_cost"),
                  host.layer("square_error", {sum, data.first}, {}, name + "_sum_cost"), made[1], made[0]};
  };
  return {with_costs(hierarchical(host, data, reverse), "nested", "sample"),
          with_costs(flat(host, tokens, data.first, reverse), "flat", nullptr)};
}

TEST_F(NestedScans, AHierarchicalNetworkEqualsAFlatOneOverAllTokens) {
  for (const bool reverse : {false, true}) {
    const Both models = both(host_, data_, reverse);
    const Parameters parameters = host_.parameters(models.nested, 3);
    const std::vector<float> bias(static_cast<size_t>(kSize), 0.25F);
    parameters.set("rnn.bias", {TN_F32, {kSize}, bias.data()});
    const Machine nested = machine_of(host_, parameters, models.nested);
    const Machine whole = machine_of(host_, parameters, models.flat);
    for (const auto& [text, parts] : {std::pair{kText, kParts},
                                      {Lengths{1}, Lengths{1}},
                                      {Lengths{1, 1, 1}, Lengths{3, 0, 1}},
                                      {Lengths{4}, Lengths{0, 2, 0, 5}},
                                      {Lengths{0, 0}, Lengths{}},
                                      {Lengths{3, 0, 2}, Lengths{0, 0, 0, 0, 0}},
                                      {Lengths{1, 30}, Lengths(31, 9)}}) {
      const Minibatch of = Minibatch::draw(text, text, parts);
      const Lengths ends = ends_of_tokens(of);
      nested.forward(of.feeds({"part", "first"}));
      whole.forward(std::vector<Feed>{of.feeds({"first"})[0], with_tokens(of, ends, {})[0]});
      nested.backward();
      whole.backward();
      for (const size_t i : {2, 3})
        expect_near(numbers(nested.output(models.nested[i])), numbers(whole.output(models.flat[i])), "output");
      for (const char* name : {"rnn.weight", "rnn.weight_1", "rnn.bias"})
        expect_near(numbers(nested.gradient(name)), numbers(whole.gradient(name)), name);
      expect_near(numbers(data_gradient(nested, "first")), numbers(data_gradient(whole, "first")), "first");
      expect_near(numbers(data_gradient(nested, "part")), numbers(data_gradient(whole, "tokens")), "tokens");
    }
  }
}

// Built-in layers inside: an lstm whose states begin with outer memories.
TEST_F(NestedScans, ARecurrentLayerInsideOfAStepEqualsOneOverAllTokens) {
  const Layer tokens = rows(host_, "tokens", kDepth, "tokens");
  const Attributes lstm = {{"size", kSize}, {"parameter_name", "lstm"}};
  const Layer whole = host_.layer("lstm", {tokens}, lstm, "whole");
  const ScanResult made = scan({data_.part}, [&](Step& step) {
    const Layer h = step.memory({kSize}, 0, "h"), c = step.memory({kSize}, 0, "c");
    const Layer states = host_.layer("lstm", {step.input(0), h, c}, lstm, "states");
    step.next(h, states.output(1));
    step.next(c, states.output(2));
    return Layers{states};
  });
  const auto costs = [&](const Layer& h, const Layer& c, const std::string& name) {
    return Layers{host_.layer("square_error", {h, data_.first}, {}, name),
                  host_.layer("square_error", {c, data_.first}, {}, name + "_cell"), h, c};
  };
  const Layers of_nested = costs(made.last[0], made.last[1], "nested_cost");
  const Layers of_whole = costs(whole.output(1), whole.output(2), "whole_cost");
  const Parameters parameters = host_.parameters(of_nested, 3);
  const Machine nested = machine_of(host_, parameters, of_nested), expected = machine_of(host_, parameters, of_whole);
  const Minibatch of = Minibatch::draw(kText, kOther, kParts);
  const Lengths ends = ends_of_tokens(of);
  nested.forward(of.feeds({"part", "first"}));
  expected.forward(std::vector<Feed>{of.feeds({"first"})[0], with_tokens(of, ends, {})[0]});
  nested.backward();
  expected.backward();
  for (const size_t i : {2, 3})
    expect_near(numbers(nested.output(of_nested[i])), numbers(expected.output(of_whole[i])), "last");
  for (const char* name : {"lstm.weight", "lstm.recurrent_weight", "lstm.bias"})
    expect_near(numbers(nested.gradient(name)), numbers(expected.gradient(name)), name);
}

// The inner scan reads the outer memory at each step, a value of the outer step, and what is outside of both; beside it
// are attention by the outer memory, dropout, an inner scan that no memory leads to, and results of both levels.
Model mixed(const Host& host, const Data& data, bool reverse) {
  const ScanResult outer = scan(
      {data.part, data.x},
      [&](Step& step) {
        const Layer h = step.memory(data.first, "h");
        const ScanResult apart = scan(
            {step.input(0)},
            [&](Step& token) {
              const Layer sum = token.memory({kDepth}, 0.5, "sum");
              const Layer next = host.layer("add", {sum, token.input(0)}, {}, "summed");
              token.next(sum, next);
              return Layers{next};
            },
            named("apart", !reverse));
        const Layer found = host.layer("dot_attention", {h, data.y}, {}, "found");
        const ScanResult inner = scan(
            {apart.results[0], step.input(0)},
            [&](Step& token) {
              const Layer g = token.memory(h, "g"), delayed = token.memory({kDepth}, 0.25, "delayed");
              const Layer z = host.layer("fc", {token.input(0), g, h, step.input(1), data.first, delayed},
                                         {{"size", kSize}, {"act", "tanh"}}, "z");
              const Layer normal = host.layer("layer_norm", {z}, {}, "normal");
              const Layer dropped = host.layer("dropout", {normal}, {{"rate", 0.25}}, "dropped");
              token.next(g, dropped);
              token.next(delayed, token.input(1));
              return Layers{dropped, g};
            },
            named("inner", reverse));
        const Layer most = host.layer("sequence_pool", {inner.results[0]}, {{"kind", "max"}}, "most");
        const Layer next =
            host.layer("fc", {most, found, inner.last[0], inner.last[1]}, {{"size", kSize}, {"act", "tanh"}}, "next");
        step.next(h, next);
        return Layers{next, inner.results[1]};
      },
      named("outer", reverse));
  const Layer pooled =
      host.layer("sequence_pool", {outer.results[1]}, {{"kind", "sum"}, {"level", "sample"}}, "pooled");
  return {{"part", "x", "y", "truth", "first"},
          {"z.weight", "z.weight_1", "z.weight_2", "z.weight_3", "z.weight_4", "z.weight_5", "z.bias", "normal.scale",
           "next.weight", "next.weight_1", "next.weight_2", "next.weight_3"},
          {host.layer("square_error", {outer.results[0], data.truth}, {}, "cost"),
           host.layer("square_error", {pooled, data.first}, {}, "other_cost"), outer.results[0], outer.results[1]}};
}

TEST_F(NestedScans, GradientsAreThoseOfDifferences) {
  for (const bool reverse : {false, true})
    check_gradients(host_, mixed(host_, data_, reverse), Minibatch::draw(kText, kOther, kParts));
  check_gradients(host_, mixed(host_, data_, false), Minibatch::draw({1}, {1}, {1}));
}

// An inner scan that the outer memory leads to, but that leads to none: it runs behind the outer loop.
TEST_F(NestedScans, GradientsOfAScanThatLeadsToNoMemory) {
  const ScanResult outer = scan({data_.part, data_.x}, [&](Step& step) {
    const Layer h = step.memory(data_.first, "h");
    const ScanResult inner = scan({step.input(0)}, [&](Step& token) {
      const Layer g = token.memory(h, "g");
      token.next(g, rnn(host_, token.input(0), g, "token"));
      return Layers{};
    });
    step.next(h, host_.layer("fc", {step.input(1), h}, {{"size", kSize}, {"act", "tanh"}}, "next"));
    return Layers{inner.last[0]};
  });
  const Model model = {{"part", "x", "truth", "first"},
                       {"rnn.weight", "rnn.weight_1", "next.weight", "next.weight_1"},
                       {host_.layer("square_error", {outer.results[0], data_.truth})}};
  check_gradients(host_, model, Minibatch::draw(kText, kOther, kParts));
}

// An inner scan over a whole sequence from outside, which each outer step sees, spread with the outer memory.
TEST_F(NestedScans, GradientsOfAScanOverAWholeSequence) {
  const ScanResult outer = scan({data_.x}, [&](Step& step) {
    const Layer h = step.memory(data_.first, "h");
    const Layer spread = host_.layer("sequence_expand", {h, data_.y}, {}, "spread");
    const Layer pairs = host_.layer("mul", {spread, data_.y}, {}, "pairs");
    const ScanResult inner = scan({pairs}, [&](Step& row) {
      const Layer g = row.memory({kSize}, 0, "g");
      row.next(g, host_.layer("fc", {row.input(0), g}, {{"size", kSize}, {"act", "tanh"}}, "read"));
      return Layers{};
    });
    step.next(h, host_.layer("fc", {step.input(0), inner.last[0]}, {{"size", kSize}, {"act", "tanh"}}, "next"));
    return Layers{inner.last[0]};
  });
  const Model model = {{"x", "y", "truth", "first"},
                       {"read.weight", "read.weight_1", "next.weight", "next.weight_1"},
                       {host_.layer("square_error", {outer.results[0], data_.truth})}};
  check_gradients(host_, model, Minibatch::draw({2, 0, 4, 1}, {3, 2, 0, 1}));
}

// ---- bits

TEST_F(NestedScans, BitsDoNotDependOnThreads) {
  std::vector<Numbers> known;
  for (const int threads : {1, 2, 3, 8}) {
    const Host host = with_threads(threads);
    const Model model = mixed(host, Data(host), true);
    const Machine machine = machine_of(host, host.parameters(model.outputs, 5), model.outputs);
    machine.forward(Minibatch::draw(kText, kOther, kParts).feeds(model.feeds));
    machine.backward();
    std::vector<Numbers> results = {numbers(machine.output(model.outputs[2])),
                                    numbers(machine.output(model.outputs[3]))};
    for (const std::string& name : model.parameters) results.push_back(numbers(machine.gradient(name)));
    if (known.empty()) known = results;
    EXPECT_EQ(results, known) << threads;
  }
}

TEST_F(NestedScans, ASampleHasTheSameBitsInAnyBatch) {
  const Minibatch all = Minibatch::draw(kText, kOther, kParts);
  const Layer last = hierarchical(host_, data_, false)[1];
  const Machine machine = machine_of(host_, host_.parameters({last}, 5), {last}, false);
  const auto forward = [&](const std::vector<size_t>& order) {
    machine.forward(all.of(order).feeds({"part", "first"}));
    const Numbers values = numbers(machine.output(last));
    std::map<size_t, Numbers> samples;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto begin = values.begin() + static_cast<int64_t>(i) * kSize;
      samples[order[i]] = {begin, begin + kSize};
    }
    return samples;
  };
  const std::map<size_t, Numbers> known = forward({0, 1, 2, 3, 4, 5});
  EXPECT_EQ(forward({4, 2, 0, 5, 1, 3}), known);
  for (const auto& [sample, values] : known) EXPECT_EQ(forward({sample}).at(sample), values) << sample;
}

// ---- models and plans

TEST_F(NestedScans, AModelIsSavedAndRestored) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const Model model = mixed(host_, data_, true);
  const Layers outputs = {model.outputs[2], model.outputs[3]};
  const Parameters parameters = host_.parameters(outputs, 3);
  parameters.save(outputs, path);
  const Host other = with_threads(1);
  const tenon::Model loaded = other.load(path);
  const Machine before = machine_of(host_, parameters, outputs, false);
  const Machine after = machine_of(other, loaded.parameters, loaded.outputs, false);
  for (const Machine& each : {before, after})
    each.forward(Minibatch::draw(kText, kOther, kParts).feeds({"part", "x", "y", "first"}));
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(numbers(after.output(loaded.outputs[i])), numbers(before.output(outputs[i]))) << i;
  EXPECT_EQ(topology(read_topology(other, topology(outputs))), topology(outputs));
}

TEST_F(NestedScans, PlansShowTheLoopAroundALoop) {
  const Layer last = hierarchical(host_, data_, false)[1];
  const Layer cost = host_.layer("square_error", {last, data_.first}, {}, "cost");
  const Machine machine = machine_of(host_, host_.parameters({cost}, 5), {cost});
  std::map<int64_t, int64_t> around;
  const nlohmann::json plan = nlohmann::json::parse(machine.plan());
  for (const auto& call : plan.at("calls"))
    if (call.contains("loop")) around[call.at("loop")] = call.value("around", int64_t{-1});
  EXPECT_EQ(around, (std::map<int64_t, int64_t>{{0, -1}, {1, 0}, {2, -1}, {3, 2}}));
}

// ---- what is refused

TEST_F(NestedScans, AttentionInsideOfANestedStepIsRefused) {
  const ScanResult outer = scan({data_.part}, [&](Step& step) {
    const Layer h = step.memory(data_.first, "h");
    const ScanResult inner = scan({step.input(0)}, [&](Step& token) {
      const Layer g = token.memory(h, "g");
      token.next(g, host_.layer("dot_attention", {g, data_.y}, {}, "found"));
      return Layers{};
    });
    step.next(h, inner.last[0]);
    return Layers{h};
  });
  const Parameters parameters = host_.parameters({outer.layer}, 1);
  const Error error = refused([&] { static_cast<void>(machine_of(host_, parameters, {outer.layer})); });
  EXPECT_EQ(error.code(), TN_UNSUPPORTED);
  EXPECT_THAT(error.what(), HasSubstr("layer \"found/sequence_expand\""));
  EXPECT_THAT(error.what(), HasSubstr("the steps of a scan that runs within a step of another see sequences"));
}

TEST_F(NestedScans, ValuesOfTheInnerScanAreNotReadInTheOuterOne) {
  Layer inside;
  static_cast<void>(scan({data_.part}, [&](Step& step) {
    const Layer h = step.memory(data_.first, "h");
    const ScanResult inner = scan(
        {step.input(0)},
        [&](Step& token) {
          inside = host_.layer("tanh", {token.input(0)}, {}, "inside");
          const Error left = refused([&] { step.next(h, inside); });
          EXPECT_THAT(left.what(), HasSubstr("memory \"h\" is left layer \"inside\" (tanh), which is inside of scan"));
          const Error begun = refused([&] { static_cast<void>(step.memory(inside, "other")); });
          EXPECT_THAT(begun.what(), HasSubstr("memory \"other\": its initial value is"));
          return Layers{inside};
        },
        named("inner"));
    const Error read = refused([&] { static_cast<void>(host_.layer("tanh", {inside}, {}, "outside")); });
    EXPECT_THAT(read.what(), HasSubstr("it reads layer \"inside\" (tanh) inside of scan \"inner\", whose results"));
    step.next(h, h);
    return Layers{inner.results[0]};
  }));
  const Error late = refused([&] { static_cast<void>(begin_scan({inside})); });
  EXPECT_THAT(late.what(), HasSubstr("is inside of scan \"inner\", which has ended"));
}

}  // namespace

}  // namespace tenon_tests
