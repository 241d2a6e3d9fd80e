// Models of sequences and of sparse input from end to end through the public API: training, the refusal of wrong feeds
// without loss, and minibatches of any size in one machine. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using Offsets = std::vector<int64_t>;
using Ids = std::vector<int64_t>;
using Numbers = std::vector<float>;

constexpr int64_t kVocabulary = 60, kClasses = 3, kSize = 8;

Numbers numbers(const Array& array) {
  const auto* data = static_cast<const float*>(array.data);
  return {data, data + array.count()};
}
Offsets offsets(const Array& array, size_t level, int64_t count) {
  return {array.offsets[level], array.offsets[level] + count + 1};
}

// Sequences of words, most of which belong to the class of the label. Some sequences are empty and have label 0.
struct Minibatch {
  Ids ids, labels;
  Offsets ends{0};

  static Minibatch draw(int64_t samples, uint64_t seed, int64_t longest = 12) {
    std::mt19937_64 random(seed);
    const auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % static_cast<uint64_t>(bound)); };
    Minibatch made;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t length = below(longest + 1);
      const int64_t label = length == 0 ? 0 : below(kClasses);
      for (int64_t k = 0; k < length; ++k) {
        const int64_t of = below(5) > 0 ? label : below(kClasses);
        made.ids.push_back(of * (kVocabulary / kClasses) + below(kVocabulary / kClasses));
      }
      made.labels.push_back(label);
      made.ends.push_back(static_cast<int64_t>(made.ids.size()));
    }
    return made;
  }
  [[nodiscard]] int64_t samples() const { return static_cast<int64_t>(labels.size()); }
  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(ids.size()); }
  [[nodiscard]] Feed words() const {
    return {"words", Array::sequences(TN_I64, {rows()}, ids.data(), samples(), ends.data())};
  }
  [[nodiscard]] Feed sparse(const float* values) const {
    return {"words", Array::sparse(samples(), kVocabulary, ends.data(), ids.data(), values)};
  }
  [[nodiscard]] std::vector<Feed> feeds() const { return {words(), {"label", {TN_I64, {samples()}, labels.data()}}}; }
  [[nodiscard]] double share_right(const Numbers& probabilities) const {
    int64_t right = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      const float* row = probabilities.data() + i * kClasses;
      right += std::max_element(row, row + kClasses) - row == labels[i] ? 1 : 0;
    }
    return static_cast<double>(right) / static_cast<double>(samples());
  }
};

class Sequences : public testing::Test {
 protected:
  [[nodiscard]] Layer data(const std::string& name, int32_t storage, const std::vector<int64_t>& shape = {},
                           tn_dtype dtype = TN_I64) const {
    DataOptions options;
    options.name = name, options.dtype = dtype, options.shape = shape, options.storage = storage;
    return host_.data(options);
  }
  [[nodiscard]] MachineOptions options(int64_t samples, bool training) const {
    MachineOptions made;
    made.max_samples = samples, made.training = training, made.seed = 3;
    return made;
  }

  Host host_{HostOptions{2, {tenon_tests::plugin_folder()}, nullptr, {}}};
};

