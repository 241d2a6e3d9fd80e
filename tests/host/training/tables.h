// Trainings of processes, here threads with a host each, that own the rows of tables between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <tenon/tenon_lease.hpp>
#include <tenon/tenon_updater.hpp>
#include <thread>
#include <vector>

#include "tests/support/far_models.h"
#include "tests/support/fashion.h"
#include "tests/support/loop_comm.h"
#include "tests/support/loop_plugin.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

inline constexpr int64_t kItems = 600;
inline const std::vector<std::string> kTables = {"items.weight", "tagged.weight"};

// Ids from all over the tables, many of them in several samples.
class Clicks {
 public:
  [[nodiscard]] static int64_t size() { return 14; }
  static void read(int64_t index, Sample& sample) {
    const auto number = static_cast<uint64_t>(index);
    sample.set("item", static_cast<int32_t>(number * 211 % kItems));
    std::vector<int32_t> words;
    for (uint64_t i = 0; i < number * 5 % 7; ++i) words.push_back(static_cast<int32_t>((i * 53 + number / 3) % kItems));
    sample.set("words", words);
    for (uint64_t i = 0; i < number % 3; ++i)
      sample.add_entry("tags", static_cast<int64_t>((i * 257 + number / 2 * 101) % kItems), 0.25F);
    sample.set("x", drawn(3, number + 1));
    sample.set("label", static_cast<int32_t>(index % 4));
  }
};

inline Schema clicks() {
  SlotOptions words{"words", TN_I32, {}, kItems};
  words.storage = TN_RAGGED;
  SlotOptions tags{"tags", TN_F32, {kItems}};
  tags.storage = TN_CSR;
  SlotOptions label{"label", TN_I32, {}, 4};
  label.names = {"none", "one", "two", "three"};
  return {{"item", TN_I32, {}, kItems}, words, tags, {"x", TN_F32, {3}}, label};
}

// A table that a bag and a lookup share, and one that sparse rows of numbers read.
inline Layers recommender(const Host& host) {
  DataOptions words = integers("words", kItems), tags = floats("tags", {kItems});
  words.storage = TN_RAGGED, words.levels = 1, tags.storage = TN_CSR;
  // Before the tables: the others lie behind them in the set.
  const Layer dense = host.layer("fc", {host.data(floats("x", {3}))}, {{"size", 4}}, "dense");
  const Layer seen =
      host.layer("embedding", {host.data(words)},
                 {{"vocabulary", kItems}, {"size", 6}, {"reduce", "sum"}, {"parameter_name", "items"}}, "seen");
  const Layer item = host.layer("embedding", {host.data(integers("item", kItems))},
                                {{"vocabulary", kItems}, {"size", 6}, {"parameter_name", "items"}}, "item_vector");
  const Layer tagged = host.layer("fc", {host.data(tags)}, {{"size", 5}}, "tagged");
  const Layer scores = host.layer("fc", {dense, seen, item, tagged}, {{"size", 4}}, "scores");
  return {host.layer("cross_entropy", {scores, host.data(integers("label", 4))}, {{"from_logits", true}}, "cost")};
}

using Change = std::function<void(TrainOptions&, const Host&, int64_t rank)>;

// What a process has in the end.
struct Outcome {
  std::string model;  // the bytes of the file that it saves; "" without one
  std::string log;    // a line for each event that its handler gets
  std::string place;  // of its reader in the end
  std::string error;
};

inline std::string place_of(const Reader& reader) {
  const auto place = reader.position();
  return std::to_string(place.pass) + ':' + std::to_string(place.samples);
}

inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Trains the recommender, and saves it also after a failure. tables: whether processes own their rows.
inline Outcome trained(const Host& host, const Team& team, bool tables, const Change& change) {
  Outcome outcome;
  TrainOptions options;
  options.outputs = recommender(host);
  options.parameters =
      tables ? host.parameters(options.outputs, 1, kTables, team) : host.parameters(options.outputs, 1);
  options.updater = host.updater("adam", {{"learning_rate", 0.1}});
  options.reader = host.reader(clicks(), Clicks()).shuffle(5).batch(4);
  options.passes = 2;
  options.seed = 7;
  options.shards = 7;
  options.team = team;
  options.handler = [&](const Event& event) {
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "%d %lld %a %a\n", event.kind(), static_cast<long long>(event.samples()),
                  event.cost(), event.scheduled_rate());
    outcome.log += place_of(options.reader) + ' ' + numbers;
  };
  if (change) change(options, host, team ? team.info().rank : 0);
  try {
    tenon::train(options);
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  outcome.place = place_of(options.reader);
  const TemporaryFolder folder;
  try {
    options.parameters.save(options.outputs, folder.file("model.safetensors"));
  } catch (const std::exception& error) {
    throw std::runtime_error(outcome.error + "; then " + error.what());
  }
  outcome.model = content(folder.file("model.safetensors"));
  return outcome;
}

inline Team joined(const Host& host, const LoopPlugin& plugin, const LoopWorld& world, int32_t rank, int32_t ranks,
                   int32_t servers) {
  host.add_plugin(plugin.get());
  TeamOptions options;
  options.comm = world.type()->description->type;
  options.rank = rank, options.processes = ranks, options.servers = servers;
  return host.join(options);
}

inline LoopScript delayed(int32_t ranks) {
  LoopScript script;
  script.seed = static_cast<uint64_t>(ranks);
  script.most_delay_us = 300;
  script.idle_one_in = 3;
  return script;
}

// Runs work(host, team, rank) for each process of a team, which is a thread.
template <typename Work>
void in_world(const LoopWorld& world, int32_t ranks, int threads, const Work& work, int32_t servers = 0) {
  std::vector<std::thread> started;
  for (int32_t rank = 0; rank < ranks; ++rank)
    started.emplace_back([&, rank] {
      try {
        const LoopPlugin plugin(world);
        const Host host = make_host(threads);
        work(host, joined(host, plugin, world, rank, ranks, servers), rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "process " << rank << ": " << error.what();
      }
    });
  for (std::thread& each : started) each.join();
}

template <typename Work>
void in_team(int32_t ranks, int threads, const Work& work, int32_t servers = 0) {
  const LoopWorld world(ranks, delayed(ranks));
  in_world(world, ranks, threads, work, servers);
  EXPECT_THAT(world.misuses(), testing::IsEmpty());
}

// servers: of the ranks.
inline std::vector<Outcome> together(int32_t ranks, const Change& change = nullptr, int32_t servers = 0) {
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  in_team(
      ranks, ranks == 2 ? 2 : 1,
      [&](const Host& host, const Team& team, int32_t rank) {
        outcomes[static_cast<size_t>(rank)] = trained(host, team, true, change);
      },
      servers);
  return outcomes;
}

// Returns the message with which a call is refused.
template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was refused";
}

}  // namespace tenon_tests
