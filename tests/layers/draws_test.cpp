// Drawn classes and scheduled sampling: frequencies against the probabilities that the layers state, and equality with
// teacher forcing where nothing is drawn. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_updater.hpp>
#include <utility>
#include <vector>

#include "tests/layers/layers_on_a_host.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Numbers = std::vector<double>;
using Ids = std::vector<int64_t>;

constexpr int64_t kVocabulary = 4;
const Numbers kProbabilities = {0.1, 0, 0.55, 0.35};

// Whether `count` of `all` is as probable as 5 deviations around `probability` allow.
void expect_share(int64_t count, int64_t all, double probability, const std::string& what) {
  const auto n = static_cast<double>(all);
  const double deviation = std::sqrt(probability * (1 - probability) / n);
  EXPECT_NEAR(static_cast<double>(count) / n, probability, 5 * deviation + 1e-12) << what << ", " << all << " draws";
}

// `samples` sequences of `length` ids.
struct Sequences {
  Ids ids, offsets{0};
  Sequences(int64_t samples, int64_t length, const std::function<int64_t(int64_t)>& id) {
    for (int64_t i = 0; i < samples * length; ++i) ids.push_back(id(i));
    for (int64_t s = 1; s <= samples; ++s) offsets.push_back(s * length);
  }
  [[nodiscard]] Array array() const {
    const auto samples = static_cast<int64_t>(offsets.size()) - 1;
    return Array::sequences(TN_I64, {offsets.back()}, ids.data(), samples, offsets.data());
  }
};

class Draws : public LayersOnAHost {
 protected:
  [[nodiscard]] static Layer ids(const Host& host, const std::string& name, const std::string& sequence = "") {
    DataOptions options;
    options.name = name, options.dtype = TN_I64, options.storage = TN_RAGGED, options.sequence = sequence;
    return host.data(options);
  }
  [[nodiscard]] static Ids drawn(const std::vector<float>& scores, bool logits, bool training, int threads) {
    const Host host({threads, {plugin_folder()}, nullptr, {}});
    DataOptions options;
    options.name = "scores", options.shape = {kVocabulary};
    const Layer given = host.data(options);
    const Layer layer = host.layer("draw_class", {given}, {{"from_logits", logits}}, "drawn");
    const Layer cost = host.layer("sum_cost", {host.layer("fc", {given}, {{"size", 1}})}, {}, "cost");
    MachineOptions run;
    run.max_samples = static_cast<int64_t>(scores.size()) / kVocabulary, run.training = training, run.seed = 3;
    const Machine machine = host.machine(host.parameters({layer, cost}, 1), {layer, cost}, run);
    machine.forward({{"scores", {TN_F32, {run.max_samples, kVocabulary}, scores.data()}}});
    const Array made = machine.output(layer);
    EXPECT_EQ(made.dtype, TN_I64);
    const auto* const first = static_cast<const int64_t*>(made.data);
    return {first, first + made.count()};
  }
};

TEST_F(Draws, ClassesHaveTheirProbabilities) {
  constexpr int64_t kSamples = 20000;
  std::vector<float> probabilities, logits;
  for (int64_t i = 0; i < kSamples; ++i)
    for (const double p : kProbabilities) {
      probabilities.push_back(static_cast<float>(p * 3));  // need not add up to 1
      logits.push_back(static_cast<float>(std::log(p) + 2));
    }
  for (const bool of_logits : {false, true})
    for (const bool training : {false, true}) {
      const Ids found = drawn(of_logits ? logits : probabilities, of_logits, training, 2);
      ASSERT_EQ(found.size(), static_cast<size_t>(kSamples));
      Ids counts(kVocabulary, 0);
      for (const int64_t id : found) ++counts.at(static_cast<size_t>(id));
      for (size_t c = 0; c < counts.size(); ++c)
        expect_share(counts[c], kSamples, kProbabilities[c], "class " + std::to_string(c));
      int64_t pairs = 0;  // neighbours are drawn independently of each other
      for (size_t i = 1; i < found.size(); ++i) pairs += found[i] == 2 && found[i - 1] == 2 ? 1 : 0;
      expect_share(pairs, kSamples - 1, 0.55 * 0.55, "pairs");
    }
  EXPECT_EQ(drawn(logits, true, true, 1), drawn(logits, true, true, 3));
}

