// Sequences that the steps of scans see: attention over a whole sequence from outside, and sub-sequences. Values of a
// plain loop over the steps, gradients of differences, bits, memory, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tenon/tenon.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_topology.hpp>

#include "tests/host/machine/model_gradients.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::HasSubstr;

class SeenSequences : public testing::Test {
 protected:
  void check_gradients(const Model& model, const Minibatch& of) const {
    tenon_tests::check_gradients(host_, model, of);
  }

  const Host host_ = with_threads(2);
  const Data data_{host_};
};

const Lengths kText = {2, 0, 5, 1, 5, 3}, kOther = {3, 2, 0, 1, 6, 2};

TEST_F(SeenSequences, AttentionInsideOfAStepIsThatOfAPlainLoop) {
  for (const bool reverse : {false, true}) {
    const Model model = decoder(host_, data_, reverse);
    const Parameters parameters = host_.parameters(model.outputs, 3);
    const std::vector<float> bias(static_cast<size_t>(kDepth), 0.25F);
    parameters.set("keys.bias", {TN_F32, {kDepth}, bias.data()});
    const Machine machine = machine_of(host_, parameters, model.outputs);
    for (const auto& [text, other] : {std::pair{kText, kOther},
                                      {Lengths{4}, Lengths{3}},
                                      {Lengths{0, 0}, Lengths{2, 1}},
                                      {Lengths{2, 3}, Lengths{0, 0}},
                                      {Lengths{1, 40}, Lengths{90, 70}}}) {
      const Minibatch minibatch = Minibatch::draw(text, other);
      machine.forward(minibatch.feeds(model.feeds));
      const std::vector<Numbers> wanted = expected(minibatch, parameters, reverse);
      for (size_t i = 0; i < wanted.size(); ++i)
        expect_near(numbers(machine.output(model.outputs[2 + i])), wanted[i], "output");
    }
  }
}

TEST_F(SeenSequences, DrawnLengths) {
  std::mt19937_64 random(7);
  const auto drawn = [&](size_t count) {
    Lengths lengths;
    for (size_t i = 0; i < count; ++i) lengths.push_back(std::uniform_int_distribution<int64_t>(0, 6)(random));
    return lengths;
  };
  const Model model = decoder(host_, data_);
  const Parameters parameters = host_.parameters(model.outputs, 3);
  const Machine machine = machine_of(host_, parameters, model.outputs);
  for (int i = 0; i < 30; ++i) {
    const auto count = std::uniform_int_distribution<size_t>(1, 16)(random);
    const Minibatch minibatch = Minibatch::draw(drawn(count), drawn(count));
    machine.forward(minibatch.feeds(model.feeds));
    machine.backward();
    expect_near(numbers(machine.output(model.outputs[2])), expected(minibatch, parameters, false)[0], "drawn");
  }
}

TEST_F(SeenSequences, GradientsOfAttentionAreThoseOfDifferences) {
  check_gradients(decoder(host_, data_), Minibatch::draw(kText, kOther));
  check_gradients(decoder(host_, data_, true), Minibatch::draw({1, 4, 0}, {2, 3, 1}));
}

// A second scan over the results of the first that attends over the same sequences, in the other direction or not.
Model stacked(const Host& host, const Data& data, bool reverse) {
  Model model = decoder(host, data);
  ScanOptions options;
  options.reverse = reverse, options.name = "second";
  const ScanResult made = scan(
      {model.outputs[2]},
      [&](Step& step) {
        const Layer h = step.memory({kSize}, 0.25, "g");
        const Layer found = host.layer("dot_attention", {h, data.y}, {}, "found");
        step.next(h, host.layer("tanh", {host.layer("add", {found, step.input(0), h})}));
        return Layers{found};
      },
      options);
  model.outputs = {host.layer("square_error", {made.results[0], data.truth}, {}, "second_cost"), model.outputs[1]};
  return model;
}

TEST_F(SeenSequences, GradientsOfTwoScansOverOneSequence) {
  for (const bool reverse : {false, true})
    check_gradients(stacked(host_, data_, reverse), Minibatch::draw({2, 0, 4, 1}, {2, 3, 1, 0}));
}

