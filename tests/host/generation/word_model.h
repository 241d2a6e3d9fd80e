// A small model of sequences of ids for the tests of generation, and what it answers for whole sequences.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <map>
#include <tenon/tenon.hpp>
#include <tenon/tenon_generate.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_scan.hpp>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

using Ids = std::vector<int64_t>;

inline Host host_with(int threads) {
  HostOptions options;
  options.threads = threads;
  options.plugin_paths = {plugin_folder(), test_plugin_folder() + "/layers"};
  return Host(options);
}

// "words" are embedded outside of a scan with two memories, of which one begins with what is computed from "topic";
// the scores are computed outside of it, too.
class WordModel {
 public:
  static constexpr int64_t kVocabulary = 4, kTopic = 3, kState = 5;

  explicit WordModel(const Host& host, uint64_t seed = 11) : host_(host) {
    DataOptions ids;
    ids.name = "words", ids.dtype = TN_I64, ids.storage = TN_RAGGED, ids.index_limit = kVocabulary;
    const Layer words = host.data(ids), topic = host.data({"topic", TN_F32, {kTopic}});
    const Layer vectors = host.layer("embedding", {words}, {{"vocabulary", kVocabulary}, {"size", kState}}, "vectors");
    const Layer start = host.layer("fc", {topic}, {{"size", kState}, {"act", "tanh"}}, "start");
    ScanOptions options;
    options.name = "cells";
    const auto step = [&](Step& inside) {
      const Layer h = inside.memory(start, "h"), before = inside.memory({kState}, 0.5, "before");
      const Layer next = host.layer("fc", {inside.input(0), h, before, start},
                                    {{"size", kState}, {"act", "tanh"}, {"drop_rate", 0.5}}, "next");
      inside.next(h, next);
      inside.next(before, h);  // the state of two steps ago
      return Layers{next};
    };
    const ScanResult cells = scan({vectors}, step, options);
    score = host.layer("fc", {cells.results[0]}, {{"size", kVocabulary}}, "score");
    probability = host.layer("softmax", {score}, {}, "probability");
    last = cells.last[0];
    parameters = host.parameters({probability}, seed);
    for (const char* name : {"vectors.weight", "score.weight", "next.weight_1"}) {  // probabilities that differ clearly
      const Array values = parameters.get(name);
      std::vector<float> scaled(static_cast<const float*>(values.data),
                                static_cast<const float*>(values.data) + values.count());
      for (float& each : scaled) each *= 4;
      parameters.set(name, {TN_F32, values.shape, scaled.data()});
    }
    MachineOptions machine;
    machine.max_samples = 1, machine.compute = TN_F64;
    machine_ = host.machine(parameters, {score}, machine);
  }

  // The logarithms of the probabilities of the id that follows these, by the model of whole sequences.
  const std::vector<double>& log_p(const std::vector<float>& topic, const Ids& ids) {
    const auto [known, fresh] = known_.try_emplace({topic, ids});
    if (!fresh) return known->second;
    const auto count = static_cast<int64_t>(ids.size());
    const int64_t ends[] = {0, count};
    machine_.forward({{"words", Array::sequences(TN_I64, {count}, ids.data(), 1, ends)},
                      {"topic", {TN_F32, {1, kTopic}, topic.data()}}});
    const Array scores = machine_.output(score);
    const auto* const row = static_cast<const double*>(scores.data) + (count - 1) * kVocabulary;
    double sum = 0;
    for (int64_t i = 0; i < kVocabulary; ++i) sum += std::exp(row[i]);
    for (int64_t i = 0; i < kVocabulary; ++i) known->second.push_back(row[i] - std::log(sum));
    return known->second;
  }

  [[nodiscard]] Generator generator(tn_dtype compute = TN_F64, int64_t max_samples = 0) const {
    GeneratorOptions options;
    options.from_logits = true, options.compute = compute, options.max_samples = max_samples;
    return {parameters, score, "words", options};
  }

  Layer score, probability, last;
  Parameters parameters;

 private:
  const Host& host_;
  Machine machine_;
  std::map<std::pair<std::vector<float>, Ids>, std::vector<double>> known_;
};

// Prompts and topics of some samples.
struct Samples {
  std::vector<Ids> prompts;
  std::vector<std::vector<float>> topics;

  static Samples some() {
    return {{{1}, {2, 3, 1}, {}, {3, 3}, {1, 2, 3, 1, 2}},
            {{1, 0, -1}, {0.5, 2, 0}, {-1, -1, 1}, {0, 0, 0}, {1, 0, -1}}};
  }
  [[nodiscard]] size_t count() const { return prompts.size(); }
  // These samples, in this order.
  [[nodiscard]] Samples picked(const std::vector<size_t>& numbers) const {
    Samples result;
    for (const size_t number : numbers) {
      result.prompts.push_back(prompts[number]);
      result.topics.push_back(topics[number]);
    }
    return result;
  }
};

// The feeds of samples. Borrowed by them as long as it lives.
class SampleFeeds {
 public:
  explicit SampleFeeds(const Samples& samples) {
    for (size_t i = 0; i < samples.count(); ++i) {
      ids_.insert(ids_.end(), samples.prompts[i].begin(), samples.prompts[i].end());
      ends_.push_back(static_cast<int64_t>(ids_.size()));
      topics_.insert(topics_.end(), samples.topics[i].begin(), samples.topics[i].end());
    }
  }
  SampleFeeds(const SampleFeeds&) = delete;
  SampleFeeds& operator=(const SampleFeeds&) = delete;
  [[nodiscard]] std::vector<Feed> feeds() const {
    const auto samples = static_cast<int64_t>(ends_.size()) - 1;
    return {
        {"words", Array::sequences(TN_I64, {static_cast<int64_t>(ids_.size())}, ids_.data(), samples, ends_.data())},
        {"topic", {TN_F32, {samples, WordModel::kTopic}, topics_.data()}}};
  }

 private:
  Ids ids_;
  std::vector<int64_t> ends_{0};
  std::vector<float> topics_;
};

}  // namespace tenon_tests
