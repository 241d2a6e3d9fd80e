// Results equal those of plain references that compute each beginning anew with the model of whole sequences, for any
// order of samples, number of threads, and after save and load. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "host/generation/decoding.h"
#include "tenon/tenon_generate.hpp"
#include "tests/host/generation/word_model.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

constexpr int64_t kBegin = 2, kEnd = 0;

using Results = std::vector<std::vector<Generation>>;

double score_of(double sum, size_t length, double penalty) {
  return sum / std::pow((5 + static_cast<double>(length)) / 6, penalty);
}

// The search of one sample, from beginnings of which none is given up.
class Reference {
 public:
  Reference(WordModel& model, const Samples& samples, size_t sample, const GenerateOptions& options)
      : model_(model), topic_(samples.topics[sample]), options_(options) {
    given_ = {kBegin};
    given_.insert(given_.end(), samples.prompts[sample].begin(), samples.prompts[sample].end());
    most_ = static_cast<size_t>(options.max_length) - samples.prompts[sample].size();
  }

  // All sequences of ids that can be results.
  std::vector<Generation> all() {
    std::vector<Generation> results;
    extend({{}, 0}, results);
    return ranked(std::move(results));
  }
  std::vector<Generation> beam() {
    std::vector<Generation> results, live = {{{}, 0}};
    for (size_t length = 1; length <= most_; ++length) {
      std::vector<Generation> next;
      for (const Generation& each : live)
        for (Generation& longer : continuations(each)) next.push_back(std::move(longer));
      std::stable_sort(next.begin(), next.end(),
                       [](const Generation& a, const Generation& b) { return a.score > b.score; });
      if (next.size() > static_cast<size_t>(options_.beam_size)) next.resize(static_cast<size_t>(options_.beam_size));
      live.clear();
      for (Generation& each : next) (is_result(each) ? results : live).push_back(std::move(each));
    }
    return ranked(std::move(results));
  }

 private:
  [[nodiscard]] bool is_result(const Generation& each) const {
    return each.ids.back() == kEnd || each.ids.size() == most_;
  }
  std::vector<Generation> continuations(const Generation& from) {
    Ids ids = given_;
    ids.insert(ids.end(), from.ids.begin(), from.ids.end());
    const std::vector<double>& log_p = model_.log_p(topic_, ids);
    std::vector<Generation> result;
    for (int64_t id = 0; id < WordModel::kVocabulary; ++id) {
      result.push_back({from.ids, from.score + log_p[static_cast<size_t>(id)]});
      result.back().ids.push_back(id);
    }
    return result;
  }
  void extend(const Generation& from, std::vector<Generation>& results) {
    for (const Generation& each : continuations(from))
      if (is_result(each))
        results.push_back(each);
      else
        extend(each, results);
  }
  std::vector<Generation> ranked(std::vector<Generation> results) const {
    for (Generation& each : results) each.score = score_of(each.score, each.ids.size(), options_.length_penalty);
    std::stable_sort(results.begin(), results.end(),
                     [](const Generation& a, const Generation& b) { return a.score > b.score; });
    if (results.size() > static_cast<size_t>(options_.results)) results.resize(static_cast<size_t>(options_.results));
    return results;
  }

  WordModel& model_;
  const std::vector<float> topic_;
  const GenerateOptions& options_;
  Ids given_;
  size_t most_ = 0;
};

GenerateOptions options_of(const SampleFeeds& feeds, uint32_t method) {
  GenerateOptions options;
  options.method = method;
  options.feeds = feeds.feeds();
  options.begin_id = kBegin, options.end_id = kEnd, options.max_length = 7;
  return options;
}