// A sequence that the scan goes through is whole when it is read from outside: only an input has the row of a step. Its
// rows meet the memory in a network of their own, with draws, and are pooled in two ways.
Model self_attention(const Host& host, const Data& data) {
  const ScanResult made = scan({data.x}, [&](Step& step) {
    const Layer h = step.memory({kDepth}, 0.5, "h");
    const Layer whole = host.layer("dot_attention", {h, data.x}, {}, "whole");
    const Layer spread = host.layer("sequence_expand", {h, data.x}, {}, "spread");
    const Layer pairs = host.layer("concat", {spread, data.x}, {}, "pairs");
    const Layer bent = host.layer("fc", {pairs}, {{"size", kDepth}, {"act", "tanh"}}, "bent");
    const Layer normal = host.layer("layer_norm", {bent}, {}, "normal");
    const Layer dropped = host.layer("dropout", {normal}, {{"rate", 0.25}}, "dropped");
    const Layer most = host.layer("sequence_pool", {dropped}, {{"kind", "max"}}, "most");
    const Layer ahead = host.layer("row_conv", {bent}, {{"length", 2}}, "ahead");
    const Layer last = host.layer("sequence_pool", {ahead}, {{"kind", "last"}}, "last");
    const Layer first = host.layer("sequence_pool", {ahead}, {{"kind", "first"}}, "first");
    const Layer next =
        host.layer("fc", {step.input(0), whole, most, last, first, h}, {{"size", kDepth}, {"act", "tanh"}}, "next");
    step.next(h, next);
    return Layers{host.layer("fc", {whole}, {{"size", kSize}}, "out")};
  });
  return {{"x", "truth"},
          {"bent.weight", "bent.bias", "ahead.weight", "normal.scale", "next.weight_1", "next.weight_2",
           "next.weight_3", "out.weight"},
          {host.layer("square_error", {made.results[0], data.truth})}};
}

TEST_F(SeenSequences, TheSequencesOfTheScanAreWholeFromOutside) {
  check_gradients(self_attention(host_, data_), Minibatch::draw({2, 0, 4, 1}, {1, 1, 1, 1}));
}

// Sub-sequences: an lstm and a pool inside that no memory leads to, attention over the sub-sequence by a memory, and
// rows of sub-sequences as a result.
Model nested(const Host& host, const Data& data, bool reverse) {
  ScanOptions options;
  options.reverse = reverse;
  const ScanResult made = scan(
      {data.part, data.x},
      [&](Step& step) {
        const Layer h = step.memory(data.first, "h");
        const Layer states = host.layer("lstm", {step.input(0)}, {{"size", kSize}}, "states");
        const Layer mean = host.layer("sequence_pool", {states}, {{"kind", "mean"}}, "mean");
        const Layer seen = host.layer("additive_attention", {h, step.input(0)}, {}, "seen");
        const Layer next = host.layer("fc", {mean, seen, step.input(1), h}, {{"size", kSize}, {"act", "tanh"}}, "next");
        step.next(h, next);
        const Layer spread = host.layer("sequence_expand", {next, step.input(0)}, {}, "spread");
        return Layers{next, host.layer("mul", {spread, states}, {}, "product")};
      },
      options);
  const Layer pooled = host.layer("sequence_pool", {made.results[1]}, {{"kind", "max"}, {"level", "sample"}}, "pooled");
  return {{"part", "x", "truth", "first"},
          {"states.weight", "states.recurrent_weight", "seen.query.weight", "seen.score.weight", "next.weight"},
          {host.layer("square_error", {made.results[0], data.truth}, {}, "cost"),
           host.layer("square_error", {pooled, data.first}, {}, "other_cost"), made.results[0], made.results[1]}};
}

const Lengths kParts = {2, 0, 1, 3, 1, 2, 4, 0, 1, 1, 2, 2, 3, 1, 2, 1};  // one for each row of kText

TEST_F(SeenSequences, GradientsOfSubSequencesAreThoseOfDifferences) {
  for (const bool reverse : {false, true})
    check_gradients(nested(host_, data_, reverse), Minibatch::draw(kText, kOther, kParts));
}

// What runs once over all sub-sequences is what it is outside of the scan.
TEST_F(SeenSequences, SubSequencesAreThoseOutside) {
  const Model model = nested(host_, data_, false);
  const Layer states = host_.layer("lstm", {data_.part}, {{"size", kSize}, {"parameter_name", "states"}}, "outside");
  const Layer spread = host_.layer("sequence_expand", {model.outputs[2], states}, {}, "spread_outside");
  const Layer product = host_.layer("mul", {spread, states}, {}, "product_outside");
  Layers outputs = model.outputs;
  outputs.push_back(product);
  const Machine machine = machine_of(host_, host_.parameters(outputs, 3), outputs);
  machine.forward(Minibatch::draw(kText, kOther, kParts).feeds(model.feeds));
  EXPECT_EQ(numbers(machine.output(outputs[3])), numbers(machine.output(product)));
}

// ---- bits

