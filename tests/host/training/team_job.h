// Trainings of several processes, here threads with a host each, beside the same training of one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/far_models.h"
#include "tests/support/fashion.h"
#include "tests/support/loop_comm.h"
#include "tests/support/loop_plugin.h"
#include "tests/support/temporary_folder.h"

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
    sample.set("image", drawn(64, number + 100));
    for (const auto& [name, text] : {std::pair{"query", number}, {"near", number + 3}, {"far", number * number + 5}}) {
      std::vector<int32_t> bag;
      for (uint64_t i = 0; i < 1 + text % 4; ++i) bag.push_back(static_cast<int32_t>((i * text + text) % 20));
      sample.set(name, bag);
    }
  }
};

inline Schema schema() {
  const auto sequence = [](const char* name) {
    SlotOptions slot{name, TN_I32, {}, 20};
    slot.storage = TN_RAGGED;
    return slot;
  };
  SlotOptions bag{"bag", TN_F32, {20}};
  bag.storage = TN_CSR;
  return {{"x", TN_F32, {8}},
          sequence("words"),
          bag,
          {"label", TN_I32, {}, 4},
          {"image", TN_F32, {8, 8, 1}},
          sequence("query"),
          sequence("near"),
          sequence("far")};
}

inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the processes of a training do, each with a host of its own.
struct Job {
  std::function<Layers(const Host&)> model;
  uint32_t shards = 7;
  tn_dtype compute = TN_F32;
  Attributes updater = {{"learning_rate", 0.1}, {"clip_norm", 0.5}};
  int64_t passes = 2;
  std::function<void(TrainOptions&, const Host&, int64_t rank)> change = nullptr;
  std::string plugins_of_last = plugin_folder();  // of the process with the highest rank
};

// What a process has in the end.
struct Outcome {
  std::string model;  // the bytes of the file that it saves
  std::string log;    // a line for each event that the handler of process 0 gets
  uint32_t skipped = 0;
  std::string error;
  int64_t step_in_the_end = 0;  // as the team says; 0 without one
};

// All that an event says, but how long it took; each bit of its numbers.
inline std::string line_of(const Event& event) {
  const auto text = [](double number) {
    char digits[40];
    std::snprintf(digits, sizeof digits, " %a", number);
    return std::string(digits);
  };
  std::string line;
  for (const int64_t number : {int64_t{event.kind()}, event.pass(), event.batch(), event.samples()})
    line += std::to_string(number) + ' ';
  line += text(event.cost()) + text(event.scheduled_rate()) + text(event.skipped());
  for (const Metric& metric : event.metrics()) line += ' ' + metric.name + text(metric.value);
  return line + '\n';
}

class Process {
 public:
  Process(const Job& job, int threads, const std::string& plugins = plugin_folder())
      : job_(job), host_(HostOptions{threads, {plugins}, nullptr, {}}) {}

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
      outcome.log += line_of(event);
      outcome.skipped = event.skipped();
    };
    if (job_.change) job_.change(options, host_, team_ ? team_.info().rank : 0);
    try {
      tenon::train(options);
    } catch (const std::exception& error) {
      outcome.error = error.what();
    }
    if (team_) outcome.step_in_the_end = team_.info().step;
    const TemporaryFolder folder;
    options.parameters.save(options.outputs, folder.file("model.safetensors"));
    outcome.model = content(folder.file("model.safetensors"));
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
        Process process(job, threads, rank + 1 == ranks ? job.plugins_of_last : plugin_folder());
        process.join(world, rank, ranks);
        outcomes[static_cast<size_t>(rank)] = process.train();
      } catch (const std::exception& error) {
        outcomes[static_cast<size_t>(rank)].error = error.what();
      }
    });
  for (std::thread& each : started) each.join();
  EXPECT_THAT(world.misuses(), testing::IsEmpty());
  return outcomes;
}

inline LoopScript disordered(uint64_t seed) {
  LoopScript script;
  script.seed = seed;
  script.most_delay_us = 300;
  script.idle_one_in = 3;
  return script;
}

// Whether all processes have saved the model of `one`, and process 0 has got its events.
inline void expect_same(const std::vector<Outcome>& all, const Outcome& one, const std::string& of) {
  for (const Outcome& each : all) {
    EXPECT_EQ(each.error, "") << of;
    EXPECT_TRUE(each.model == one.model) << of;
  }
  EXPECT_EQ(all.front().log, one.log) << of;
  if (all.size() > 1) {
    EXPECT_EQ(all.back().log, "") << "handlers are those of process 0";
  }
}

inline Outcome expect_bits_of_one(const Job& job) {
  const Outcome one = alone(job);
  EXPECT_EQ(one.error, "");
  EXPECT_NE(one.model, "");
  for (const int32_t ranks : {1, 2, 3, 4, 7})
    for (const int threads : {1, 2})
      if (ranks <= static_cast<int32_t>(job.shards))
        expect_same(together(job, ranks, disordered(static_cast<uint64_t>(2 * ranks + threads)), threads), one,
                    std::to_string(ranks) + " processes, threads: " + std::to_string(threads));
  return one;
}

// Stops four processes after five minibatches, the first of the second pass, and resumes with three.
inline void expect_resumes(Job job) {
  const Outcome whole = alone(job);
  const TemporaryFolder folder;
  const auto change = job.change;
  const auto checkpointed = [&](uint32_t start) {
    job.change = [path = folder.file("kept"), change, start](TrainOptions& options, const Host& host, int64_t rank) {
      if (change) change(options, host, rank);
      options.checkpoint.emplace();
      options.checkpoint->folder = path;
      options.checkpoint->every_batches = 1;
      options.checkpoint->start = start;
      if (start == TN_START_FRESH)
        options.handler = [seen = 0](Event& event) mutable {
          if (event.kind() == TN_END_ITERATION && ++seen == 5) event.stop();
        };
    };
  };
  checkpointed(TN_START_FRESH);
  const auto most = std::min(4, static_cast<int32_t>(job.shards));
  for (const Outcome& each : together(job, most, disordered(1))) EXPECT_EQ(each.error, "");
  EXPECT_NE(content(folder.file("kept/checkpoint-1-1.safetensors")), "");
  checkpointed(TN_START_RESUME);
  for (const Outcome& each : together(job, 3, disordered(2))) {
    EXPECT_EQ(each.error, "");
    EXPECT_TRUE(each.model == whole.model);
  }
}

inline Layers dense(const Host& host) {
  const DenseModel model(host);
  return {model.cost, model.accuracy};
}
inline Layers sequences(const Host& host) { return {SequenceModel(host).cost}; }

}  // namespace tenon_tests