// The draws for one sample: those of the search itself, of scores that the model of whole sequences answers to each
// beginning.
std::vector<Generation> drawn(WordModel& model, const Samples& samples, size_t sample, const GenerateOptions& options) {
  const host::DecodingOptions decoding = {host::Method::kSample,
                                          options.begin_id,
                                          options.end_id,
                                          options.max_length,
                                          options.beam_size,
                                          options.results,
                                          0,
                                          options.temperature,
                                          options.top_k,
                                          options.top_p,
                                          options.seed};
  const Ids& prompt = samples.prompts[sample];
  Ids given = {kBegin};
  given.insert(given.end(), prompt.begin(), prompt.end());
  host::Search search(decoding, given, options.max_length - static_cast<int64_t>(prompt.size()),
                      static_cast<uint64_t>(options.streams.at(sample)), {});
  std::vector<Ids> fed = {{}};  // by each row of the step
  while (!search.rows().empty()) {
    std::vector<Ids> next;
    for (const host::Search::Row& row : search.rows()) {
      next.push_back(fed.at(row.parent));
      next.back().push_back(row.id);
    }
    fed = std::move(next);
    if (!search.chooses()) {
      search.feed_given();
      continue;
    }
    std::vector<std::vector<host::Candidate>> candidates;
    for (size_t row = 0; row < fed.size(); ++row)
      candidates.push_back(search.candidates(row, model.log_p(samples.topics[sample], fed[row])));
    search.choose(candidates);
  }
  std::vector<Generation> results;
  for (const host::Search::Result& each : search.results()) results.push_back({each.ids, each.score});
  return results;
}

void expect_equal(const std::vector<Generation>& made, const std::vector<Generation>& expected, double most = 1e-12) {
  ASSERT_EQ(made.size(), expected.size());
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(made[i].ids, expected[i].ids) << i;
    EXPECT_NEAR(made[i].score, expected[i].score, most) << i;
  }
}

void expect_same_bits(const Results& made, const Results& expected) {
  ASSERT_EQ(made.size(), expected.size());
  for (size_t i = 0; i < made.size(); ++i) expect_equal(made[i], expected[i], 0);
}

class Generators : public testing::Test {
 protected:
  const Host host_ = host_with(2);
  WordModel model_{host_};
  const Samples samples_ = Samples::some();
  const SampleFeeds feeds_{samples_};
};

TEST_F(Generators, ABeamAsWideAsAllBeginningsFindsAllResults) {
  const Samples samples = samples_.picked({0, 1, 2, 3});
  const SampleFeeds feeds(samples);
  GenerateOptions options = options_of(feeds, TN_GENERATE_BEAM);
  options.max_length = 5;
  options.beam_size = options.results = 400;  // without a prompt: 3^4 beginnings of 4 ids, with 4 continuations each
  for (const double penalty : {0.0, 0.7}) {
    options.length_penalty = penalty;
    const Results made = model_.generator().generate(options);
    ASSERT_EQ(made.size(), samples.count());
    for (size_t i = 0; i < samples.count(); ++i) expect_equal(made[i], Reference(model_, samples, i, options).all());
    EXPECT_EQ(made[2].size(), 1U + 3 + 9 + 27 + 324);
  }
}

TEST_F(Generators, NarrowBeamsEqualAPlainSearch) {
  const Generator generator = model_.generator();
  for (const int64_t size : {1, 2, 3, 5})
    for (const int64_t results : {int64_t{1}, size})
      for (const double penalty : {0.0, 0.5, 2.0}) {
        GenerateOptions options = options_of(feeds_, TN_GENERATE_BEAM);
        options.beam_size = size, options.results = results, options.length_penalty = penalty;
        const Results made = generator.generate(options);
        for (size_t i = 0; i < samples_.count(); ++i) {
          SCOPED_TRACE(testing::Message()
                       << "beam " << size << ", results " << results << ", penalty " << penalty << ", sample " << i);
          expect_equal(made[i], Reference(model_, samples_, i, options).beam());
        }
      }
}

TEST_F(Generators, ABeamOfOneIsGreedy) {
  const Generator generator = model_.generator();
  const Results greedy = generator.generate(options_of(feeds_, TN_GENERATE_GREEDY));
  expect_same_bits(greedy, generator.generate(options_of(feeds_, TN_GENERATE_BEAM)));
  for (size_t i = 0; i < samples_.count(); ++i) {
    const GenerateOptions options = options_of(feeds_, TN_GENERATE_BEAM);
    expect_equal(greedy[i], Reference(model_, samples_, i, options).beam());
  }
}