TEST_F(SeenSequences, BitsDoNotDependOnThreads) {
  std::vector<Numbers> known;
  for (const int threads : {1, 2, 3}) {
    const Host host = with_threads(threads);
    const Data data(host);
    std::vector<Numbers> results;
    for (const Model& model : {decoder(host, data), nested(host, data, true)}) {
      const Parameters parameters = host.parameters(model.outputs, 5);
      const Machine machine = machine_of(host, parameters, model.outputs);
      machine.forward(Minibatch::draw(kText, kOther, kParts).feeds(model.feeds));
      machine.backward();
      results.push_back(numbers(machine.output(model.outputs[2])));
      for (const std::string& name : model.parameters) results.push_back(numbers(machine.gradient(name)));
    }
    if (known.empty()) known = results;
    EXPECT_EQ(results, known) << threads;
  }
}

TEST_F(SeenSequences, ASampleHasTheSameBitsInAnyBatch) {
  const Minibatch all = Minibatch::draw(kText, kOther, kParts);
  for (const Model& model : {decoder(host_, data_), nested(host_, data_, false)}) {
    const Layer& output = model.outputs[2];
    std::vector<std::string> feeds = model.feeds;
    std::erase(feeds, "truth");
    const Machine machine = machine_of(host_, host_.parameters({output}, 5), {output}, false);
    const auto forward = [&](const std::vector<size_t>& order) {
      const Minibatch minibatch = all.of(order);
      machine.forward(minibatch.feeds(feeds));
      const Numbers values = numbers(machine.output(output));
      std::map<size_t, Numbers> samples;
      for (size_t i = 0; i < order.size(); ++i)
        samples[order[i]] = {values.begin() + minibatch.text[i] * kSize,
                             values.begin() + minibatch.text[i + 1] * kSize};
      return samples;
    };
    const std::map<size_t, Numbers> known = forward({0, 1, 2, 3, 4, 5});
    EXPECT_EQ(forward({4, 2, 0, 5, 1, 3}), known);
    for (const auto& [sample, values] : known) EXPECT_EQ(forward({sample}).at(sample), values) << sample;
  }
}

// ---- memory and models

TEST_F(SeenSequences, AMachineGrowsWithTheRowsThatStepsSee) {
  const Model model = decoder(host_, data_);
  const Parameters parameters = host_.parameters(model.outputs, 3);
  MachineOptions options;
  options.max_samples = 1, options.training = true, options.compute = TN_F64;
  const Machine machine = host_.machine(parameters, model.outputs, options);
  for (const int64_t length : {4, 100, 7}) {  // 16 * 16 rows fit at first
    const Minibatch minibatch = Minibatch::draw({length}, {length + 1});
    machine.forward(minibatch.feeds(model.feeds));
    machine.backward();
    expect_near(numbers(machine.output(model.outputs[2])), expected(minibatch, parameters, false)[0], "output");
  }
}

TEST_F(SeenSequences, RowsThatDoNotFitNameTheLayer) {
  if (sanitized()) GTEST_SKIP() << "sanitizers end a process that asks for too much memory";
  const ScanResult made = scan({data_.x}, [&](Step& step) {
    const Layer spread = host_.layer("sequence_expand", {step.input(0), data_.y}, {}, "spread");
    const Layer wide = host_.layer("fc", {spread}, {{"size", 4096}}, "wide");
    return Layers{host_.layer("sequence_pool", {wide}, {{"kind", "max"}}, "most")};
  });
  const Machine machine = machine_of(host_, host_.parameters({made.layer}, 3), {made.layer}, false);
  const Minibatch minibatch = Minibatch::draw({1 << 17}, {1 << 17});
  try {
    machine.forward(minibatch.feeds({"x", "y"}));
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_OUT_OF_MEMORY) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("layer \"spread\": its steps see 17179869184 rows of whole sequences in a "
                                        "minibatch, for which the machine cannot grow: "));
  }
}

TEST_F(SeenSequences, AModelIsSavedAndRestored) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const Minibatch minibatch = Minibatch::draw(kText, kOther, kParts);
  for (const Model& model : {decoder(host_, data_), nested(host_, data_, true)}) {
    const Layers outputs = {model.outputs[2], model.outputs.back()};
    const Parameters parameters = host_.parameters(outputs, 3);
    parameters.save(outputs, path);
    const Host other = with_threads(1);
    const tenon::Model loaded = other.load(path);
    std::vector<std::string> feeds = model.feeds;
    std::erase(feeds, "truth");
    const Machine before = machine_of(host_, parameters, outputs, false);
    const Machine after = machine_of(other, loaded.parameters, loaded.outputs, false);
    before.forward(minibatch.feeds(feeds));
    after.forward(minibatch.feeds(feeds));
    for (size_t i = 0; i < outputs.size(); ++i)
      EXPECT_EQ(numbers(after.output(loaded.outputs[i])), numbers(before.output(outputs[i]))) << i;
    EXPECT_EQ(topology(read_topology(other, topology(outputs))), topology(outputs));
  }
}

}  // namespace

}  // namespace tenon_tests
