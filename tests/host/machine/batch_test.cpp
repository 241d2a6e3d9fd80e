// What a model answers for a sample has the same bits alone, in a minibatch of any size, at any place of it, for any
// number of threads and any bound of the machine. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int64_t kSamples = 40, kWords = 60;

std::vector<float> drawn(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = uniform(random);
  return numbers;
}

// kSamples samples: vectors, matrices, sequences of words (some are empty) and sparse vectors.
struct Data {
  std::vector<float> vectors = drawn(kSamples * 784, 1), matrices = drawn(kSamples * 6 * 20, 2), values;
  std::vector<int64_t> words, ends{0};

  Data() {
    std::mt19937_64 random(3);
    for (int64_t i = 0; i < kSamples; ++i) {
      for (uint64_t left = random() % 12; left > 0; --left) words.push_back(static_cast<int64_t>(random() % kWords));
      ends.push_back(static_cast<int64_t>(words.size()));
    }
    values = drawn(static_cast<int64_t>(words.size()), 4);
  }
};

// Samples [first, first + count) as feeds. A sequence begins at offset 0.
struct Minibatch {
  int64_t first, count;
  std::vector<int64_t> ends;
  std::vector<Feed> feeds;

  Minibatch(const Data& data, int64_t from, int64_t samples, const std::vector<std::string>& names)
      : first(from), count(samples) {
    const int64_t start = data.ends[static_cast<size_t>(first)];
    for (int64_t i = first; i <= first + count; ++i) ends.push_back(data.ends[static_cast<size_t>(i)] - start);
    const std::vector<Feed> all = {
        {"vector", {TN_F32, {count, 784}, data.vectors.data() + first * 784}},
        {"matrix", {TN_F32, {count, 6, 20}, data.matrices.data() + first * 120}},
        {"words", Array::sequences(TN_I64, {ends.back()}, data.words.data() + start, count, ends.data())},
        {"sparse", Array::sparse(count, kWords, ends.data(), data.words.data() + start, data.values.data() + start)}};
    for (const Feed& feed : all)
      for (const std::string& name : names)
        if (feed.name == name) feeds.push_back(feed);
  }
};

using Bytes = std::vector<uint8_t>;

class Batches : public testing::Test {
 protected:
  // Makes the outputs of a model; the first one has one row for each sample.
  using Make = std::function<Layer(const Host& host)>;

  static Layer data(const Host& host, const std::string& name, const std::vector<int64_t>& shape, int32_t storage,
                    tn_dtype dtype = TN_F32) {
    DataOptions options;
    options.name = name, options.shape = shape, options.storage = storage, options.dtype = dtype;
    return host.data(options);
  }
  static Layer vector(const Host& host) { return data(host, "vector", {784}, TN_DENSE); }
  static Layer matrix(const Host& host) { return data(host, "matrix", {6, 20}, TN_DENSE); }
  static Layer words(const Host& host) { return data(host, "words", {}, TN_RAGGED, TN_I64); }
  static Layer sparse(const Host& host) { return data(host, "sparse", {kWords}, TN_CSR); }

  // Returns the answers of a machine for samples [first, first + count), which follow each other.
  Bytes answers(const Machine& machine, const Layer& output, int64_t first, int64_t count,
                const std::vector<std::string>& names) const {
    const Minibatch batch(data_, first, count, names);
    machine.forward(batch.feeds);
    const Array array = machine.output(output);
    EXPECT_EQ(array.shape.at(0), count);
    const auto* bytes = static_cast<const uint8_t*>(array.data);
    return {bytes, bytes + array.count() * 4};
  }

  void check(const std::vector<std::string>& names, const Make& make) {
    Bytes all;
    for (int32_t threads = 1; threads <= 4; ++threads) {
      const Host host({threads, {plugin_folder()}, nullptr, {}});
      const Layer output = make(host);
      const Parameters parameters = host.parameters({output}, 5);
      const auto machine = [&](int64_t samples) {
        MachineOptions options;
        options.max_samples = samples;
        return host.machine(parameters, {output}, options);
      };
      const Machine large = machine(kSamples), small = machine(9), single = machine(1);
      const Bytes now = answers(large, output, 0, kSamples, names);
      if (all.empty()) all = now;
      ASSERT_EQ(now, all) << threads << " threads";
      const size_t row = all.size() / kSamples;
      const auto compare = [&](const Machine& tested, int64_t first, int64_t count) {
        const Bytes some = answers(tested, output, first, count, names);
        ASSERT_EQ(std::memcmp(some.data(), all.data() + static_cast<size_t>(first) * row, some.size()), 0)
            << "samples " << first << " to " << first + count - 1 << ", " << threads << " threads";
      };
      for (int64_t sample = 0; sample < kSamples; ++sample) compare(single, sample, 1);
      for (int64_t count = 1; count <= 9; ++count)
        for (const int64_t first : {int64_t{0}, 3 * count}) {
          compare(small, first, count);
          compare(large, first, count);
        }
      for (const int64_t count : {13, 24, 33}) compare(large, kSamples - count, count);
      if (HasFatalFailure()) return;
    }
  }

  const Data data_;
};