// The draws of a sample are numbered, whichever of them have ended, and whatever is generated beside it.
TEST_F(Generators, EachResultHasDrawsOfItsOwn) {
  for (const int64_t results : {1, 2, 6}) {
    GenerateOptions options = options_of(feeds_, TN_GENERATE_SAMPLE);
    options.results = results, options.streams = {10, 11, 12, 13, 14}, options.seed = 4;
    for (const auto& [top_k, top_p] : {std::pair<int64_t, double>{0, 1}, {3, 1}, {0, 0.95}}) {
      options.top_k = top_k, options.top_p = top_p;
      for (const int64_t at_once : {2, 5}) {
        const Results made = model_.generator(TN_F64, at_once).generate(options);
        ASSERT_EQ(made.size(), samples_.count());
        for (size_t i = 0; i < samples_.count(); ++i) {
          SCOPED_TRACE(testing::Message() << results << " results of sample " << i);
          expect_equal(made[i], drawn(model_, samples_, i, options));
        }
      }
      GenerateOptions numbered = options;  // the streams are the numbers of the samples
      numbered.streams.clear();
      const Results by_number = model_.generator(TN_F64, 2).generate(numbered);
      numbered.streams = {0, 1, 2, 3, 4};
      for (size_t i = 0; i < samples_.count(); ++i) expect_equal(by_number.at(i), drawn(model_, samples_, i, numbered));
    }
  }
}

// The results of one prompt have the distribution of the model among each other.
TEST_F(Generators, ResultsOfAPromptAreIndependent) {
  constexpr int64_t kResults = 2000;
  GenerateOptions options = options_of(feeds_, TN_GENERATE_SAMPLE);
  options.results = kResults, options.max_length = 6;
  const std::vector<Generation> made = model_.generator().generate(options)[4];  // whose prompt leaves one id
  std::vector<double> counts(WordModel::kVocabulary, 0);
  for (const Generation& each : made) ++counts[static_cast<size_t>(each.ids.at(0))];
  const std::vector<double>& log_p = model_.log_p(samples_.topics[4], {kBegin, 1, 2, 3, 1, 2});
  for (size_t id = 0; id < counts.size(); ++id) {
    const double p = std::exp(log_p[id]);
    EXPECT_NEAR(counts[id] / kResults, p, 4 * std::sqrt(p * (1 - p) / kResults)) << id;
  }
}

// The most probable ids after those that are fed, by the model of whole sequences.
Ids greedy(const Machine& machine, const Layer& score, const Feed& picture, Ids fed, size_t count) {
  const size_t given = fed.size();
  while (fed.size() < given + count) {
    const int64_t ends[] = {0, static_cast<int64_t>(fed.size())};
    machine.forward({{"ids", Array::sequences(TN_I64, {ends[1]}, fed.data(), 1, ends)}, picture});
    const auto* const row = static_cast<const float*>(machine.output(score).data) + (ends[1] - 1) * 7;
    fed.push_back(std::max_element(row, row + 7) - row);
  }
  return {fed.begin() + static_cast<std::ptrdiff_t>(given), fed.end()};
}

// A step reads a picture as the whole model does, in either layout, and what is computed from it.
TEST_F(Generators, StepsReadPictures) {
  constexpr int64_t kSamples = 3, kPixels = 2 * 3 * 4;
  std::vector<float> pixels(kSamples * kPixels);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(std::sin(static_cast<double>(i * i)));
  for (const uint32_t layout : {TN_CHANNELS_FIRST, TN_CHANNELS_LAST}) {
    DataOptions ids, seen;
    ids.name = "ids", ids.dtype = TN_I64, ids.storage = TN_RAGGED, ids.index_limit = 7;
    seen.name = "picture", seen.shape = {2, 3, 4}, seen.layout = layout;
    const Layer vectors = host_.layer("embedding", {host_.data(ids)}, {{"vocabulary", 7}, {"size", 3}});
    const Layer picture = host_.data(seen);
    const Layer filtered = host_.layer("conv", {picture}, {{"filters", 2}, {"kernel", 2}}, "filtered");
    const ScanResult made = scan({vectors}, [&](Step& step) {
      const Layer h = step.memory({6}, 0.5);
      step.next(h, host_.layer("fc", {step.input(0), h, picture, filtered}, {{"size", 6}, {"act", "tanh"}}, "next"));
      return Layers{host_.layer("fc", {h, picture}, {{"size", 7}}, "score")};
    });
    const Layer score = made.results[0];
    const Parameters parameters = host_.parameters({score}, 3);
    GeneratorOptions of;
    of.from_logits = true;
    GenerateOptions options;
    options.feeds = {{"picture", {TN_F32, {kSamples, 2, 3, 4}, pixels.data()}}};
    options.begin_id = 1, options.max_length = 6;
    const Results results = Generator(parameters, score, "ids", of).generate(options);
    MachineOptions one;
    one.max_samples = 1;
    const Machine machine = host_.machine(parameters, {score}, one);
    std::set<Ids> different;
    for (size_t i = 0; i < results.size(); ++i) {
      const Feed alone = {"picture", {TN_F32, {1, 2, 3, 4}, pixels.data() + i * kPixels}};
      EXPECT_EQ(results[i].at(0).ids, greedy(machine, score, alone, {1}, 6)) << layout << " " << i;
      different.insert(results[i].at(0).ids);
    }
    EXPECT_EQ(different.size(), static_cast<size_t>(kSamples)) << "the pictures matter";
  }
}