// A training whose step reads ids that scheduled_sampling chooses.
class Scheduled {
 public:
  Scheduled(const Attributes& attributes, bool training = true, const std::vector<std::string>& devices = {})
      : host_({2, {plugin_folder()}, nullptr, {}}) {
    DataOptions options;
    options.name = "ids", options.dtype = TN_I64, options.storage = TN_RAGGED, options.index_limit = kVocabulary;
    const Layer ids = host_.data(options);
    taken_ = host_.layer("scheduled_sampling", {ids}, attributes, "taken");
    const Layer vectors = host_.layer("embedding", {ids}, {{"vocabulary", kVocabulary}, {"size", 1}});
    cost_ = host_.layer("sum_cost", {vectors}, {}, "cost");
    parameters_ = host_.parameters({taken_, cost_}, 1);
    MachineOptions run;
    run.max_samples = 4000, run.training = training, run.seed = 9, run.devices = devices;
    machine_ = host_.machine(parameters_, {taken_, cost_}, run);
  }
  void set_updates(float updates) { parameters_.set("taken.updates", {TN_F32, {1}, &updates}); }
  [[nodiscard]] float updates() const { return *static_cast<const float*>(parameters_.get("taken.updates").data); }
  [[nodiscard]] std::vector<float> forward(const Sequences& sequences) {
    machine_.forward({{"ids", sequences.array()}});
    const Array made = machine_.output(taken_);
    const auto* const first = static_cast<const float*>(made.data);
    return {first, first + made.count()};
  }
  void update() {
    machine_.backward();
    host_.updater("sgd", {{"learning_rate", 0.0}}).update(machine_);
  }

 private:
  Host host_;
  Layer taken_, cost_;
  Parameters parameters_;
  Machine machine_;
};

TEST_F(Draws, RowsAreTakenAsTheScheduleSays) {
  constexpr int64_t kSamples = 4000, kLength = 5;
  const Sequences sequences(kSamples, kLength, [](int64_t i) { return i % kVocabulary; });
  struct Case {
    Attributes attributes;
    std::function<double(double)> right;  // the share of right rows after so many updates
  };
  const std::vector<Case> cases = {
      {{{"decay", "constant"}, {"probability", 0.3}}, [](double) { return 0.7; }},
      {{{"steps", 40.0}}, [](double i) { return std::max(0.0, 1 - i / 40); }},
      {{{"decay", "linear"}, {"steps", 40.0}, {"probability", 0.5}},
       [](double i) { return 1 - 0.5 * std::min(1.0, i / 40); }},
      {{{"decay", "exponential"}, {"steps", 30.0}}, [](double i) { return std::exp(-i / 30); }},
      {{{"decay", "inverse_sigmoid"}, {"steps", 12.0}}, [](double i) { return 12 / (12 + std::exp(i / 12)); }}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& each = cases[i];
    Scheduled model(each.attributes, true, std::vector<std::string>(i, "cpu"));  // shards count one update, too
    for (const float updates : {0.0F, 10.0F, 30.0F, 1e6F}) {
      model.set_updates(updates);
      const std::vector<float> taken = model.forward(sequences);
      ASSERT_EQ(taken.size(), static_cast<size_t>(kSamples * kLength));
      int64_t count = 0;
      for (size_t row = 0; row < taken.size(); ++row) {
        EXPECT_TRUE(taken[row] == 0 || taken[row] == 1) << row;
        if (row % kLength == 0) {
          EXPECT_EQ(taken[row], 0) << row;
        }
        count += taken[row] == 1 ? 1 : 0;
      }
      expect_share(count, kSamples * (kLength - 1), 1 - each.right(updates), std::to_string(updates) + " updates");
      EXPECT_EQ(model.forward(sequences), taken);  // of one step
      model.update();
      EXPECT_EQ(model.updates(), updates + 1);
    }
  }
}

