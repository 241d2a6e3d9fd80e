// A ranking model: three branches that share the parameters "embedding" and "semantic" learn from triples which of two
// texts is nearer to a query. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// Texts are bags of words about a topic. Queries and documents have different words for a topic, so a model must learn
// which belong together. A has the topic of Q, and B another one: A is nearer to Q.
constexpr int64_t kTopics = 8, kWordsOfTopic = 12, kBag = 10;
constexpr int64_t kVocabulary = 2 * kTopics * kWordsOfTopic;

using Text = std::vector<uint8_t>;

class Texts {
 public:
  explicit Texts(uint64_t seed) : random_(seed) {}

  int64_t topic() { return below(kTopics); }
  int64_t another(int64_t topic) { return (topic + 1 + below(kTopics - 1)) % kTopics; }
  int64_t length() { return 3 + below(2 * kBag); }
  // About three of four words are from the topic, the others from any topic.
  void add(Text& text, int64_t topic, bool query, int64_t words = kBag) {
    for (int64_t i = 0; i < words; ++i) {
      const int64_t of = below(4) > 0 ? topic : below(kTopics);
      text.push_back(static_cast<uint8_t>(((query ? kTopics : 0) + of) * kWordsOfTopic + below(kWordsOfTopic)));
    }
  }

 private:
  int64_t below(uint64_t bound) { return static_cast<int64_t>(random_() % bound); }

  std::mt19937_64 random_;
};

// Triples as three IDX files [samples, kBag] of bytes, removed with the object.
class Triples {
 public:
  Triples(int64_t samples, uint64_t seed) {
    Text a, b, q;
    Texts texts(seed);
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t topic = texts.topic();
      texts.add(q, topic, true);
      texts.add(a, topic, false);
      texts.add(b, texts.another(topic), false);
    }
    for (const auto& [slot, words] : {std::pair{"A", &a}, std::pair{"B", &b}, std::pair{"Q", &q}}) {
      files_.push_back(folder_.file(slot));
      std::ofstream file(files_.back(), std::ios::binary);
      for (const int64_t number : {int64_t{0x0802}, samples, kBag})
        for (const int shift : {24, 16, 8, 0}) file.put(static_cast<char>(number >> shift & 0xFF));
      file.write(reinterpret_cast<const char*>(words->data()), static_cast<std::streamsize>(words->size()));
    }
  }

  [[nodiscard]] Reader reader(const Host& host) const {
    return host.reader("idx", {{"files", files_}, {"names", std::vector<std::string>{"A", "B", "Q"}}});
  }

 private:
  tenon_tests::TemporaryFolder folder_;
  std::vector<std::string> files_;
};

struct Ranking {
  Layer fA, fB, fQ, cost, share;

  // storage: TN_DENSE for texts of kBag words, TN_RAGGED for texts of any length.
  explicit Ranking(const Host& host, int32_t storage = TN_DENSE)
      : fA(branch(host, "A", storage)), fB(branch(host, "B", storage)), fQ(branch(host, "Q", storage)) {
    const Layer near = host.layer("cross_entropy", {fA, fQ}), far = host.layer("cross_entropy", {fB, fQ});
    cost = host.layer("less_than", {near, far}, {}, "cost");
    share = host.layer("less_than_share", {near, far}, {}, "share");
  }

  static Layer branch(const Host& host, const std::string& input, int32_t storage) {
    DataOptions words;
    words.name = input, words.dtype = TN_U8, words.storage = storage;
    if (storage == TN_DENSE) words.shape = {kBag};
    const Layer e =
        host.layer("embedding", {host.data(words)},
                   {{"vocabulary", kVocabulary}, {"size", 16}, {"reduce", "sum"}, {"parameter_name", "embedding"}});
    return host.layer("softmax", {e}, {{"size", 12}, {"parameter_name", "semantic"}});
  }
};

std::vector<float> numbers(const Array& array) {
  const auto* data = static_cast<const float*>(array.data);
  return {data, data + array.count()};
}

class RankingModel : public testing::Test {
 protected:
  [[nodiscard]] TrainOptions options() const {
    TrainOptions options;
    options.outputs = {model_.cost, model_.share};
    options.parameters = parameters_;
    return options;
  }
  [[nodiscard]] double share_of(const Triples& triples) const {
    TrainOptions testing_options = options();
    testing_options.reader = triples.reader(host_).batch(256);
    const TestResult result = tenon::test(testing_options);
    EXPECT_EQ(result.metrics.at(0).name, "less_than_share");
    return result.metrics.at(0).value;
  }
  void train_on(const Triples& triples, int64_t passes) const {
    TrainOptions training = options();
    training.updater = host_.updater("adam", {{"learning_rate", 0.01}});
    training.reader = triples.reader(host_).shuffle(1).batch(64);
    training.passes = passes;
    train(training);
  }

  Host host_{HostOptions{2, {tenon_tests::plugin_folder()}, nullptr, {}}};
  Ranking model_{host_};
  Parameters parameters_ = host_.parameters({model_.cost}, 4);
};

TEST_F(RankingModel, LearnsTheOrder) {
  const Triples seen(4000, 1), unseen(2000, 2);
  const double before = share_of(unseen);
  EXPECT_NEAR(before, 0.5, 0.1);
  train_on(seen, 5);
  const double after = share_of(unseen);
  EXPECT_GE(after, 0.9);
  std::printf("share of right pairs: %.3f before, %.3f after\n", before, after);
  RecordProperty("share_before", std::to_string(before));
  RecordProperty("share_after", std::to_string(after));
}