TEST_F(Generators, PollsCancelARun) {
  const Generator generator = model_.generator();
  for (const uint32_t method : {TN_GENERATE_GREEDY, TN_GENERATE_BEAM}) {
    GenerateOptions options = options_of(feeds_, method);
    const Results whole = generator.generate(options);
    int steps = 0;
    options.poll = [&] { return ++steps < 3; };
    try {
      static_cast<void>(generator.generate(options));
      ADD_FAILURE() << "nothing was cancelled";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_CANCELLED) << error.what();
    }
    EXPECT_EQ(steps, 3);
    options.poll = []() -> bool { throw std::out_of_range("of the application"); };
    EXPECT_THROW(static_cast<void>(generator.generate(options)), std::out_of_range);
    options.poll = [] { return true; };
    expect_same_bits(whole, generator.generate(options));
  }
}

TEST_F(Generators, ResultsDependNeitherOnOtherSamplesNorOnThreads) {
  for (const uint32_t method : {TN_GENERATE_GREEDY, TN_GENERATE_SAMPLE, TN_GENERATE_BEAM}) {
    GenerateOptions options = options_of(feeds_, method);
    options.beam_size = 3, options.results = method == TN_GENERATE_GREEDY ? 1 : 3;
    options.streams = {10, 11, 12, 13, 14};
    const Results expected = model_.generator(TN_F32).generate(options);
    for (const int threads : {1, 2, 3}) {
      const Host host = host_with(threads);
      const WordModel same(host);
      for (const int64_t at_once : {1, 2, 5})
        expect_same_bits(same.generator(TN_F32, at_once).generate(options), expected);
    }
    const std::vector<size_t> order = {4, 1, 3, 0, 2};
    const SampleFeeds mixed(samples_.picked(order));
    options.feeds = mixed.feeds();
    Results sorted(order.size());
    for (size_t i = 0; i < order.size(); ++i) options.streams[i] = 10 + static_cast<int64_t>(order[i]);
    const Results made = model_.generator(TN_F32).generate(options);
    for (size_t i = 0; i < order.size(); ++i) sorted[order[i]] = made[i];
    expect_same_bits(sorted, expected);
  }
}

TEST_F(Generators, ChecksOfPluginsFindNothing) {
  HostOptions checking;
  checking.plugin_paths = {plugin_folder()};
  checking.check = TN_CHECK_ON;
  const Host host(checking);
  const WordModel same(host);
  GenerateOptions options = options_of(feeds_, TN_GENERATE_BEAM);
  options.beam_size = options.results = 3;
  expect_same_bits(same.generator().generate(options), model_.generator().generate(options));
}

TEST_F(Generators, SavedModelsGenerateTheSame) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  model_.parameters.save({model_.score}, path);
  GenerateOptions options = options_of(feeds_, TN_GENERATE_BEAM);
  options.beam_size = options.results = 3;
  const Results expected = model_.generator().generate(options);
  const Host other = host_with(1);
  const Model loaded = other.load(path);
  GeneratorOptions made;
  made.from_logits = true, made.compute = TN_F64;
  expect_same_bits(Generator(loaded.parameters, loaded.outputs[0], "words", made).generate(options), expected);
  // A generator reads the present parameters.
  const std::vector<float> zeros(static_cast<size_t>(WordModel::kState * WordModel::kVocabulary), 0);
  const Generator generator = model_.generator();
  model_.parameters.set("score.weight", {TN_F32, {WordModel::kState, WordModel::kVocabulary}, zeros.data()});
  options.method = TN_GENERATE_GREEDY, options.results = 1;
  EXPECT_NEAR(generator.generate(options)[0][0].score, std::log(0.25), 1e-12);  // the first of equal ids ends it
}

