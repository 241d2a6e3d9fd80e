// Layers of whole sequences, such as lstm and attention, generate step by step what the model of whole sequences
// answers. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/host/generation/word_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

constexpr int64_t kWords = 7, kSize = 12, kTopic = 3, kBegin = 1, kEnd = 0;

// From embedded words [rows, kSize] and a topic of the sample [samples, kTopic] to what the scores are made of.
using Middle = std::function<Layer(const Host&, const Layer& vectors, const Layer& topic)>;

Layer dense(const Host& host, const Layer& of, int64_t size) { return host.layer("fc", {of}, {{"size", size}}); }

// A recurrent layer that begins with what is computed from the topic.
Middle recurrent(const std::string& type, const Attributes& attributes, bool initial) {
  return [=](const Host& host, const Layer& vectors, const Layer& topic) {
    Attributes all = attributes;
    all.push_back({"size", kSize});
    Layers inputs = {vectors};
    const size_t states = type == "lstm" ? 2 : 1;
    for (size_t i = 0; initial && i < states; ++i) inputs.push_back(dense(host, topic, kSize));
    return host.layer(type, inputs, all, "first");
  };
}

// A block of a transformer, normalised first.
Layer block(const Host& host, const Layer& x, int64_t heads) {
  const Layer seen =
      host.layer("multi_head_attention", {host.layer("layer_norm", {x})}, {{"heads", heads}, {"causal", true}});
  const Layer sum = host.layer("add", {x, seen});
  const Layer wide = host.layer("fc", {host.layer("layer_norm", {sum})}, {{"size", 2 * kSize}, {"act", "gelu"}});
  return host.layer("add", {sum, dense(host, wide, kSize)});
}

const std::map<std::string, Middle>& middles() {
  static const std::map<std::string, Middle> all = {
      {"lstm", recurrent("lstm", {}, false)},
      {"lstm with an initial state", recurrent("lstm", {{"peepholes", true}, {"forget_bias", 0.5}}, true)},
      {"lstm without bias", recurrent("lstm", {{"bias", false}, {"parameter_name", "shared"}}, false)},
      {"gru", recurrent("gru", {}, true)},
      {"gru_reset_after", recurrent("gru", {{"reset_after", true}}, true)},
      {"rnn", recurrent("rnn", {{"activation", "sigmoid"}}, true)},
      {"a memory without an input",
       [](const Host& host, const Layer& vectors, const Layer&) { return host.layer("test_fading", {vectors}); }},
      {"two layers",
       [](const Host& host, const Layer& vectors, const Layer& topic) {
         const Layer below = host.layer("lstm", {vectors}, {{"size", kSize}}, "below");
         return host.layer("gru", {below, dense(host, topic, kSize)}, {{"size", kSize}}, "above");
       }},
      {"transformer",
       [](const Host& host, const Layer& vectors, const Layer&) {
         const Layer placed = host.layer("position_embedding", {vectors}, {{"length", 40}}, "placed");
         return block(host, block(host, placed, 2), 3);
       }},
      {"attention of other features",
       [](const Host& host, const Layer& vectors, const Layer& topic) {
         const Layer placed = host.layer("positional_encoding", {vectors}, {{"base", 50.0}});
         const Layer key = dense(host, vectors, kSize), value = dense(host, placed, 6);
         const Layer seen = host.layer("sequence_attention", {placed, key, value},
                                       {{"heads", 2}, {"causal", true}, {"scale", 0.7}}, "seen");
         const Layer cells = host.layer("lstm", {seen, dense(host, topic, kSize)}, {{"size", kSize}});
         return host.layer("multi_head_attention", {cells, placed},
                           {{"heads", 4}, {"causal", true}, {"size", 8}, {"output_size", 5}, {"act", "tanh"}});
       }},
  };
  return all;
}

