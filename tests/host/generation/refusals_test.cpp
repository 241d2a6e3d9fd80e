// What cannot be generated is refused: errors name the option, the layer or the sample.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <tenon/plugin.hpp>
#include <tenon/tenon_cond.hpp>

#include "tests/host/generation/word_model.h"
#include "tests/support/bare_plugin.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

// Layers of vectors [4] that give rows of sequences another shape than rows of samples: twice as wide, or with one
// dimension more.
template <bool kDeeper>
struct OfSequences {
  static void describe(tn::LayerDescription& d) {
    d.type(kDeeper ? "test_deeper" : "test_wider", "its input in another shape");
    d.input("in", "[rows, 4]");
    d.output("out", "another shape where the rows are not those of sequences");
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input(0);
    if (in.is_ragged())
      planner.output(0, in);
    else
      planner.output(0, kDeeper ? tn::Spec({in[0], 4, 1}) : tn::Spec({in[0], 8}));
  }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) {
    const tn::Tensor in = body.input(0);
    body.output(0, in.spec().is_ragged() ? in
                   : kDeeper             ? in.view(tn::Spec({in.spec()[0], 4, 1}))
                                         : body.concat({in, in}, 1));
  }
};

class Refusals : public testing::Test {
 protected:
  Refusals() {
    plugin_.layers_count = 2;
    plugin_.layers = types_;
    host_.add_plugin(&plugin_);
  }
  void expect(const std::function<void()>& work, tn_status code, const std::string& part) const {
    try {
      work();
      ADD_FAILURE() << "nothing was refused; expected " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
  void expect_options(const std::function<void(GenerateOptions&)>& change, tn_status code,
                      const std::string& part) const {
    GenerateOptions options;
    options.method = TN_GENERATE_BEAM, options.feeds = feeds_.feeds();
    options.begin_id = 2, options.end_id = 0, options.max_length = 6, options.beam_size = 3;
    change(options);
    expect([&] { static_cast<void>(generator_.generate(options)); }, code, part);
  }
  // Makes a generator of scores [rows, 4] that `make` computes from embedded words.
  void expect_model(const std::function<Layer(const Layer& words, const Layer& vectors)>& make, tn_status code,
                    const std::string& part, const std::string& ids = "words") const {
    DataOptions data;
    data.name = "words", data.dtype = TN_I64, data.storage = TN_RAGGED, data.index_limit = 4;
    const Layer words = host_.data(data);
    const Layer vectors = host_.layer("embedding", {words}, {{"vocabulary", 4}, {"size", 4}}, "vectors");
    const Layer scores = make(words, vectors);
    const Parameters parameters = host_.parameters({scores}, 1);
    expect([&] { static_cast<void>(Generator(parameters, scores, ids)); }, code, part);
  }

  const tn_layer_type* const types_[2] = {tn::layer_type<OfSequences<false>>(), tn::layer_type<OfSequences<true>>()};
  tn_plugin plugin_ = bare_plugin("tenon.test.shapes");
  const Host host_ = host_with(1);
  const WordModel model_{host_};
  const Generator generator_ = model_.generator();
  const Samples samples_ = Samples::some();
  const SampleFeeds feeds_{samples_};
};

TEST_F(Refusals, Options) {
  using Options = GenerateOptions;
  const auto refused = [&](const std::function<void(Options&)>& change, const std::string& part) {
    expect_options(change, TN_INVALID, part);
  };
  refused([](Options& o) { o.method = 3; }, "options.method is 3; expected TN_GENERATE_*");
  refused([](Options& o) { o.end_id = -1; }, "option \"end_id\" is missing: beam search compares results that end");
  refused([](Options& o) { o.end_id = 4; }, "option \"end_id\" is 4; expected an id of 0 to 3, or none");
  refused([](Options& o) { o.begin_id = -2; }, "option \"begin_id\" is -2; expected an id of 0 to 3");
  refused([](Options& o) { o.max_length = 0; }, "option \"max_length\" is 0; expected at least 1");
  refused([](Options& o) { o.max_length = 5; },
          "the prompt of sample 4 has 5 ids; option \"max_length\", 5, counts those of the prompt and leaves none to "
          "generate");
  refused([](Options& o) { o.begin_id = -1; },
          "the prompt of sample 2 is empty, and option \"begin_id\" is missing: nothing can be fed first");
  refused([](Options& o) { o.beam_size = -1; }, "option \"beam_size\" is -1; expected 1 to 65536");
  refused([](Options& o) { o.results = 4; }, "option \"results\" is 4, more than option \"beam_size\", 3");
  refused([](Options& o) { o.length_penalty = -0.5; }, "option \"length_penalty\" is -0.5; expected a number of at");
  refused([](Options& o) { o.method = TN_GENERATE_GREEDY, o.results = 2; },
          "option \"results\" is 2; the most probable ids give one result of each sample");
  refused([](Options& o) { o.method = TN_GENERATE_SAMPLE, o.temperature = -1; }, "\"temperature\" is -1; expected");
  refused([](Options& o) { o.method = TN_GENERATE_SAMPLE, o.top_k = -1; }, "\"top_k\" is -1; expected at least 0");
  refused([](Options& o) { o.method = TN_GENERATE_SAMPLE, o.top_p = 1.5; }, "\"top_p\" is 1.5; expected a number in");
  refused([](Options& o) { o.streams = {1, 2}; }, "option \"streams\" has 2 numbers for 5 samples");
  refused([](Options& o) { o.sink = [](int64_t, int64_t, int64_t) { return true; }; },
          "beam search knows no id of a result before its end");
}

TEST_F(Refusals, Feeds) {
  expect_options([](GenerateOptions& o) { o.feeds.pop_back(); }, TN_INVALID, "data layer \"topic\" is not fed");
  expect_options([](GenerateOptions& o) { o.feeds.push_back({"x", {}}); }, TN_NOT_FOUND, "\"x\"");
  expect_options([](GenerateOptions& o) { o.feeds.push_back(o.feeds[0]); }, TN_INVALID, "\" is fed twice");
  const std::vector<int64_t> ids = {1, 4}, ends = {0, 1, 2}, falling = {0, 3, 2};
  const std::vector<float> topics(6, 0), numbers = {1, 2};
  const auto with = [&](const Array& words, tn_status code, const std::string& part) {
    expect_options(
        [&](GenerateOptions& o) {
          o.feeds = {{"words", words}, {"topic", {TN_F32, {2, 3}, topics.data()}}};
        },
        code, part);
  };
  with(Array::sequences(TN_I64, {2}, ids.data(), 2, ends.data()), TN_BAD_DATA,
       "id 0 of the prompt of sample 1 is 4; expected 0 to 3");
  with(Array::sequences(TN_I64, {1}, ids.data(), 1, ends.data()), TN_INVALID,
       "data layer \"words\": prompts of 1 samples; the other data layers have 2");
  with(Array::sequences(TN_I64, {2}, ids.data(), 2, falling.data()), TN_INVALID, "its offsets are missing or fall");
  with(Array::sequences(TN_I64, {1}, ids.data(), 2, ends.data()), TN_INVALID,
       "the offsets of its 2 samples do not end at its 1 rows");
  with(Array::sequences(TN_I64, {2}, nullptr, 2, ends.data()), TN_INVALID,
       "data layer \"words\": its 2 rows have no data");
  with({TN_I64, {2}, ids.data()}, TN_INVALID, "expected sequences of integers as prompts, got dense int64 of rank 1");
  with(Array::sequences(TN_F32, {2}, numbers.data(), 2, ends.data()), TN_INVALID, "got ragged float32 of rank 1");
}

TEST_F(Refusals, Models) {
  const auto fc = [&](const Layer& x, int64_t size) { return host_.layer("fc", {x}, {{"size", size}}, "score"); };
  expect_model([&](const Layer&, const Layer& x) { return fc(x, 3); }, TN_INVALID,
               "layer \"score\" (fc): it has scores of 3 ids, and the ids of data layer \"words\" are below 4");
  expect_model([&](const Layer&, const Layer& x) { return fc(x, 4); }, TN_NOT_FOUND,
               "layer \"score\" (fc) does not depend on a data layer \"word\"", "word");
  expect_model(
      [&](const Layer&, const Layer& x) {
        return host_.layer("sequence_pool", {fc(x, 4)}, {{"kind", "mean"}}, "mean");
      },
      TN_INVALID, "layer \"mean\" (sequence_pool): it has float [samples, 4]; expected scores of all ids in each row");
  expect_model(
      [&](const Layer&, const Layer& x) {
        return fc(host_.layer("row_conv", {x}, {{"length", 2}}, "ahead"), 4);
      },
      TN_INVALID,
      "layer \"ahead\" (row_conv): it cannot be in a step that generates ids of \"words\" one after the other: ");
  expect_model(
      [&](const Layer&, const Layer& x) {
        const Layer mean = host_.layer("sequence_pool", {x}, {{"kind", "mean"}}, "mean");
        const auto step = [&](Step& inside) {
          return Layers{host_.layer("fc", {inside.input(0), mean}, {{"size", 4}}, "next")};
        };
        return scan({x}, step).results[0];
      },
      TN_INVALID, "layer \"mean\" (sequence_pool)");
  expect_model(
      [&](const Layer&, const Layer& x) {
        ScanOptions options;
        options.reverse = true, options.name = "back";
        const auto step = [&](Step& inside) {
          const Layer h = inside.memory({4});
          inside.next(h, host_.layer("add", {inside.input(0), h}));
          return Layers{h};
        };
        return scan({x}, step, options).results[0];
      },
      TN_INVALID, "layer \"back\" (scan): it is reversed");
  expect_model(
      [&](const Layer&, const Layer& x) {
        DataOptions data;
        data.name = "weights", data.shape = {4}, data.storage = TN_RAGGED, data.sequence = "words";
        return host_.layer("mul", {x, host_.data(data)}, {}, "product");
      },
      TN_INVALID,
      "layer \"weights\" (data): it has a row for each of the ids of \"words\", which are not known before they are "
      "generated");
  expect_model(
      [&](const Layer& words, const Layer& x) {
        const auto branch = [&](Branch& inside) { return Layers{inside.input(x)}; };
        return cond(words, branch, branch, "gate").results[0];
      },
      TN_UNSUPPORTED, "branches for rows of \"words\" cannot be in a step that generates its ids");
  DataOptions data;
  data.name = "x", data.shape = {4}, data.storage = TN_RAGGED;
  const Layer x = host_.data(data);
  const Layer score = fc(x, 4);
  expect([&] { Generator(host_.parameters({score}, 1), score, "x"); }, TN_INVALID,
         "layer \"x\" (data): it has float32 [rows");
}

TEST_F(Refusals, LayersWhoseRowsHaveAnotherShapeInAStep) {
  for (const char* type : {"test_wider", "test_deeper"})
    expect_model([&](const Layer&, const Layer& x) { return host_.layer(type, {x}, {}, "score"); }, TN_INVALID,
                 std::string("layer \"score\" (") + type +
                     "): it does not compute each row of \"words\" by itself, and the ids of a step after the first");
}

TEST_F(Refusals, ScoresThatAreNotNumbers) {
  const std::vector<float> wrong(5 * 4, std::numeric_limits<float>::quiet_NaN());
  model_.parameters.set("score.weight", {TN_F32, {WordModel::kState, WordModel::kVocabulary}, wrong.data()});
  // Sample 2 has no prompt, so it is the first to choose.
  expect_options([](GenerateOptions&) {}, TN_BAD_DATA,
                 "layer \"score\" (fc): the scores for sample 2 are not finite numbers");
}

TEST_F(Refusals, WorkOnWhatIsInUse) {
  GenerateOptions options;
  options.feeds = feeds_.feeds(), options.begin_id = 2, options.max_length = 6;
  options.sink = [&](int64_t, int64_t, int64_t) {
    expect([&] { static_cast<void>(generator_.generate(options)); }, TN_MISUSE, "the generator is in use by a call");
    return false;
  };
  static_cast<void>(generator_.generate(options));
}

}  // namespace

}  // namespace tenon_tests