TEST_F(Draws, NothingIsTakenWithoutTraining) {
  const Sequences sequences(50, 4, [](int64_t) { return 0; });
  Scheduled answering(Attributes{{"decay", "constant"}}, false);
  EXPECT_THAT(answering.forward(sequences), testing::Each(0));
  Scheduled training(Attributes{{"decay", "constant"}});
  EXPECT_THAT(training.forward(sequences), testing::Contains(1));
  EXPECT_EQ(training.updates(), 0);  // counted by updates, not by forward
}

// A decoder: gates of the word and the state, and scores of the next word, of which the next step may draw one.
struct Decoder {
  Layer cost, words, scores;

  Decoder(const Host& host, const Layer& given, const Layer& wanted, const Attributes* schedule) {
    const Attributes table = {{"vocabulary", kVocabulary}, {"size", kVocabulary}, {"parameter_name", "table"}};
    Layers inputs = {host.layer("embedding", {given}, table, "vectors")};
    if (schedule != nullptr) inputs.push_back(host.layer("scheduled_sampling", {given}, *schedule, "taken"));
    const ScanResult scan = tenon::scan(inputs, [&](Step& step) {
      const Layer state = step.memory({6});
      Layer word = step.input(0), said;
      if (schedule != nullptr) {
        said = step.memory({kVocabulary});
        const Layer drawn = host.layer("draw_class", {said}, {{"from_logits", true}});
        word = host.layer("where", {step.input(1), host.layer("embedding", {drawn}, table), word});
      }
      const Layer next = host.layer("fc", {word, state}, {{"size", 6}, {"act", "tanh"}}, "state");
      const Layer score = host.layer("fc", {next}, {{"size", kVocabulary}}, "score");
      step.next(state, next);
      if (schedule != nullptr) step.next(said, score);
      return Layers{score, word};
    });
    scores = scan.results[0], words = scan.results[1];
    cost = host.layer("cross_entropy", {scores, wanted}, {{"from_logits", true}}, "cost");
  }
};

class Decoding : public Draws {
 protected:
  static constexpr int64_t kSamples = 2000, kLength = 6;

  // Cost, and gradients by parameter, of one forward and backward.
  [[nodiscard]] std::pair<double, std::vector<std::vector<float>>> trained(const Attributes* schedule) const {
    const Host host({1, {plugin_folder()}, nullptr, {}});
    const Decoder decoder(host, ids(host, "given", "words"), ids(host, "wanted", "words"), schedule);
    const Parameters parameters = host.parameters({decoder.cost}, 5);
    MachineOptions run;
    run.max_samples = kSamples, run.training = true;
    const Machine machine = host.machine(parameters, {decoder.cost}, run);
    const Sequences given(40, kLength, [](int64_t i) { return (i * i + i / 7) % kVocabulary; });
    const Sequences wanted(40, kLength, [](int64_t i) { return (i * 3 + i / 5) % kVocabulary; });
    machine.forward({{"given", given.array()}, {"wanted", wanted.array()}});
    machine.backward();
    std::vector<std::vector<float>> gradients;
    for (const char* name :
         {"state.weight", "state.weight_1", "state.bias", "score.weight", "score.bias", "table.weight"}) {
      const Array made = machine.gradient(name);
      const auto* const first = static_cast<const float*>(made.data);
      gradients.emplace_back(first, first + made.count());
    }
    return {machine.cost(), gradients};
  }
};