// A model of words whose weights are large enough that the probabilities differ clearly.
class Model {
 public:
  Model(const Host& host, const Middle& middle) : host_(host) {
    DataOptions ids;
    ids.name = "words", ids.dtype = TN_I64, ids.storage = TN_RAGGED, ids.index_limit = kWords;
    const Layer vectors =
        host.layer("embedding", {host.data(ids)}, {{"vocabulary", kWords}, {"size", kSize}, {"scale", 1.0}}, "vectors");
    const Layer topic = host.data({"topic", TN_F32, {kTopic}});
    // The topic is fed to every model, used or not.
    const Layer words = dense(host, middle(host, vectors, topic), kWords), of_topic = dense(host, topic, kWords);
    score = scan({words}, [&](Step& step) { return Layers{host.layer("add", {step.input(0), of_topic})}; }).results[0];
    parameters = host.parameters({score}, 5);
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0, 0.6F);
    for (const auto& stated : nlohmann::json::parse(parameters.describe())) {
      const auto name = stated.at("name").get<std::string>();
      const std::vector<int64_t> shape = parameters.get(name).shape;
      std::vector<float> values(static_cast<size_t>(parameters.get(name).count()));
      for (float& each : values) each = normal(random);
      parameters.set(name, {TN_F32, shape, values.data()});
    }
  }

  // The logarithms of the probabilities of ids after the begin id and a prompt, one by one, by the whole model.
  [[nodiscard]] std::vector<double> log_p(const std::vector<float>& topic, const Ids& prompt, const Ids& ids,
                                          tn_dtype compute = TN_F64) const {
    MachineOptions options;
    options.max_samples = 1, options.compute = compute;
    const Machine machine = host_.machine(parameters, {score}, options);
    Ids fed = {kBegin};
    fed.insert(fed.end(), prompt.begin(), prompt.end());
    fed.insert(fed.end(), ids.begin(), ids.end() - 1);
    const int64_t ends[] = {0, static_cast<int64_t>(fed.size())};
    machine.forward({{"words", Array::sequences(TN_I64, {ends[1]}, fed.data(), 1, ends)},
                     {"topic", {TN_F32, {1, kTopic}, topic.data()}}});
    const Array scores = machine.output(score);
    std::vector<double> result;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto first = static_cast<int64_t>(prompt.size() + i) * kWords;
      const auto at = [&](int64_t k) {
        return compute == TN_F64 ? static_cast<const double*>(scores.data)[first + k]
                                 : static_cast<double>(static_cast<const float*>(scores.data)[first + k]);
      };
      double sum = 0;
      for (int64_t k = 0; k < kWords; ++k) sum += std::exp(at(k));
      result.push_back(at(ids[i]) - std::log(sum));
    }
    return result;
  }
  [[nodiscard]] Generator generator(tn_dtype compute = TN_F64, int64_t max_samples = 0) const {
    GeneratorOptions options;
    options.from_logits = true, options.compute = compute, options.max_samples = max_samples;
    return {parameters, score, "words", options};
  }

  Layer score;
  Parameters parameters;

 private:
  const Host& host_;
};

double sum_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double each : numbers) sum += each;
  return sum;
}

GenerateOptions options_of(const SampleFeeds& feeds, uint32_t method) {
  GenerateOptions options;
  options.method = method;
  options.feeds = feeds.feeds();
  options.begin_id = kBegin, options.end_id = kEnd, options.max_length = 14;
  return options;
}

class WholeLayers : public testing::Test {
 protected:
  const Host host_ = host_with(2);
  const Samples samples_ = Samples::some();
  const SampleFeeds feeds_{samples_};
};

TEST_F(WholeLayers, BeamsHaveTheScoresOfTheWholeModel) {
  for (const auto& [name, middle] : middles()) {
    SCOPED_TRACE(name);
    const Model model(host_, middle);
    GenerateOptions options = options_of(feeds_, TN_GENERATE_BEAM);
    options.beam_size = options.results = 4;
    for (const int64_t at_once : {2, 5}) {
      const auto made = model.generator(TN_F64, at_once).generate(options);
      for (size_t i = 0; i < samples_.count(); ++i) {
        ASSERT_EQ(made[i].size(), 4U);
        for (const Generation& each : made[i])
          EXPECT_NEAR(each.score, sum_of(model.log_p(samples_.topics[i], samples_.prompts[i], each.ids)), 1e-10) << i;
      }
    }
  }
}

// Beam 1, so that each id is the most probable one after all those before it.
TEST_F(WholeLayers, EachIdIsTheBestOfTheWholeModel) {
  for (const auto& [name, middle] : middles()) {
    SCOPED_TRACE(name);
    const Model model(host_, middle);
    const auto made = model.generator().generate(options_of(feeds_, TN_GENERATE_GREEDY));
    for (size_t i = 0; i < samples_.count(); ++i) {
      Ids before;
      for (const int64_t id : made[i][0].ids) {
        int64_t best = 0;
        double most = -HUGE_VAL;
        for (int64_t other = 0; other < kWords; ++other) {
          Ids with = before;
          with.push_back(other);
          const double log_p = model.log_p(samples_.topics[i], samples_.prompts[i], with).back();
          if (log_p > most) best = other, most = log_p;
        }
        EXPECT_EQ(id, best);
        before.push_back(id);
      }
    }
  }
}

TEST_F(WholeLayers, SingleNumbersAreWithinRounding) {
  for (const auto& [name, middle] : middles()) {
    SCOPED_TRACE(name);
    const Model model(host_, middle);
    GenerateOptions options = options_of(feeds_, TN_GENERATE_SAMPLE);
    options.end_id = -1, options.max_length = 40, options.temperature = 2;
    const auto made = model.generator(TN_F32).generate(options);
    for (size_t i = 0; i < samples_.count(); ++i) {
      ASSERT_EQ(made[i][0].ids.size(), 40 - samples_.prompts[i].size());
      const std::vector<double> expected = model.log_p(samples_.topics[i], samples_.prompts[i], made[i][0].ids, TN_F32);
      EXPECT_NEAR(made[i][0].score, sum_of(expected), 1e-4) << i;
    }
  }
}

