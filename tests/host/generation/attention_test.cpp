// A decoder that attends over the words of another sequence generates what the model of whole sequences answers.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/host/generation/word_model.h"

namespace tenon_tests {

namespace {

constexpr int64_t kWords = 5, kSize = 4, kBegin = 1, kEnd = 0;

class AttendingDecoder : public testing::Test {
 protected:
  AttendingDecoder() {
    const auto ids = [&](const char* name) {
      DataOptions options;
      options.name = name, options.dtype = TN_I64, options.storage = TN_RAGGED, options.index_limit = kWords;
      return host_.layer("embedding", {host_.data(options)}, {{"vocabulary", kWords}, {"size", kSize}});
    };
    const Layer source = ids("source"), target = ids("target");
    const Layer keys = host_.layer("fc", {source}, {{"size", kSize}}, "keys");
    const Layer start = host_.layer("sequence_pool", {source}, {{"kind", "mean"}}, "start");
    const auto step = [&](Step& inside) {
      const Layer h = inside.memory(start, "h");
      const Layer seen = host_.layer("additive_attention", {h, keys, source}, {}, "seen");
      const Layer spread = host_.layer("sequence_expand", {h, keys}, {}, "spread");  // rows inside of the step
      const Layer most = host_.layer("sequence_pool", {spread}, {{"kind", "max"}}, "most");
      const Layer next =
          host_.layer("fc", {inside.input(0), h, seen, most}, {{"size", kSize}, {"act", "tanh"}}, "next");
      inside.next(h, next);
      return Layers{next};
    };
    score_ = host_.layer("fc", {scan({target}, step).results[0]}, {{"size", kWords}}, "score");
    parameters_ = host_.parameters({score_}, 3);
    const Array values = parameters_.get("score.weight");
    std::vector<float> scaled(static_cast<const float*>(values.data),
                              static_cast<const float*>(values.data) + values.count());
    for (float& each : scaled) each *= 6;
    parameters_.set("score.weight", {TN_F32, values.shape, scaled.data()});
  }
  // The sum of the logarithms of the probabilities of ids after the begin id, by the model of whole sequences.
  double log_p(const Ids& source, const Ids& ids) const {
    MachineOptions options;
    options.max_samples = 1, options.compute = TN_F64;
    const Machine machine = host_.machine(parameters_, {score_}, options);
    Ids fed = {kBegin};
    fed.insert(fed.end(), ids.begin(), ids.end() - 1);
    const int64_t ends[] = {0, static_cast<int64_t>(fed.size())}, of[] = {0, static_cast<int64_t>(source.size())};
    machine.forward({{"target", Array::sequences(TN_I64, {ends[1]}, fed.data(), 1, ends)},
                     {"source", Array::sequences(TN_I64, {of[1]}, source.data(), 1, of)}});
    const Array scores = machine.output(score_);
    double result = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto* const row = static_cast<const double*>(scores.data) + static_cast<int64_t>(i) * kWords;
      double sum = 0;
      for (int64_t k = 0; k < kWords; ++k) sum += std::exp(row[k]);
      result += row[ids[i]] - std::log(sum);
    }
    return result;
  }

  const Host host_ = host_with(2);
  Layer score_;
  Parameters parameters_;
};

TEST_F(AttendingDecoder, BeamsSeeTheWordsOfTheirSample) {
  const std::vector<Ids> sources = {{1, 2, 3}, {4}, {2, 2, 3, 4, 1, 0}, {}, {3, 1}};
  Ids all;
  std::vector<int64_t> ends{0};
  for (const Ids& each : sources) {
    all.insert(all.end(), each.begin(), each.end());
    ends.push_back(static_cast<int64_t>(all.size()));
  }
  GeneratorOptions made;
  made.from_logits = true, made.compute = TN_F64;
  GenerateOptions options;
  options.method = TN_GENERATE_BEAM, options.beam_size = 4, options.results = 4;
  options.begin_id = kBegin, options.end_id = kEnd, options.max_length = 6;
  options.feeds = {
      {"source", Array::sequences(TN_I64, {static_cast<int64_t>(all.size())}, all.data(), 5, ends.data())}};
  for (const int64_t at_once : {2, 5}) {
    made.max_samples = at_once;
    const auto samples = Generator(parameters_, score_, "target", made).generate(options);
    for (size_t i = 0; i < sources.size(); ++i) {
      ASSERT_EQ(samples[i].size(), 4U);
      for (const Generation& each : samples[i]) EXPECT_NEAR(each.score, log_p(sources[i], each.ids), 1e-12) << i;
    }
  }
}

}  // namespace

}  // namespace tenon_tests