TEST_F(Batches, Perceptron) {
  check({"vector"}, [](const Host& host) {
    const Layer hidden = host.layer("fc", {vector(host)}, {{"size", 128}, {"act", "relu"}}, "hidden");
    return host.layer("softmax", {hidden}, {{"size", 10}}, "answer");
  });
}

TEST_F(Batches, NormsAndAScore) {
  check({"vector"}, [](const Host& host) {
    const Layer wide = host.layer("fc", {vector(host)}, {{"size", 333}, {"act", "tanh"}}, "wide");
    const Layer normal = host.layer("layer_norm", {wide}, {}, "normal");
    const Layer narrow = host.layer("fc", {normal}, {{"size", 7}}, "narrow");
    return host.layer("fc", {narrow}, {{"size", 1}, {"act", "sigmoid"}}, "score");
  });
}

// Convolutions with a norm, an activation and a residual behind them.
TEST_F(Batches, Images) {
  check({"vector"}, [](const Host& host) {
    const Layer image = host.layer("reshape", {vector(host)}, {{"shape", std::vector<int64_t>{28, 28, 1}}}, "image");
    const Layer first =
        host.layer("conv", {image}, {{"filters", 6}, {"kernel", 5}, {"stride", 2}, {"act", "relu"}}, "first");
    const Layer block = host.layer("residual_block", {first}, {{"filters", 20}, {"stride", 2}}, "block");
    const Layer larger = host.layer("conv_transpose", {block},
                                    {{"filters", 3}, {"kernel", 3}, {"stride", 2}, {"act", "tanh"}}, "larger");
    return host.layer("fc", {larger}, {{"size", 5}}, "answer");
  });
}

TEST_F(Batches, Attention) {
  check({"matrix"}, [](const Host& host) {
    const Layer x = matrix(host);
    const Layer scores = host.layer("matmul", {x, x}, {{"transpose_b", true}, {"scale", 0.2}}, "scores");
    const Layer weights = host.layer("softmax", {scores}, {}, "weights");
    const Layer mixed = host.layer("matmul", {weights, x}, {}, "mixed");
    const Layer back = host.layer("matmul", {mixed, x}, {{"transpose_a", true}}, "back");
    return host.layer("fc", {back}, {{"size", 5}}, "answer");
  });
}

TEST_F(Batches, Sequences) {
  check({"words"}, [](const Host& host) {
    const Layer vectors = host.layer("embedding", {words(host)}, {{"vocabulary", kWords}, {"size", 24}}, "vectors");
    const Layer around = host.layer("context_projection", {vectors}, {{"length", 3}}, "around");
    const Layer rows = host.layer("fc", {around}, {{"size", 40}, {"act", "tanh"}}, "rows");
    const Layer score = host.layer("fc", {rows}, {{"size", 1}}, "row_score");
    const Layer share = host.layer("sequence_softmax", {score}, {}, "share");
    Layers pooled = {host.layer("sequence_pool", {share}, {{"kind", "max"}}, "largest")};
    for (const char* kind : {"sum", "mean", "sqrt_n", "max", "last"})
      pooled.push_back(host.layer("sequence_pool", {rows}, {{"kind", kind}}, kind));
    const Layer joined = host.layer("concat", pooled, {}, "joined");
    return host.layer("softmax", {joined}, {{"size", 3}}, "answer");
  });
}

TEST_F(Batches, Recurrence) {
  check({"words"}, [](const Host& host) {
    const Layer vectors = host.layer("embedding", {words(host)}, {{"vocabulary", kWords}, {"size", 24}}, "vectors");
    const Layer forward = host.layer("lstm", {vectors}, {{"size", 40}, {"peepholes", true}}, "forward");
    const Layer backward = host.layer("gru", {forward}, {{"size", 17}, {"reverse", true}}, "backward");
    const Layer again = host.layer("rnn", {backward}, {{"size", 33}}, "again");
    const Layer most = host.layer("sequence_pool", {again}, {{"kind", "max"}}, "most");
    const Layer joined = host.layer("concat", {most, forward.output(2), backward.output(1)}, {}, "joined");
    return host.layer("softmax", {joined}, {{"size", 3}}, "answer");
  });
}

TEST_F(Batches, SparseVectorsAndSimilarity) {
  check({"words", "sparse"}, [](const Host& host) {
    const Layer history =
        host.layer("embedding", {words(host)}, {{"vocabulary", kWords}, {"size", 16}, {"reduce", "sum"}}, "history");
    const Layer x = sparse(host);
    const Layer tags = host.layer("fc", {x}, {{"size", 16}}, "tags");
    const Layer pairs = host.layer("factorization_machine", {x}, {{"factors", 5}}, "pairs");
    const Layer angle = host.layer("cos_sim", {history, tags}, {}, "angle");
    const Layer user = host.layer("add", {history, tags}, {}, "user");
    const Layer deep = host.layer("fc", {user}, {{"size", 1}}, "deep");
    return host.layer("add", {pairs, deep, host.layer("reshape", {angle}, {{"shape", std::vector<int64_t>{1}}}, "one")},
                      {}, "answer");
  });
}

}  // namespace
}  // namespace tenon_tests