TEST_F(WholeLayers, ResultsDependNeitherOnOtherSamplesNorOnThreads) {
  for (const auto& [name, middle] : middles()) {
    SCOPED_TRACE(name);
    GenerateOptions options = options_of(feeds_, TN_GENERATE_BEAM);
    options.beam_size = options.results = 3;
    const auto expected = Model(host_, middle).generator(TN_F32).generate(options);
    HostOptions one;
    one.threads = 1, one.plugin_paths = {plugin_folder(), test_plugin_folder() + "/layers"},
    one.check = TN_CHECK_ON;  // of operands of kernels, too
    const Host other(one);
    const auto made = Model(other, middle).generator(TN_F32, 1).generate(options);
    for (size_t i = 0; i < samples_.count(); ++i)
      for (size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(made[i][k].ids, expected[i][k].ids);
        EXPECT_EQ(made[i][k].score, expected[i][k].score);  // the same bits
      }
  }
}

TEST_F(WholeLayers, SavedModelsGenerateTheSame) {
  const TemporaryFolder folder;
  GeneratorOptions made;
  made.from_logits = true;
  for (const auto& [name, middle] : middles()) {
    SCOPED_TRACE(name);
    const Model model(host_, middle);
    const std::string path = folder.file("model.safetensors");
    model.parameters.save({model.score}, path);
    const Host other = host_with(1);
    const tenon::Model loaded = other.load(path);
    const GenerateOptions options = options_of(feeds_, TN_GENERATE_GREEDY);
    const auto results = Generator(loaded.parameters, loaded.outputs[0], "words", made).generate(options);
    const auto expected = model.generator(TN_F32).generate(options);
    for (size_t i = 0; i < samples_.count(); ++i) EXPECT_EQ(results[i][0].ids, expected[i][0].ids);
  }
}

// A cache of more rows than any machine begins with, which grows several times.
TEST_F(WholeLayers, LongResults) {
  const Model model(host_, [](const Host& host, const Layer& vectors, const Layer&) {
    return block(host, host.layer("positional_encoding", {vectors}), 2);
  });
  const SampleFeeds feeds(samples_.picked({0, 1}));
  GenerateOptions options = options_of(feeds, TN_GENERATE_SAMPLE);
  options.end_id = -1, options.max_length = 600, options.temperature = 2;
  const auto made = model.generator().generate(options);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(made[i][0].score, sum_of(model.log_p(samples_.topics[i], samples_.prompts[i], made[i][0].ids)), 1e-8);
}

class Refused : public testing::Test {
 protected:
  void expect(const Middle& middle, const std::string& part, int64_t max_length = 0) const {
    const SampleFeeds feeds(Samples::some());
    try {
      const Model model(host_, middle);
      const Generator generator = model.generator();
      GenerateOptions options = options_of(feeds, TN_GENERATE_GREEDY);
      options.max_length = max_length;
      if (max_length > 0) static_cast<void>(generator.generate(options));
      ADD_FAILURE() << "nothing was refused; expected " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_INVALID) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
  const Host host_ = host_with(1);
};

TEST_F(Refused, WhatNeedsLaterRows) {
  expect(recurrent("lstm", {{"reverse", true}}, false),
         "layer \"first\" (lstm): it cannot be in a step that generates ids of \"words\" one after the other: reverse: "
         "goes from the last row to the first");
  expect(
      [](const Host& host, const Layer& x, const Layer&) {
        return host.layer("sequence_attention", {x, x, x}, {}, "seen");
      },
      "layer \"seen\" (sequence_attention): it cannot be in a step that generates ids of \"words\" one after the "
      "other: "
      "causal: is false");
  expect(
      [](const Host& host, const Layer& x, const Layer&) {
        return host.layer("multi_head_attention", {x}, {{"heads", 2}}, "seen");
      },
      "layer \"seen\" (multi_head_attention): it cannot be in a step");
  expect(
      [](const Host& host, const Layer& x, const Layer&) {
        const Layer last = host.layer("lstm", {x}, {{"size", kSize}}, "first").output(1);
        return host.layer("sequence_expand", {last, x});
      },
      "layer \"first\" (lstm)");
}

TEST_F(Refused, MoreIdsThanPositions) {
  const Middle middle = [](const Host& host, const Layer& x, const Layer&) {
    return host.layer("position_embedding", {x}, {{"length", 9}}, "placed");
  };
  expect(middle,
         "option \"max_length\" is 10, so that 10 ids may be fed; layer \"placed/position_embedding\" has 9 "
         "positions",
         10);
}

}  // namespace

}  // namespace tenon_tests