TEST_F(Generators, ProbabilitiesAreScoresToo) {
  GenerateOptions options = options_of(feeds_, TN_GENERATE_BEAM);
  options.beam_size = 3, options.results = 2;
  GeneratorOptions made;
  made.compute = TN_F64;
  const Results probabilities = Generator(model_.parameters, model_.probability, "words", made).generate(options);
  const Results logits = model_.generator().generate(options);
  for (size_t i = 0; i < samples_.count(); ++i) expect_equal(probabilities[i], logits[i]);
}

TEST_F(Generators, IdsBeyondTheLimitOfTheDataAreLeftOut) {
  DataOptions ids;
  ids.name = "ids", ids.dtype = TN_I64, ids.storage = TN_RAGGED, ids.index_limit = 3;
  const Layer vectors = host_.layer("embedding", {host_.data(ids)}, {{"vocabulary", 8}, {"size", 2}});
  const Layer score = host_.layer("fc", {vectors}, {{"size", 8}}, "score");
  const Parameters parameters = host_.parameters({score}, 1);
  const std::vector<float> bias = {0, 0, 1, 9, 9, 9, 9, 9};
  parameters.set("score.bias", {TN_F32, {8}, bias.data()});
  GeneratorOptions made;
  made.from_logits = true;
  GenerateOptions options;
  const int64_t prompt[] = {0, 1}, ends[] = {0, 1, 2};
  options.feeds = {{"ids", Array::sequences(TN_I64, {2}, prompt, 2, ends)}};
  options.max_length = 6;
  for (const auto& sample : Generator(parameters, score, "ids", made).generate(options))
    for (const int64_t id : sample[0].ids) EXPECT_LT(id, 3);
}

TEST_F(Generators, GreedyIdsArriveInTheSinkUntilItEndsThem) {
  GenerateOptions options = options_of(feeds_, TN_GENERATE_GREEDY);
  const Results expected = model_.generator().generate(options);
  std::vector<Ids> received(samples_.count());
  options.sink = [&](int64_t sample, int64_t result, int64_t id) {
    EXPECT_EQ(result, 0);
    received[static_cast<size_t>(sample)].push_back(id);
    return true;
  };
  expect_same_bits(model_.generator().generate(options), expected);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(received[i], expected[i][0].ids);
  // Sample 0 has the shortest prompt but one: it chooses in the second step.
  int calls = 0;
  options.sink = [&](int64_t, int64_t, int64_t) { return ++calls < 2; };
  const Results ended = model_.generator().generate(options);
  EXPECT_EQ(ended[2][0].ids.size(), std::min<size_t>(2, expected[2][0].ids.size()));
  EXPECT_TRUE(ended[4].empty());  // its prompt was not fed to the end
  options.sink = [](int64_t, int64_t, int64_t) -> bool { throw std::runtime_error("mine"); };
  EXPECT_THROW(static_cast<void>(model_.generator().generate(options)), std::runtime_error);
}

// Offsets of no samples may be missing, and are not read.
TEST_F(Generators, NoSamplesHaveNoResults) {
  const int64_t zero = 0, other = 2;
  for (const uint32_t method : {TN_GENERATE_GREEDY, TN_GENERATE_BEAM, TN_GENERATE_SAMPLE})
    for (const int64_t* offsets : {static_cast<const int64_t*>(nullptr), &zero, &other}) {
      GenerateOptions options = options_of(feeds_, method);
      options.feeds = {{"words", Array::sequences(TN_I64, {0}, nullptr, 0, offsets)},
                       {"topic", {TN_F32, {0, 3}, nullptr}}};
      EXPECT_TRUE(model_.generator().generate(options).empty());
    }
}

TEST_F(Generators, SamplesWithoutPromptsBeginWithTheBeginId) {
  const Samples samples = samples_.picked({2});
  const SampleFeeds with(samples);
  GenerateOptions options = options_of(with, TN_GENERATE_GREEDY);
  const Results expected = model_.generator().generate(options);
  options.feeds.erase(options.feeds.begin());
  expect_same_bits(model_.generator().generate(options), expected);
}

}  // namespace

}  // namespace tenon_tests
