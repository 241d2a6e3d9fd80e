// Models for tests that compare the device "far" with "cpu", and what they collect. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/far.h"

namespace tenon_tests {

constexpr int64_t kSamples = 6;

inline DataOptions floats(const std::string& name, const std::vector<int64_t>& shape) {
  DataOptions options;
  options.name = name, options.shape = shape;
  return options;
}
inline DataOptions integers(const std::string& name, int64_t limit) {
  DataOptions options;
  options.name = name, options.dtype = TN_I32, options.index_limit = limit;
  return options;
}

// Layers over dense data with buffers, draws, a metric and several outputs.
struct DenseModel {
  explicit DenseModel(const Host& host) {
    const Layer input = host.data(floats("x", {8})), wanted = host.data(integers("label", 4));
    const Layer normed = host.layer("batch_norm", {input}, {}, "norm");
    hidden = host.layer("fc", {normed}, {{"size", 16}, {"act", "tanh"}, {"drop_rate", 0.25}}, "hidden");
    scores = host.layer("fc", {hidden}, {{"size", 4}}, "scores");
    cost = host.layer("cross_entropy", {scores, wanted}, {{"from_logits", true}}, "cost");
    accuracy = host.layer("accuracy", {scores, wanted}, {}, "accuracy");
  }
  [[nodiscard]] Layers outputs() const { return {cost, accuracy, scores, hidden}; }
  [[nodiscard]] std::vector<Feed> feeds(uint64_t step, int64_t samples = kSamples) {
    x = drawn(static_cast<size_t>(samples * 8), step);
    label.clear();
    for (int64_t i = 0; i < samples; ++i) label.push_back(static_cast<int32_t>((static_cast<uint64_t>(i) + step) % 4));
    return {{"x", {TN_F32, {samples, 8}, x.data()}}, {"label", {TN_I32, {samples}, label.data()}}};
  }

  Layer hidden, scores, cost, accuracy;
  std::vector<float> x;
  std::vector<int32_t> label;
};

using Bytes = std::vector<std::vector<uint8_t>>;

inline void add(Bytes& to, double number) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&number);
  to.emplace_back(bytes, bytes + sizeof number);
}

inline void add_parameters(Bytes& to, const Parameters& parameters) {
  for (const auto& entry : nlohmann::json::parse(parameters.describe()))
    to.push_back(bytes_of(parameters.get(entry.at("name").get<std::string>())));
}

// Ragged ids in a table with row-sparse gradients, beside sparse rows of numbers; sequences through a recurrence.
struct SequenceModel {
  static constexpr int64_t kWords = 20;
  explicit SequenceModel(const Host& host) {
    DataOptions ids = integers("words", kWords);
    ids.storage = TN_RAGGED, ids.levels = 1;
    DataOptions bag = floats("bag", {kWords});
    bag.storage = TN_CSR;
    const Layer vectors = host.layer("embedding", {host.data(ids)}, {{"vocabulary", kWords}, {"size", 6}}, "vectors");
    const Layer rows = host.layer("gru", {host.layer("fc", {vectors}, {{"size", 15}}, "mixed")}, {{"size", 5}}, "gru");
    const Layer pooled = host.layer("sequence_pool", {rows}, {{"kind", "last"}}, "last");
    const Layer from_bag = host.layer("fc", {host.data(bag)}, {{"size", 5}}, "from_bag");
    scores = host.layer("fc", {pooled, from_bag}, {{"size", 4}}, "scores");
    cost = host.layer("cross_entropy", {scores, host.data(integers("label", 4))}, {{"from_logits", true}}, "cost");
    states = rows;
  }
  // Each step has more rows than the one before, so that machines grow.
  [[nodiscard]] std::vector<Feed> feeds(uint64_t step) {
    words.clear(), offsets = {0}, entries.clear(), ends = {0}, label.clear();
    for (int64_t i = 0; i < kSamples; ++i) {
      for (uint64_t k = 0; k < (static_cast<uint64_t>(i) * 5 + step) % 4 + 12 * step; ++k)
        words.push_back(static_cast<int32_t>((k * k + step + static_cast<uint64_t>(i)) % kWords));
      offsets.push_back(static_cast<int64_t>(words.size()));
      for (int64_t k = 0; k < i % 3; ++k) entries.push_back((k * 7 + i + static_cast<int64_t>(step)) % kWords);
      ends.push_back(static_cast<int64_t>(entries.size()));
      label.push_back(static_cast<int32_t>(i % 4));
    }
    numbers = drawn(entries.size(), step);
    const Array sequences = Array::sequences(TN_I32, {offsets.back()}, words.data(), kSamples, offsets.data());
    const Array sparse = Array::sparse(kSamples, kWords, ends.data(), entries.data(), numbers.data());
    return {{"words", sequences}, {"bag", sparse}, {"label", {TN_I32, {kSamples}, label.data()}}};
  }

  Layer scores, cost, states;
  std::vector<int32_t> words, label;
  std::vector<int64_t> offsets, entries, ends;
  std::vector<float> numbers;
};

}  // namespace tenon_tests