TEST_F(RankingModel, BranchesAreOneFunction) {
  const std::string listed = parameters_.describe();
  EXPECT_EQ(parameters_.get("embedding.weight").shape, (std::vector<int64_t>{kVocabulary, 16}));
  EXPECT_EQ(parameters_.get("semantic.weight").shape, (std::vector<int64_t>{16, 12}));
  EXPECT_EQ(listed.find("embedding.weight"), listed.rfind("embedding.weight")) << "three layers, one table";
  train_on(Triples(200, 3), 1);
  MachineOptions of_three;
  of_three.max_samples = 33;
  const Machine machine = host_.machine(parameters_, {model_.fA, model_.fB, model_.fQ}, of_three);
  Text words;
  Texts texts(5);
  for (int64_t i = 0; i < 33; ++i) texts.add(words, texts.topic(), i % 2 == 0);
  const Array input{TN_U8, {33, kBag}, words.data()};
  machine.forward({{"A", input}, {"B", input}, {"Q", input}});
  const std::vector<float> a = numbers(machine.output(model_.fA));
  EXPECT_EQ(numbers(machine.output(model_.fB)), a);
  EXPECT_EQ(numbers(machine.output(model_.fQ)), a);
}

// Infers with fA alone and the parameters of the whole trained model, on the same host and on another host that loads
// them from a file.
TEST_F(RankingModel, InfersWithOneBranch) {
  train_on(Triples(200, 3), 1);
  const Triples some(100, 6);
  MachineOptions of_all;
  of_all.max_samples = 100;
  const Machine whole = host_.machine(parameters_, {model_.cost, model_.fA}, of_all);
  const Reader reader = some.reader(host_).batch(100);
  const std::vector<Array> slots = reader.next();
  ASSERT_EQ(slots.size(), 3U);
  const Text words(static_cast<const uint8_t*>(slots[0].data), static_cast<const uint8_t*>(slots[0].data) + 100 * kBag);
  const Array input{TN_U8, {100, kBag}, words.data()};
  whole.forward({{"A", input}, {"B", input}, {"Q", input}});
  const std::vector<float> expected = numbers(whole.output(model_.fA));

  const Machine alone = host_.machine(parameters_, {model_.fA}, of_all);
  alone.forward({{"A", input}});
  EXPECT_EQ(numbers(alone.output(model_.fA)), expected);

  std::vector<float> inferred;
  TrainOptions inference;
  inference.outputs = {model_.fA};
  inference.parameters = parameters_;
  inference.reader = some.reader(host_).batch(32);
  infer(inference, [&](const std::vector<Array>& outputs) {
    const std::vector<float> part = numbers(outputs.at(0));
    inferred.insert(inferred.end(), part.begin(), part.end());
    return true;
  });
  // In another minibatch a row may be in another tile of a product, whose kernel rounds differently.
  EXPECT_THAT(inferred, testing::Pointwise(testing::FloatNear(1e-6F), expected));

  const tenon_tests::TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  parameters_.save({model_.fA}, path);
  const Host other({1, {tenon_tests::plugin_folder()}, nullptr, {}});
  const Model loaded = other.load(path);
  const Machine served = other.machine(loaded.parameters, loaded.outputs, of_all);
  served.forward({{"A", input}});
  EXPECT_EQ(numbers(served.output(loaded.outputs.at(0))), expected);
}

// ---- texts of any length

// A minibatch of triples as sequences.
struct RaggedTriples {
  static constexpr const char* kSlots[] = {"A", "B", "Q"};
  Text words[3];
  std::vector<int64_t> ends[3] = {{0}, {0}, {0}};

  RaggedTriples(int64_t samples, uint64_t seed) {
    Texts texts(seed);
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t topic = texts.topic();
      for (const size_t slot : {0U, 1U, 2U}) {
        texts.add(words[slot], slot == 1 ? texts.another(topic) : topic, slot == 2, texts.length());
        ends[slot].push_back(static_cast<int64_t>(words[slot].size()));
      }
    }
  }
  [[nodiscard]] std::vector<Feed> feeds() const {
    std::vector<Feed> made;
    for (const size_t slot : {0U, 1U, 2U})
      made.push_back({kSlots[slot], Array::sequences(TN_U8, {ends[slot].back()}, words[slot].data(),
                                                     static_cast<int64_t>(ends[slot].size()) - 1, ends[slot].data())});
    return made;
  }
};

TEST(RankingOfSequences, LearnsTheOrder) {
  const Host host{HostOptions{2, {tenon_tests::plugin_folder()}, nullptr, {}}};
  const Ranking model(host, TN_RAGGED);
  const Parameters parameters = host.parameters({model.cost}, 4);
  MachineOptions options;
  options.max_samples = 1000;
  options.training = true;
  const Machine machine = host.machine(parameters, {model.cost, model.share}, options);
  const RaggedTriples unseen(1000, 1000);
  const auto share = [&] {
    machine.forward(unseen.feeds());
    return machine.metrics().at(0).value;
  };
  EXPECT_NEAR(share(), 0.5, 0.1);
  const Updater adam = host.updater("adam", {{"learning_rate", 0.01}});
  for (uint64_t step = 0; step < 300; ++step) {
    machine.forward(RaggedTriples(64, step).feeds());
    machine.backward();
    adam.update(machine);
  }
  EXPECT_GE(share(), 0.9);
}

}  // namespace
}  // namespace tenon_tests