// embedding -> sequence_pool -> softmax with weights -> cross_entropy.
class Classifier : public Sequences {
 protected:
  [[nodiscard]] Machine machine(bool training, int64_t samples = 64, int64_t max_rows = 0) const {
    MachineOptions made = options(samples, training);
    made.max_rows = max_rows;
    return host_.machine(parameters_, training ? Layers{probabilities_, cost_} : Layers{probabilities_}, made);
  }
  [[nodiscard]] std::string refusal(const Machine& machine, const std::vector<Feed>& feeds) const {
    try {
      machine.forward(feeds);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  Layer vectors_ =
      host_.layer("embedding", {data("words", TN_RAGGED)}, {{"vocabulary", kVocabulary}, {"size", kSize}}, "vectors");
  Layer pooled_ = host_.layer("sequence_pool", {vectors_}, {{"kind", "mean"}}, "pooled");
  Layer probabilities_ = host_.layer("softmax", {pooled_}, {{"size", kClasses}}, "probabilities");
  Layer label_ = data("label", TN_DENSE);
  Layer cost_ = host_.layer("cross_entropy", {probabilities_, label_}, {}, "cost");
  Parameters parameters_ = host_.parameters({cost_}, 7);
};

TEST_F(Classifier, Learns) {
  const Minibatch unseen = Minibatch::draw(500, 99);
  const Machine predictor = machine(false, 500), trained = machine(true);
  predictor.forward({unseen.words()});
  const double before = unseen.share_right(numbers(predictor.output(probabilities_)));
  const Updater adam = host_.updater("adam", {{"learning_rate", 0.02}});
  for (uint64_t step = 0; step < 200; ++step) {
    trained.forward(Minibatch::draw(64, step).feeds());
    trained.backward();
    adam.update(trained);
  }
  predictor.forward({unseen.words()});
  const double after = unseen.share_right(numbers(predictor.output(probabilities_)));
  EXPECT_LT(before, 0.6);
  EXPECT_GE(after, 0.95);
  RecordProperty("share_right", std::to_string(after));
}

// A source of the samples of a minibatch, for readers.
struct Source {
  Minibatch all;
  [[nodiscard]] int64_t size() const { return all.samples(); }
  void read(int64_t index, Sample& sample) const {
    const auto at = static_cast<size_t>(index);
    sample.set("words", Ids(all.ids.begin() + all.ends[at], all.ids.begin() + all.ends[at + 1]));
    sample.set("label", all.labels[at]);
  }
};

TEST_F(Classifier, TrainsTestsAndAnswersFromAReader) {
  const Schema schema = {{"words", TN_I64, {}, kVocabulary, TN_RAGGED}, {"label", TN_I64, {}, kClasses}};
  const Minibatch unseen = Minibatch::draw(333, 99);
  TrainOptions run;
  run.parameters = parameters_;
  run.outputs = {cost_, host_.layer("classification_error", {probabilities_, label_}, {}, "error")};
  run.updater = host_.updater("adam", {{"learning_rate", 0.02}});
  run.reader = host_.reader(schema, Source{Minibatch::draw(2000, 1)}).shuffle(5).batch(50);
  run.passes = 5;
  train(run);
  run.reader = host_.reader(schema, Source{unseen}).batch(50);
  const TestResult result = tenon::test(run);
  EXPECT_EQ(result.samples, unseen.samples());
  EXPECT_LT(result.metrics.at(0).value, 0.05);
  run.outputs = {vectors_, probabilities_};
  run.reader = host_.reader(schema, Source{unseen}).batch(50);
  int64_t rows = 0, samples = 0;
  infer(run, [&](const std::vector<Array>& outputs) {
    EXPECT_EQ(outputs[0].storage, TN_RAGGED);
    for (int64_t i = 0; i < outputs[0].samples; ++i) {
      const auto at = static_cast<size_t>(samples + i);
      EXPECT_EQ(outputs[0].offsets[0][i + 1] - outputs[0].offsets[0][i], unseen.ends[at + 1] - unseen.ends[at]);
    }
    rows += outputs[0].shape[0];
    samples += outputs[1].shape[0];
    return true;
  });
  EXPECT_EQ(rows, unseen.rows());
  EXPECT_EQ(samples, unseen.samples());
}

TEST_F(Classifier, OutputsOfRowsSayWhoseTheyAre) {
  const Minibatch batch = Minibatch::draw(20, 1);
  MachineOptions all = options(20, true);
  all.keep_all = true;
  const Machine machine = host_.machine(parameters_, {cost_}, all);
  machine.forward(batch.feeds());
  const Array vectors = machine.output(vectors_);
  EXPECT_EQ(vectors.storage, TN_RAGGED);
  EXPECT_EQ(vectors.levels, 1U);
  EXPECT_EQ(vectors.samples, 20);
  EXPECT_EQ(vectors.shape, (std::vector<int64_t>{batch.rows(), kSize}));
  EXPECT_EQ(offsets(vectors, 0, 20), batch.ends);
  EXPECT_EQ(machine.output(pooled_).storage, TN_DENSE);
  EXPECT_EQ(machine.output(pooled_).shape, (std::vector<int64_t>{20, kSize}));
}

TEST_F(Classifier, TheGradientOfTheTableIsOfItsRowsAlone) {
  const Minibatch batch = Minibatch::draw(5, 2);
  const Machine trained = machine(true);
  trained.forward(batch.feeds());
  trained.backward();
  const Machine::Rows rows = trained.sparse_gradient("vectors.weight");
  Ids touched = batch.ids;
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  const auto* ids = static_cast<const int64_t*>(rows.ids.data);
  Ids given(ids, ids + rows.ids.count());
  std::sort(given.begin(), given.end());
  EXPECT_EQ(given, touched) << "each row once";
  EXPECT_EQ(rows.values.shape, (std::vector<int64_t>{static_cast<int64_t>(touched.size()), kSize}));
}

// A wrong feed is refused with the name of the data layer. Outputs and gradients of the previous minibatch are kept.
TEST_F(Classifier, RefusesWhatIsFedWronglyAndLosesNothing) {
  const Minibatch good = Minibatch::draw(4, 3);
  const Machine trained = machine(true, 8);
  trained.forward(good.feeds());
  trained.backward();
  const Numbers output = numbers(trained.output(probabilities_)),
                gradient = numbers(trained.gradient("vectors.weight"));
  const double cost = trained.cost();
  const Ids ids = {1, 2, 3};
  const Ids labels = {0, 1};
  const auto fed = [&](const Offsets& ends, int64_t rows = 3, int64_t samples = 2) {
    return refusal(trained, {{"words", Array::sequences(TN_I64, {rows}, ids.data(), samples, ends.data())},
                             {"label", {TN_I64, {samples}, labels.data()}}});
  };
  const auto expect = [&](const std::string& said, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(said.find(part), std::string::npos) << said << " lacks " << part;
    EXPECT_EQ(numbers(trained.output(probabilities_)), output) << said;
    EXPECT_EQ(numbers(trained.gradient("vectors.weight")), gradient) << said;
    EXPECT_EQ(trained.cost(), cost) << said;
  };
  expect(fed({0, 4, 3}), {"words", "fall from 4 to 3"});
  expect(fed({0, 2, 2}), {"words", "end at 2", "3 rows"});
  expect(fed({0, 2, 9}), {"words", "end at 9", "3 rows"});
  expect(fed({1, 2, 3}), {"words", "begin with 1"});
  expect(fed({0, 2, 3}, -1), {"words", "negative"});
  expect(fed({0, 1, 2, 3, 3, 3, 3, 3, 3, 3}, 3, 9), {"words", "9 samples", "at most 8"});
  const Offsets ends = {0, 2, 3};
  const Array fine = Array::sequences(TN_I64, {3}, ids.data(), 2, ends.data());
  const Feed label = {"label", {TN_I64, {2}, labels.data()}};
  Array without = fine;
  without.offsets = {nullptr, nullptr};
  expect(refusal(trained, {{"words", without}, label}), {"words", "no offsets"});
  // More samples than the machine was made for are refused before their offsets are read.
  expect(refusal(trained, {{"words", Array::sequences(TN_I64, {3}, ids.data(), INT64_MAX, ends.data())}, label}),
         {"words", "at most 8"});
  expect(refusal(trained, {{"words", {TN_I64, {3}, ids.data()}}, label}), {"words", "expected ragged data, got dense"});
  expect(refusal(trained, {{"words", Array::nested(TN_I64, {3}, ids.data(), 2, ends.data(), ends.data())}, label}),
         {"words", "expected 1 levels, got 2"});
  expect(refusal(trained, {{"words", fine}, {"label", {TN_I64, {1}, labels.data()}}}), {"1 samples", "2"});
  const Ids strange = {1, kVocabulary, 3};
  expect(refusal(trained, {{"words", Array::sequences(TN_I64, {3}, strange.data(), 2, ends.data())}, label}),
         {"words", "row 1", "60", "vectors"});
  trained.forward({{"words", fine}, label});
}

TEST_F(Classifier, MoreRowsThanAreAllowedAreRefused) {
  const Minibatch batch = Minibatch::draw(30, 4);
  const Machine limited = machine(false, 64, batch.rows() - 1);
  const std::string said = refusal(limited, {batch.words()});
  EXPECT_NE(said.find("words"), std::string::npos) << said;
  EXPECT_NE(said.find("at most " + std::to_string(batch.rows() - 1)), std::string::npos) << said;
  machine(false, 64, batch.rows()).forward({batch.words()});
}

// A machine is planned again for a minibatch with more rows than its plan. Outputs and gradients equal those of a
// machine with enough rows from the beginning.
TEST_F(Classifier, GrowsWithItsMinibatches) {
  const Minibatch few = Minibatch::draw(8, 5, 3), many = Minibatch::draw(8, 6, 3000);
  const Machine grows = machine(true, 8), ready = machine(true, 8, many.rows());
  for (const Machine* each : {&grows, &ready}) {
    each->forward(few.feeds());
    each->backward();
    each->forward(many.feeds());
    each->backward();
  }
  EXPECT_EQ(numbers(grows.output(probabilities_)), numbers(ready.output(probabilities_)));
  for (const char* name : {"vectors.weight", "probabilities.weight", "probabilities.bias"})
    EXPECT_EQ(numbers(grows.gradient(name)), numbers(ready.gradient(name))) << name;
  EXPECT_EQ(grows.cost(), ready.cost());
  grows.forward(few.feeds());
  ready.forward(few.feeds());
  EXPECT_EQ(numbers(grows.output(probabilities_)), numbers(ready.output(probabilities_)));
}

TEST_F(Classifier, AnswersEmptySequences) {
  const Machine predictor = machine(false);
  const Offsets ends = {0, 0, 0};
  predictor.forward({{"words", Array::sequences(TN_I64, {0}, nullptr, 2, ends.data())}});
  const Numbers p = numbers(predictor.output(probabilities_));
  ASSERT_EQ(p.size(), 6U);
  EXPECT_TRUE(std::equal(p.begin(), p.begin() + 3, p.begin() + 3));
}

// ---- sparse input

TEST_F(Sequences, AModelOfSparseInputLearns) {
  const Layer words = data("words", TN_CSR, {kVocabulary}, TN_F32);
  const Layer probabilities = host_.layer("softmax", {words}, {{"size", kClasses}}, "probabilities");
  const Layer cost = host_.layer("cross_entropy", {probabilities, data("label", TN_DENSE)}, {}, "cost");
  const Parameters parameters = host_.parameters({cost}, 1);
  const Machine machine = host_.machine(parameters, {probabilities, cost}, options(64, true));
  const Updater sgd = host_.updater("sgd", {{"learning_rate", 0.5}});
  for (uint64_t step = 0; step < 200; ++step) {
    const Minibatch batch = Minibatch::draw(64, step);
    machine.forward({batch.sparse(nullptr), batch.feeds()[1]});
    machine.backward();
    sgd.update(machine);
  }
  const Minibatch unseen = Minibatch::draw(64, 999);
  machine.forward({unseen.sparse(nullptr), unseen.feeds()[1]});
  EXPECT_GE(unseen.share_right(numbers(machine.output(probabilities))), 0.95);
}

TEST_F(Sequences, SparseInputIsChecked) {
  const Layer words = data("words", TN_CSR, {kVocabulary}, TN_F32);
  const Layer sum = host_.layer("fc", {words}, {{"size", 2}}, "sum");
  const Machine machine = host_.machine(host_.parameters({sum}, 1), {sum}, options(4, false));
  const auto refusal = [&](const Array& array) -> std::string {
    try {
      machine.forward({{"words", array}});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const Ids ids = {3, kVocabulary, 1};
  const Numbers values = {1, 2, 3};
  const Offsets ends = {0, 2, 3}, falling = {0, 2, 1};
  const std::string outside = refusal(Array::sparse(2, kVocabulary, ends.data(), ids.data(), values.data()));
  EXPECT_NE(outside.find("a column of sample 0 of the minibatch is 60; "), std::string::npos) << outside;
  const Offsets apart = {0, 0, 1, 1, 3};  // the column is the first one of sample 3
  const std::string last = refusal(Array::sparse(4, kVocabulary, apart.data(), ids.data(), values.data()));
  EXPECT_NE(last.find("a column of sample 3 of the minibatch is 60; "), std::string::npos) << last;
  const std::string falls = refusal(Array::sparse(2, kVocabulary, falling.data(), ids.data(), values.data()));
  EXPECT_NE(falls.find("fall from 2 to 1"), std::string::npos) << falls;
  const std::string narrow = refusal(Array::sparse(2, 4, ends.data(), ids.data(), values.data()));
  EXPECT_NE(narrow.find("words"), std::string::npos) << narrow;
  const std::string none = refusal(Array::sparse(2, kVocabulary, ends.data(), nullptr, values.data()));
  EXPECT_NE(none.find("without ids"), std::string::npos) << none;
  EXPECT_EQ(refusal(Array::sparse(1, kVocabulary, ends.data(), Ids{3, 4}.data(), values.data())), "accepted");
}

// ---- several data layers of one sequence, nested sequences

TEST_F(Sequences, DataLayersOfOneSequenceHaveRowsAlike) {
  DataOptions word, weight;
  word.name = "word", word.dtype = TN_I64, word.storage = TN_RAGGED, word.sequence = "text";
  weight.name = "weight", weight.dtype = TN_F32, weight.storage = TN_RAGGED, weight.sequence = "text";
  const Layer vectors = host_.layer("embedding", {host_.data(word)}, {{"vocabulary", 5}, {"size", 1}}, "vectors");
  const Layer product =
      host_.layer("mul", {vectors, host_.layer("reshape", {host_.data(weight)}, {{"shape", std::vector<int64_t>{1}}})});
  const Machine machine = host_.machine(host_.parameters({product}, 1), {product}, options(4, false));
  const Ids ids = {0, 1, 2};
  const Numbers weights = {1, 2, 3, 4};
  const Offsets ends = {0, 1, 3}, others = {0, 2, 3}, longer = {0, 1, 4};
  const auto refusal = [&](int64_t rows, const Offsets& of_weights) -> std::string {
    try {
      machine.forward({{"word", Array::sequences(TN_I64, {3}, ids.data(), 2, ends.data())},
                       {"weight", Array::sequences(TN_F32, {rows}, weights.data(), 2, of_weights.data())}});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(3, ends), "accepted");
  const std::string both = "data layers \"word\" and \"weight\" are of one sequence, and differ in the length of ";
  EXPECT_EQ(refusal(3, others), both + "sample 0 of the minibatch: 1 and 2");
  EXPECT_EQ(refusal(4, longer), both + "sample 1 of the minibatch: 2 and 3");
}

TEST_F(Sequences, MessagesNameTheSequences) {
  const auto refusal = [](const auto& make) -> std::string {
    try {
      make();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto words = [&](const char* name, uint32_t levels, int64_t index_limit) {
    DataOptions option;
    option.name = name, option.dtype = TN_I64, option.storage = TN_RAGGED, option.levels = levels;
    option.index_limit = index_limit;
    return host_.data(option);
  };
  const auto embed = [&](const Layer& ids) {
    return host_.layer("embedding", {ids}, {{"vocabulary", 5}, {"size", 2}}, "vectors");
  };
  EXPECT_EQ(
      refusal([&] { (void)embed(words("query", 1, 6)); }),
      "layer \"vectors\" (embedding): input \"ids\": data layer \"query\" has values from 0 to 5; expected 0 to 4");
  EXPECT_EQ(refusal([&] { (void)embed(words("query", 1, 5)); }), "accepted");
  const Layer one = embed(words("query", 1, -1)), two = embed(words("text", 2, -1));
  DataOptions option;
  option.name = "label", option.dtype = TN_I64;
  const Layer label = host_.data(option);
  EXPECT_NE(
      refusal([&] {
        (void)host_.layer("cross_entropy", {one, label});
      }).find("label: must have one value for each row (expected int64 [rows of \"query\"], got int64 [samples])"),
      std::string::npos)
      << refusal([&] {
           (void)host_.layer("cross_entropy", {one, label});
         });
  EXPECT_NE(refusal([&] {
              (void)host_.layer("cross_entropy", {two, label});
            }).find("[rows of \"inner sequences of text\"]"),
            std::string::npos)
      << refusal([&] {
           (void)host_.layer("cross_entropy", {two, label});
         });
}

TEST_F(Sequences, NestedOnesAreLeftLevelByLevel) {
  DataOptions option;
  option.name = "words", option.dtype = TN_I64, option.storage = TN_RAGGED, option.levels = 2;
  const Layer words = host_.data(option);
  const Layer vectors = host_.layer("embedding", {words}, {{"vocabulary", 9}, {"size", 2}}, "vectors");
  const Layer sentences = host_.layer("sequence_pool", {vectors}, {{"kind", "sum"}}, "sentences");
  const Layer texts = host_.layer("sequence_pool", {sentences}, {{"kind", "max"}}, "texts");
  const Machine machine = host_.machine(host_.parameters({texts}, 1), {vectors, sentences, texts}, options(3, false));
  const Ids ids = {1, 2, 3, 4, 5};
  const Offsets outer = {0, 2, 2, 4}, inner = {0, 1, 1, 3, 5};  // the second text and the second sentence are empty
  machine.forward({{"words", Array::nested(TN_I64, {5}, ids.data(), 3, outer.data(), inner.data())}});
  const Array rows = machine.output(vectors), middle = machine.output(sentences);
  EXPECT_EQ(rows.levels, 2U);
  EXPECT_EQ(offsets(rows, 0, 3), outer);
  EXPECT_EQ(offsets(rows, 1, 4), inner);
  EXPECT_EQ(middle.levels, 1U);
  EXPECT_EQ(middle.shape, (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(offsets(middle, 0, 3), outer);
  EXPECT_EQ(machine.output(texts).storage, TN_DENSE);
  EXPECT_EQ(machine.output(texts).shape, (std::vector<int64_t>{3, 2}));
}

TEST_F(Sequences, TheOutputOfAConcatHasOffsetsOfItsOwn) {
  const Layer a = data("a", TN_RAGGED, {}, TN_F32), b = data("b", TN_RAGGED, {}, TN_F32);
  const Layer both = host_.layer("sequence_concat", {a, b}, {}, "both");
  const Machine machine = host_.machine(host_.parameters({both}, 1), {both}, options(2, false));
  const Numbers first = {1, 2, 3}, second = {7, 8};
  const Offsets of_first = {0, 1, 3}, of_second = {0, 2, 2};
  machine.forward({{"a", Array::sequences(TN_F32, {3}, first.data(), 2, of_first.data())},
                   {"b", Array::sequences(TN_F32, {2}, second.data(), 2, of_second.data())}});
  EXPECT_EQ(numbers(machine.output(both)), (Numbers{1, 7, 8, 2, 3}));
  EXPECT_EQ(offsets(machine.output(both), 0, 2), (Offsets{0, 3, 5}));
}

// ---- files

TEST_F(Sequences, ModelsAreSavedAndLoaded) {
  const tenon_tests::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  DataOptions nested;
  nested.name = "texts", nested.dtype = TN_I64, nested.storage = TN_RAGGED, nested.levels = 2;
  nested.sequence = "of texts";
  const Layer texts =
      host_.layer("sequence_pool", {host_.layer("embedding", {host_.data(nested)}, {{"vocabulary", 9}, {"size", 4}})},
                  {{"kind", "mean"}, {"level", "sample"}});
  const Layer tags = host_.layer("fc", {data("tags", TN_CSR, {7}, TN_F32), texts}, {{"size", 3}}, "answer");
  const Parameters parameters = host_.parameters({tags}, 11);
  parameters.save({tags}, path);
  const Host other{HostOptions{1, {tenon_tests::plugin_folder()}, nullptr, {}}};
  const Model loaded = other.load(path);
  const Ids ids = {1, 2, 3, 8}, columns = {0, 6, 3};
  const Offsets outer = {0, 2, 3}, inner = {0, 1, 3, 4}, entries = {0, 3, 3};
  const Numbers values = {1, -2, 0.5F};
  const std::vector<Feed> feeds = {{"texts", Array::nested(TN_I64, {4}, ids.data(), 2, outer.data(), inner.data())},
                                   {"tags", Array::sparse(2, 7, entries.data(), columns.data(), values.data())}};
  const Machine before = host_.machine(parameters, {tags}, options(2, false));
  const Machine after = other.machine(loaded.parameters, loaded.outputs, options(2, false));
  before.forward(feeds);
  after.forward(feeds);
  EXPECT_EQ(numbers(before.output(tags)), numbers(after.output(loaded.outputs[0])));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon_tests