TEST_F(Decoding, WithProbability0IsTeacherForcing) {
  const Attributes never = {{"decay", "constant"}, {"probability", 0.0}}, always = {{"decay", "constant"}};
  const auto [cost, gradients] = trained(nullptr);
  const auto [same_cost, same] = trained(&never);
  EXPECT_NEAR(same_cost, cost, 1e-6 * cost);
  for (size_t i = 0; i < gradients.size(); ++i)
    EXPECT_THAT(same[i], testing::Pointwise(testing::FloatNear(1e-6F), gradients[i])) << i;
  EXPECT_GT(std::abs(trained(&always).first - cost), 1e-4 * cost);
}

// Scores that do not depend on anything: rows have the given word or one that is drawn from these scores.
TEST_F(Decoding, DrawsFromTheScoresOfTheStepBefore) {
  constexpr double kShare = 0.6;
  const Attributes schedule = {{"decay", "constant"}, {"probability", kShare}};
  const Host host({2, {plugin_folder()}, nullptr, {}});
  const Decoder decoder(host, ids(host, "given", "words"), ids(host, "wanted", "words"), &schedule);
  const Parameters parameters = host.parameters({decoder.cost}, 5);
  std::vector<float> table(kVocabulary * kVocabulary, 0), weight(6 * kVocabulary, 0), bias;
  for (size_t c = 0; c < kVocabulary; ++c) table[c * kVocabulary + c] = 1;
  for (const double p : kProbabilities) bias.push_back(p > 0 ? static_cast<float>(std::log(p)) : -100.0F);
  parameters.set("table.weight", {TN_F32, {kVocabulary, kVocabulary}, table.data()});
  parameters.set("score.weight", {TN_F32, {6, kVocabulary}, weight.data()});
  parameters.set("score.bias", {TN_F32, {kVocabulary}, bias.data()});
  MachineOptions run;
  run.max_samples = kSamples, run.training = true, run.seed = 2;
  const Machine machine = host.machine(parameters, {decoder.cost, decoder.words}, run);
  constexpr int64_t kGiven = 1;  // which is never drawn
  const Sequences given(kSamples, kLength, [](int64_t) { return kGiven; });
  machine.forward({{"given", given.array()}, {"wanted", given.array()}});
  const auto* const words = static_cast<const float*>(machine.output(decoder.words).data);
  Ids counts(kVocabulary, 0);
  for (int64_t row = 0; row < kSamples * kLength; ++row)
    for (int64_t c = 0; c < kVocabulary; ++c) {
      const bool is_this = words[row * kVocabulary + c] == 1;
      if (row % kLength == 0)
        EXPECT_EQ(is_this, c == kGiven) << row;
      else if (is_this)
        ++counts[static_cast<size_t>(c)];
    }
  const int64_t rows = kSamples * (kLength - 1);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), rows);
  for (int64_t c = 0; c < kVocabulary; ++c) {
    const double probability = kShare * kProbabilities[static_cast<size_t>(c)] + (c == kGiven ? 1 - kShare : 0);
    expect_share(counts[static_cast<size_t>(c)], rows, probability, "word " + std::to_string(c));
  }
}

TEST_F(Draws, Mistakes) {
  EXPECT_THAT(mistake("draw_class", {data("flat", {})}), testing::HasSubstr("must be [samples, ..., classes]"));
  const Layer rows = ids(host_, "rows");
  EXPECT_THAT(mistake("scheduled_sampling", {rows}), testing::HasSubstr("steps: is missing"));
  EXPECT_THAT(mistake("scheduled_sampling", {rows}, {{"decay", "constant"}, {"steps", 3.0}}),
              testing::HasSubstr("steps: is for a decay that is not constant"));
  EXPECT_THAT(mistake("scheduled_sampling", {rows}, {{"steps", 3.0}, {"probability", 1.5}}),
              testing::HasSubstr("between 0 and 1"));
  EXPECT_THAT(mistake("scheduled_sampling", {data("wide", {2}, TN_I64)}, {{"steps", 3.0}}),
              testing::HasSubstr("must be an integer for each row"));
}

}  // namespace

}  // namespace tenon_tests
