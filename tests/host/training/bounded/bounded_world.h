// Trainings of the bounded mode, whose processes are threads with a host each. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>

#include "tests/host/training/tables.h"

namespace tenon_tests {

// A model whose gradients do not depend on the parameters: sums of few binary digits, which no order changes.
class Steps {
 public:
  static constexpr int64_t kRows = 300;
  [[nodiscard]] static int64_t size() { return 64; }
  static void read(int64_t index, Sample& sample) {
    sample.set("item", static_cast<int32_t>(index * 37 % kRows));
    sample.set("x", std::vector<float>{static_cast<float>(index % 5), static_cast<float>(index / 8 % 3), 1});
  }
  static Schema schema() { return {{"item", TN_I32, {}, kRows}, {"x", TN_F32, {3}}}; }
  static Layers model(const Host& host) {
    const Layer item = host.layer("embedding", {host.data(integers("item", kRows))},
                                  {{"vocabulary", kRows}, {"size", 2}, {"parameter_name", "items"}}, "item_vector");
    const Layer dense = host.layer("fc", {host.data(floats("x", {3}))}, {{"size", 2}}, "dense");
    return {host.layer("sum_cost", {host.layer("concat", {item, dense}, {}, "both")}, {}, "cost")};
  }
};

struct BoundedJob {
  int32_t trainers = 1, servers = 1;
  int64_t staleness = 3;
  int64_t passes = 2;
  LoopScript script = {};
  bool returns = false;                // a process that is lost is started again
  int trainings = 1;                   // one after the other
  bool is_exact_last = false;          // the last one of them in the exact mode
  mutable LoopWorld* world = nullptr;  // of the processes, for handlers
  std::function<void(TrainOptions&, const Host&, int64_t rank)> change = nullptr;
};

// What process 0 has in the end, or another one: its error.
struct BoundedOutcome {
  std::string error;
  std::vector<float> dense, rows;  // of the file that all save; empty for another model
  int64_t samples = 0;             // of all passes
  uint64_t repeated = 0, torn = 0;
  std::string log;
};

inline std::vector<float> values_of(const Parameters& parameters, const char* name) {
  const Array array = parameters.get(name);
  const auto* const data = static_cast<const float*>(array.data);
  int64_t count = 1;
  for (const int64_t extent : array.shape) count *= extent;
  return {data, data + count};
}

inline void clear(const Parameters& parameters) {
  const std::vector<float> rows(Steps::kRows * 2), dense(6), bias(2);
  parameters.set("items.weight", {TN_F32, {Steps::kRows, 2}, rows.data()});
  parameters.set("dense.weight", {TN_F32, {3, 2}, dense.data()});
  parameters.set("dense.bias", {TN_F32, {2}, bias.data()});
}

// Trains as the job says, and saves.
inline BoundedOutcome train_steps(const Host& host, const Team& team, const BoundedJob& job) {
  BoundedOutcome outcome;
  TrainOptions options;
  options.outputs = Steps::model(host);
  options.parameters =
      team ? host.parameters(options.outputs, 1, {"items.weight"}, team) : host.parameters(options.outputs, 1);
  clear(options.parameters);
  options.passes = job.passes;
  options.team = team;
  const int64_t rank = team ? team.info().rank : 0;
  try {
    for (int i = 0; i < job.trainings; ++i) {
      options.updater = host.updater("sgd", {{"learning_rate", 0.25}});
      options.reader = host.reader(Steps::schema(), Steps()).shuffle(5).batch(4);
      options.staleness = team && !(job.is_exact_last && i + 1 == job.trainings) ? job.staleness : 0;
      options.handler = [&](const Event& event) {
        if (event.kind() == TN_END_PASS) outcome.samples += event.samples();
        outcome.repeated = event.repeated();
        outcome.torn = event.torn();
      };
      if (job.change) job.change(options, host, rank);
      try {
        tenon::train(options);
      } catch (const std::exception& error) {
        outcome.error = error.what();
        if (i + 1 == job.trainings) return outcome;
      }
    }
    const TemporaryFolder folder;
    const std::string file = folder.file("model.safetensors");
    options.parameters.save(options.outputs, file);
    if (rank > 0) return outcome;
    const Parameters saved = host.load(file).parameters;
    if (std::string(saved.describe()).find("dense.weight") == std::string::npos) return outcome;
    outcome.dense = values_of(saved, "dense.weight");
    for (const float value : values_of(saved, "dense.bias")) outcome.dense.push_back(value);
    outcome.rows = values_of(saved, "items.weight");
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  return outcome;
}

// Joins in the place of a process that was lost, once the others have noticed.
inline Team returned(const Host& host, const LoopPlugin& plugin, const LoopWorld& world, int32_t rank, int32_t ranks,
                     int32_t servers) {
  for (int attempt = 0;; ++attempt) try {
      return joined(host, plugin, world, rank, ranks, servers);
    } catch (const std::exception&) {
      if (attempt == 400) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

// Returns the outcomes by rank.
inline std::vector<BoundedOutcome> train_bounded_steps(const BoundedJob& job) {
  const int32_t ranks = job.trainers + job.servers;
  LoopWorld world(ranks, job.script);
  job.world = &world;
  std::vector<BoundedOutcome> outcomes(static_cast<size_t>(ranks));
  std::vector<std::thread> processes;
  for (int32_t rank = 0; rank < ranks; ++rank)
    processes.emplace_back([&, rank] {
      BoundedOutcome& outcome = outcomes[static_cast<size_t>(rank)];
      try {
        const LoopPlugin plugin(world);
        const Host host = make_host(1);
        outcome = train_steps(host, joined(host, plugin, world, rank, ranks, job.servers), job);
        if (outcome.error.empty() || !job.returns || rank == 0 || rank >= job.trainers) return;
        const LoopPlugin second(world);
        const Host again = make_host(1);
        outcome = train_steps(again, returned(again, second, world, rank, ranks, job.servers), job);
      } catch (const std::exception& error) {
        outcome.error = error.what();
      }
    });
  for (std::thread& process : processes) process.join();
  EXPECT_THAT(world.misuses(), testing::IsEmpty());
  return outcomes;
}

}  // namespace tenon_tests
