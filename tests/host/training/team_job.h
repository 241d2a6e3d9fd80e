// A training of several processes, which are threads with a host each. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/far_models.h"
#include "tests/support/fashion.h"
#include "tests/support/loop_comm.h"
#include "tests/support/loop_plugin.h"

namespace tenon_tests {

// Samples 0 to 13 of the slots that the models read.
class Samples {
 public:
  [[nodiscard]] static int64_t size() { return 14; }
  static void read(int64_t index, Sample& sample) {
    const auto number = static_cast<uint64_t>(index);
    sample.set("x", drawn(8, number + 1));
    std::vector<int32_t> words;
    for (uint64_t i = 0; i < number * 5 % 7; ++i) words.push_back(static_cast<int32_t>((i * i + 3 * number) % 20));
    sample.set("words", words);
    for (uint64_t i = 0; i < number % 3; ++i)
      sample.add_entry("bag", static_cast<int64_t>((i * 7 + number) % 20), 0.25F * static_cast<float>(number));
    sample.set("label", static_cast<int32_t>(index % 4));
  }
};

inline Schema schema() {
  SlotOptions x{"x", TN_F32, {8}};
  SlotOptions words{"words", TN_I32, {}, 20};
  words.storage = TN_RAGGED;
  SlotOptions bag{"bag", TN_F32, {20}};
  bag.storage = TN_CSR;
  return {x, words, bag, {"label", TN_I32, {}, 4}};
}

// What the processes of a training do, each with a host of its own.
struct Job {
  std::function<Layers(const Host&)> model;
  uint32_t shards = 7;
  tn_dtype compute = TN_F32;
  Attributes updater = {{"learning_rate", 0.1}, {"clip_norm", 0.5}};
  int64_t passes = 2;
  std::function<void(TrainOptions&, const Host&, int64_t rank)> change = nullptr;
};

// What a process has in the end.
struct Outcome {
  Bytes parameters;
  std::vector<double> costs;  // of the events of process 0
  std::string error;
  int64_t step_in_the_end = 0;  // as the team says; 0 without one
};

class Process {
 public:
  Process(const Job& job, int threads) : job_(job), host_(make_host(threads)) {}

  [[nodiscard]] const Host& host() const { return host_; }
  void join(const LoopWorld& world, int64_t rank, int64_t ranks) {
    plugin_.emplace(world);
    host_.add_plugin(plugin_->get());
    TeamOptions options;
    options.comm = world.type()->description->type;
    options.rank = rank, options.processes = ranks;
    team_ = host_.join(options);
  }
  Outcome train() {
    Outcome outcome;
    TrainOptions options;
    options.outputs = job_.model(host_);
    options.parameters = host_.parameters(options.outputs, 1);
    options.updater = host_.updater("adam", job_.updater);
    options.reader = host_.reader(schema(), Samples()).shuffle(5).batch(4);
    options.passes = job_.passes;
    options.seed = 7;
    options.compute = job_.compute;
    options.shards = job_.shards;
    options.team = team_;
    options.handler = [&](const Event& event) {
      if (event.kind() == TN_END_ITERATION || event.kind() == TN_END_PASS || event.kind() == TN_TEST)
        outcome.costs.push_back(event.cost());
    };
    if (job_.change) job_.change(options, host_, team_ ? team_.info().rank : 0);
    try {
      tenon::train(options);
    } catch (const std::exception& error) {
      outcome.error = error.what();
    }
    if (team_) outcome.step_in_the_end = team_.info().step;
    add_parameters(outcome.parameters, options.parameters);
    return outcome;
  }

 private:
  const Job& job_;
  std::optional<LoopPlugin> plugin_;
  Host host_;
  Team team_;
};

inline Outcome alone(const Job& job) { return Process(job, 2).train(); }

inline std::vector<Outcome> together(const Job& job, int32_t ranks, const LoopScript& script, int threads = 1) {
  const LoopWorld world(ranks, script);
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  std::vector<std::thread> started;
  for (int32_t rank = 0; rank < ranks; ++rank)
    started.emplace_back([&, rank] {
      try {
        Process process(job, threads);
        process.join(world, rank, ranks);
        outcomes[static_cast<size_t>(rank)] = process.train();
      } catch (const std::exception& error) {
        outcomes[static_cast<size_t>(rank)].error = error.what();
      }
    });
  for (std::thread& each : started) each.join();
  EXPECT_THAT(world.misuses(), testing::ElementsAre());
  return outcomes;
}

inline LoopScript disordered(uint64_t seed) {
  LoopScript script;
  script.seed = seed;
  script.most_delay_us = 300;
  script.idle_one_in = 3;
  return script;
}

inline void expect_bits_of_one(const Job& job) {
  const Outcome one = alone(job);
  EXPECT_EQ(one.error, "");
  for (const int32_t ranks : {1, 2, 3, 4, 7}) {
    const std::vector<Outcome> all = together(job, ranks, disordered(static_cast<uint64_t>(ranks)), ranks == 2 ? 2 : 1);
    for (const Outcome& each : all) {
      EXPECT_EQ(each.error, "") << ranks << " processes";
      EXPECT_EQ(each.parameters, one.parameters) << ranks << " processes";
    }
    EXPECT_EQ(all.front().costs, one.costs) << ranks << " processes";
    if (ranks > 1) {
      EXPECT_THAT(all.back().costs, testing::ElementsAre()) << "handlers are those of process 0";
    }
  }
}

inline Layers dense(const Host& host) {
  const DenseModel model(host);
  return {model.cost, model.accuracy};
}
inline Layers sequences(const Host& host) { return {SequenceModel(host).cost}; }

}  // namespace tenon_tests
