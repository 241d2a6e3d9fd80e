// Trainings of processes that own the rows of tables between them: the files of one process without tables.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <tenon/tenon_lease.hpp>
#include <tenon/tenon_predictor.hpp>
#include <tenon/tenon_topology.hpp>
#include <tenon/tenon_updater.hpp>
#include <thread>

#include "core/files/model_file.h"
#include "tests/support/far_models.h"
#include "tests/support/fashion.h"
#include "tests/support/loop_comm.h"
#include "tests/support/loop_plugin.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

constexpr int64_t kItems = 600;
const std::vector<std::string> kTables = {"items.weight", "tagged.weight"};

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
    sample.set("label", static_cast<int32_t>(index % 4));
  }
};

Schema clicks() {
  SlotOptions words{"words", TN_I32, {}, kItems};
  words.storage = TN_RAGGED;
  SlotOptions tags{"tags", TN_F32, {kItems}};
  tags.storage = TN_CSR;
  return {{"item", TN_I32, {}, kItems}, words, tags, {"label", TN_I32, {}, 4}};
}

// A table that a bag and a lookup share, and one that sparse rows of numbers read.
Layers recommender(const Host& host) {
  DataOptions words = integers("words", kItems), tags = floats("tags", {kItems});
  words.storage = TN_RAGGED, words.levels = 1, tags.storage = TN_CSR;
  const Layer seen =
      host.layer("embedding", {host.data(words)},
                 {{"vocabulary", kItems}, {"size", 6}, {"reduce", "sum"}, {"parameter_name", "items"}}, "seen");
  const Layer item = host.layer("embedding", {host.data(integers("item", kItems))},
                                {{"vocabulary", kItems}, {"size", 6}, {"parameter_name", "items"}}, "item_vector");
  const Layer tagged = host.layer("fc", {host.data(tags)}, {{"size", 5}}, "tagged");
  const Layer scores = host.layer("fc", {seen, item, tagged}, {{"size", 4}}, "scores");
  return {host.layer("cross_entropy", {scores, host.data(integers("label", 4))}, {{"from_logits", true}}, "cost")};
}

using Change = std::function<void(TrainOptions&, const Host&, int64_t rank)>;

// What a process has in the end.
struct Outcome {
  std::string model;  // the bytes of the file that it saves; "" without one
  std::string log;    // a line for each event that its handler gets
  std::string error;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Trains the recommender, and saves it also after a failure. tables: whether processes own their rows.
Outcome trained(const Host& host, const Team& team, bool tables, const Change& change) {
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
    outcome.log += numbers;
  };
  if (change) change(options, host, team ? team.info().rank : 0);
  try {
    tenon::train(options);
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  const TemporaryFolder folder;
  try {
    options.parameters.save(options.outputs, folder.file("model.safetensors"));
  } catch (const std::exception& error) {
    throw std::runtime_error(outcome.error + "; then " + error.what());
  }
  outcome.model = content(folder.file("model.safetensors"));
  return outcome;
}

Team joined(const Host& host, const LoopPlugin& plugin, const LoopWorld& world, int32_t rank, int32_t ranks,
            int32_t servers) {
  host.add_plugin(plugin.get());
  TeamOptions options;
  options.comm = world.type()->description->type;
  options.rank = rank, options.processes = ranks, options.servers = servers;
  return host.join(options);
}

// Runs work(host, team, rank) for each process of a team, which is a thread.
template <typename Work>
void in_team(int32_t ranks, int threads, const Work& work, int32_t servers = 0) {
  LoopScript script;
  script.seed = static_cast<uint64_t>(ranks);
  script.most_delay_us = 300;
  script.idle_one_in = 3;
  const LoopWorld world(ranks, script);
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
  EXPECT_THAT(world.misuses(), testing::IsEmpty());
}

// servers: of the ranks.
std::vector<Outcome> together(int32_t ranks, const Change& change = nullptr, int32_t servers = 0) {
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  in_team(
      ranks, ranks == 2 ? 2 : 1,
      [&](const Host& host, const Team& team, int32_t rank) {
        outcomes[static_cast<size_t>(rank)] = trained(host, team, true, change);
      },
      servers);
  return outcomes;
}

void expect_bits_of_whole_tables(const Change& change = nullptr) {
  const Outcome one = trained(make_host(2), {}, false, change);
  EXPECT_EQ(one.error, "");
  EXPECT_NE(one.model, "");
  for (const auto& [ranks, servers] :
       {std::pair{1, 0}, {2, 0}, {3, 0}, {4, 0}, {7, 0}, {2, 1}, {4, 1}, {4, 2}, {6, 5}}) {
    const std::vector<Outcome> all = together(ranks, change, servers);
    for (const Outcome& each : all) EXPECT_EQ(each.error, "") << ranks << " processes, servers: " << servers;
    EXPECT_TRUE(all.front().model == one.model) << ranks << " processes, servers: " << servers;
    EXPECT_EQ(all.front().log, one.log) << ranks << " processes, servers: " << servers;
    if (ranks > 1) {
      EXPECT_EQ(all.back().model, "") << "process 0 writes the file";
    }
  }
}

TEST(TeamTables, EachUpdaterGivesTheBitsOfWholeTables) {
  for (const std::string updater : {"sgd", "adam", "rowwise_adagrad", "example.rprop"})
    expect_bits_of_whole_tables([&](TrainOptions& options, const Host& host, int64_t) {
      if (updater == "example.rprop") host.add_plugin(tenon_plugin());  // of examples/plugins, by a third party
      options.updater = host.updater(updater, {{"learning_rate", 0.1}});
    });
}

TEST(TeamTables, GroupsAndTestsGiveTheBitsOfWholeTables) {
  expect_bits_of_whole_tables([](TrainOptions& options, const Host& host, int64_t) {
    options.updater = host.updater("adam", {{"learning_rate", 0.1}, {"clip_norm", 0.5}});
    options.groups = {{host.updater("sgd", {{"learning_rate", 0.2}, {"momentum", 0.9}}), {"items", "tagged.weight"}}};
    options.test = TestOptions{host.reader(clicks(), Clicks()).batch(5), {}, {}, 0, 2};
  });
}

TEST(TeamTables, ImmutableTablesGiveTheBitsOfWholeTables) {
  expect_bits_of_whole_tables(
      [](TrainOptions& options, const Host&, int64_t) { options.immutable_parameters = {"items"}; });
}

TEST(TeamTables, FirstValuesOfAnotherSetAreDividedAmongTheOwners) {
  expect_bits_of_whole_tables([](TrainOptions& options, const Host& host, int64_t) {
    tenon::copy(options.parameters, host.parameters(options.outputs, 9));
  });
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

// ---- checkpoints

// Writes checkpoints into a folder. stop: after so many minibatches; 0: never.
Change with_checkpoints(const std::string& folder, uint32_t start, int stop, const Change& change = nullptr) {
  return [=](TrainOptions& options, const Host& host, int64_t rank) {
    if (change) change(options, host, rank);
    options.checkpoint.emplace();
    options.checkpoint->folder = folder;
    options.checkpoint->every_batches = 1;
    options.checkpoint->keep = 2;
    options.checkpoint->start = start;
    if (stop > 0)
      options.handler = [seen = 0, stop](Event& event) mutable {
        if (event.kind() == TN_END_ITERATION && ++seen == stop) event.stop();
      };
  };
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder))
    if (each.path().filename() != ".training.lock") names.insert(each.path().filename());
  return names;
}

// Trains as one process, and as `before` that stop in the second pass and `after` that go on.
void expect_resumed_bits(int32_t before, int32_t after, const Change& change = nullptr, int32_t servers = 0) {
  const Outcome whole = trained(make_host(2), {}, false, change);
  const TemporaryFolder folder;
  const std::string kept = folder.file("kept");
  for (const Outcome& each : together(before, with_checkpoints(kept, TN_START_FRESH, 5, change), servers))
    EXPECT_EQ(each.error, "");
  const std::vector<Outcome> resumed = together(after, with_checkpoints(kept, TN_START_RESUME, 0, change));
  for (const Outcome& each : resumed) EXPECT_EQ(each.error, "") << before << " to " << after;
  EXPECT_TRUE(resumed.front().model == whole.model) << before << " to " << after;
}

TEST(TeamTables, CheckpointsAreResumedByAnyNumberOfOwners) {
  for (const auto& [before, after] : {std::pair{2, 3}, {3, 2}, {4, 4}, {1, 2}, {3, 1}, {7, 2}})
    expect_resumed_bits(before, after);
}

TEST(TeamTables, CheckpointsOfServersAreResumedWithoutThem) {
  for (const auto& [ranks, servers] : {std::pair{2, 1}, {4, 1}, {5, 3}})
    expect_resumed_bits(ranks, 3, nullptr, servers);
}

TEST(TeamTables, ServersNeedTablesAndTrainers) {
  const auto error_of = [](int32_t ranks, int32_t servers, bool tables) {
    std::string message;
    in_team(
        ranks, 1,
        [&](const Host& host, const Team& team, int32_t rank) {
          const Outcome outcome = trained(host, team, tables, nullptr);
          if (rank == 0) message = outcome.error;
        },
        servers);
    return message;
  };
  EXPECT_THAT(error_of(3, 1, false),
              HasSubstr("servers is 1: servers own the rows of tables, and the parameters have no tables"));
  LoopWorld world(1, {});
  const LoopPlugin plugin(world);
  const Host host = make_host(1);
  EXPECT_THAT(message_of([&] { static_cast<void>(joined(host, plugin, world, 0, 1, 1)); }),
              HasSubstr("servers is 1 of 1 process; at least one has to train"));
}

TEST(TeamTables, CheckpointsHaveTheStatesOfEachGroup) {
  const Change groups = [](TrainOptions& options, const Host& host, int64_t) {
    options.updater = host.updater("rowwise_adagrad", {{"learning_rate", 0.1}});
    options.groups = {{host.updater("adam", {{"learning_rate", 0.2}}), {"items"}},
                      {host.updater("sgd", {{"learning_rate", 0.2}, {"momentum", 0.9}}), {"scores"}}};
  };
  expect_resumed_bits(3, 2, groups);
  expect_resumed_bits(3, 2, groups, 1);  // process 0 has no rows, and yet the steps of the updater of tables alone
}

TEST(TeamTables, AScheduleOfTablesAloneIsReported) {
  expect_bits_of_whole_tables([](TrainOptions& options, const Host& host, int64_t) {
    options.updater = host.updater(
        "adam",
        {{"learning_rate", 0.1}, {"schedule.type", "polynomial"}, {"schedule.steps", 10}, {"schedule.end", 0.1}});
    options.groups = {{host.updater("sgd", {{"learning_rate", 0.2}}), {"scores", "tagged.bias"}}};
  });
}

// An updater of the application: all values become a number of the step.
class Counting final : public UpdateRule {
 public:
  explicit Counting(Parameters parameters) : parameters_(std::move(parameters)) {}
  void update(const RuleStep& step) override {
    std::vector<std::vector<float>> values;
    std::vector<ParameterValues> list;
    for (const std::string& name : step.names) {
      Array array = parameters_.get(name);
      size_t count = 1;
      for (const int64_t extent : array.shape) count *= static_cast<size_t>(extent);
      values.emplace_back(count, 0.125F * static_cast<float>(step.number));
      list.push_back({name, {TN_F32, array.shape, values.back().data()}});
    }
    tenon::commit(step.machine, list);
  }

 private:
  Parameters parameters_;
};

TEST(TeamTables, CheckpointsOfUpdatersOfApplicationsBesideTables) {
  expect_resumed_bits(3, 2, [](TrainOptions& options, const Host& host, int64_t) {
    options.updater = updater_of(options.parameters, "counting", std::make_shared<Counting>(options.parameters));
    options.groups = {{host.updater("adam", {{"learning_rate", 0.2}}), {"items", "tagged.weight"}}};
  });
}

// Returns the tensors of a checkpoint with their values, but for the record, which has the seconds of the training.
std::string tensors_of(const std::string& path) {
  const auto files = tenon::core::system_files();
  const auto header = tenon::core::read_model_header(*files, path);
  tenon::core::StoredTensors tensors(*files, path, header, tenon::core::system_allocator());
  std::string all;
  for (const auto& tensor : header.tensors) {
    if (tensor.name == "tenon.checkpoint/record") continue;
    const auto values = tensors.read(tensor);
    all += tensor.name + '\n' + std::string(reinterpret_cast<const char*>(values->data()), values->size());
  }
  return all;
}

TEST(TeamTables, ACheckpointIsJoinedIntoThatOfOneProcess) {
  const TemporaryFolder folder;
  const std::string alone = folder.file("alone"), kept = folder.file("kept"), one = folder.file("one.safetensors");
  EXPECT_EQ(trained(make_host(2), {}, false, with_checkpoints(alone, TN_START_FRESH, 5)).error, "");
  for (const Outcome& each : together(3, with_checkpoints(kept, TN_START_FRESH, 5))) EXPECT_EQ(each.error, "");
  make_host(1).join_model(kept + "/checkpoint-1-1.safetensors", one);
  EXPECT_TRUE(tensors_of(one) == tensors_of(alone + "/checkpoint-1-1.safetensors"));
  EXPECT_TRUE(tensors_of(kept + "/checkpoint-1-1.safetensors") == tensors_of(one));
}

TEST(TeamTables, PartsStayAsLongAsTheirCheckpoint) {
  const TemporaryFolder folder;
  const std::string kept = folder.file("kept");
  const Change best = [](TrainOptions& options, const Host&, int64_t) { options.checkpoint->best = "cost"; };
  const Change checkpointed = with_checkpoints(kept, TN_START_FRESH, 0);
  const Change both = [&](TrainOptions& options, const Host& host, int64_t rank) {
    checkpointed(options, host, rank);
    best(options, host, rank);
  };
  for (const Outcome& each : together(2, both)) EXPECT_EQ(each.error, "");
  const std::set<std::string> names = names_in(kept);
  EXPECT_THAT(names, testing::IsSupersetOf({"checkpoint-2-0.parts", "checkpoint-2-0.safetensors", "best.safetensors"}));
  EXPECT_EQ(names.size(), 6U) << "two checkpoints, the best one, and a folder of each";
  EXPECT_EQ(names_in(kept + "/checkpoint-2-0.parts"),
            (std::set<std::string>{"000-of-002.safetensors", "001-of-002.safetensors"}));
  // What a process that was killed has left is removed by the next start.
  std::filesystem::create_directory(kept + "/checkpoint-9-9.parts-3");
  for (const char* const name : {"incomplete", "000-of-002.safetensors"})
    std::ofstream(kept + "/checkpoint-9-9.parts-3/" + name) << "begun";
  std::ofstream(kept + "/checkpoint-2-0.parts/incomplete") << "killed when the checkpoint was there";
  for (const Outcome& each : together(2, with_checkpoints(kept, TN_START_RESUME, 0))) EXPECT_EQ(each.error, "");
  EXPECT_EQ(names_in(kept), names);
  EXPECT_EQ(names_in(kept + "/checkpoint-2-0.parts").size(), 2U);
}

TEST(TeamTables, WhatOthersHavePutIntoTheFolderStays) {
  const TemporaryFolder folder;
  const std::string kept = folder.file("kept");
  for (const Outcome& each : together(2, with_checkpoints(kept, TN_START_FRESH, 5))) EXPECT_EQ(each.error, "");
  const Host host = make_host(1);
  std::filesystem::rename(kept + "/checkpoint-1-1.safetensors", kept + "/good.safetensors");
  host.split_model(kept + "/good.safetensors", kept + "/split.model", {"items.weight"}, 3);
  for (const Outcome& each : together(3, with_checkpoints(kept, TN_START_RESUME, 0))) EXPECT_EQ(each.error, "");
  host.join_model(kept + "/good.safetensors", folder.file("one"));
  host.join_model(kept + "/split.model", folder.file("two"));
  EXPECT_TRUE(tensors_of(folder.file("one")) == tensors_of(folder.file("two")));
}

TEST(TeamTables, PartsThatAreDamagedOrMissingAreNamedInAllProcesses) {
  const TemporaryFolder folder;
  const std::string kept = folder.file("kept"), part = kept + "/checkpoint-1-1.parts/001-of-002.safetensors";
  for (const Outcome& each : together(2, with_checkpoints(kept, TN_START_FRESH, 5))) EXPECT_EQ(each.error, "");
  const std::string whole = content(part);
  std::ofstream(part, std::ios::binary) << whole.substr(0, whole.size() - 1) << static_cast<char>(whole.back() ^ 1);
  const auto resumed = [&] { return together(2, with_checkpoints(kept, TN_START_RESUME, 0)); };
  for (const Outcome& each : resumed()) {
    EXPECT_THAT(each.error, HasSubstr("process 1: "));
    EXPECT_THAT(each.error, HasSubstr("001-of-002.safetensors\": damaged"));
    EXPECT_THAT(each.error, HasSubstr("; the checkpoint before it is"));
  }
  std::filesystem::remove(part);
  for (const Outcome& each : resumed()) EXPECT_THAT(each.error, HasSubstr("which has rows of its tables, is missing"));
}

TEST(TeamTables, AFolderThatIsNotSharedIsNoticed) {
  const TemporaryFolder folder;
  const Change apart = [&](TrainOptions& options, const Host& host, int64_t rank) {
    with_checkpoints(folder.file("kept" + std::to_string(rank)), TN_START_FRESH, 0)(options, host, rank);
  };
  for (const Outcome& each : together(2, apart))
    EXPECT_THAT(each.error, HasSubstr("process 1: it does not see the folder"));
  const Change resumed = [&](TrainOptions& options, const Host& host, int64_t rank) {
    const std::string name = rank == 0 ? "kept" : "mount";
    with_checkpoints(folder.file(name), TN_START_RESUME_OR_FRESH, 0)(options, host, rank);
  };
  for (const Outcome& each : together(2, with_checkpoints(folder.file("kept"), TN_START_FRESH, 5)))
    EXPECT_EQ(each.error, "");
  for (const Outcome& each : together(2, resumed))
    EXPECT_THAT(each.error, HasSubstr("process 1: it does not see the folder"));
}

// The only server has the parameters of a process without a team.
TEST(TeamTables, AnOwnerOfAllRowsTrainsAlone) {
  const TemporaryFolder folder;
  const Outcome whole = trained(make_host(2), {}, false, with_checkpoints(folder.file("whole"), TN_START_FRESH, 0));
  const Change alone = [&](TrainOptions& options, const Host& host, int64_t rank) {
    options.team = {};
    if (rank == 1) with_checkpoints(folder.file("kept"), TN_START_FRESH, 0)(options, host, rank);
  };
  const std::vector<Outcome> all = together(2, alone, 1);
  EXPECT_THAT(all[0].error, HasSubstr("its rows lie with the processes of a team"));
  EXPECT_EQ(all[1].error, "");
  EXPECT_EQ(all[1].log, whole.log);
  EXPECT_TRUE(std::filesystem::exists(folder.file("kept/checkpoint-2-0.parts/000-of-001.safetensors")));
}

// ---- what is refused

// Returns what all of two processes say.
std::string refusal(const Change& change) {
  const std::vector<Outcome> all = together(2, change);
  EXPECT_EQ(all[0].error, all[1].error);
  return all[0].error;
}

TEST(TeamTables, TrainingsThatNeedWholeTablesAreRefusedByName) {
  EXPECT_THAT(refusal([](TrainOptions& options, const Host& host, int64_t) {
                options.updater = host.updater("sgd", {{"clip_norm", 1.0}});
              }),
              HasSubstr("table \"items.weight\" has its rows with the processes of a team, over which clip_norm"));
  EXPECT_THAT(refusal([](TrainOptions& options, const Host&, int64_t) { options.compute = TN_BF16; }),
              HasSubstr("table \"items.weight\": the machine computes in another type than float32"));
  EXPECT_THAT(refusal([](TrainOptions& options, const Host& host, int64_t) {
                options.average.emplace();
                options.average->parameters = host.parameters(options.outputs, 1);
              }),
              HasSubstr("average: parameter \"items.weight\" is a table"));
  EXPECT_THAT(refusal([](TrainOptions& options, const Host& host, int64_t) {
                options.best.emplace();
                options.best->parameters = host.parameters(options.outputs, 1);
              }),
              HasSubstr("best: parameter \"items.weight\" is a table"));
}

class Standing final : public UpdateRule {
 public:
  void update(const RuleStep& /*step*/) override {}
};

TEST(TeamTables, UpdatersOfApplicationsAreRefusedByName) {
  EXPECT_THAT(refusal([](TrainOptions& options, const Host&, int64_t) {
                options.updater = updater_of(options.parameters, "standing", std::make_shared<Standing>());
              }),
              HasSubstr("table \"items.weight\" has its rows with the processes of a team, which call no updater"));
}

TEST(TeamTables, RowsOfOthersCanBeReadFromTheFileAlone) {
  const Change check = [](TrainOptions& options, const Host& host, int64_t) {
    const Parameters& set = options.parameters;
    MachineOptions small;
    small.max_samples = 4;
    const auto is_table = HasSubstr("parameter \"items.weight\" is a table");
    const auto lies_elsewhere = HasSubstr("table \"items.weight\": its rows lie with the processes of a team");
    EXPECT_THAT(message_of([&] { static_cast<void>(set.get("items.weight")); }), is_table);
    EXPECT_THAT(message_of([&] { static_cast<void>(read(set, "items.weight")); }), is_table);
    EXPECT_THAT(message_of([&] { tenon::copy(host.parameters(options.outputs, 1), set); }), is_table);
    EXPECT_THAT(message_of([&] { const Predictor predictor(set, options.outputs); }), is_table);
    EXPECT_THAT(message_of([&] { static_cast<void>(host.machine(set, options.outputs, small)); }), lies_elsewhere);
    EXPECT_THAT(message_of([&] { static_cast<void>(tenon::test(options)); }), lies_elsewhere);
  };
  for (const Outcome& each : together(2, check)) EXPECT_EQ(each.error, "");
}

TEST(TeamTables, AFileThatCannotBeWrittenFailsInAllProcesses) {
  const Change check = [](TrainOptions& options, const Host&, int64_t rank) {
    EXPECT_THAT(message_of([&] { options.parameters.save(options.outputs, "/nowhere/model.safetensors"); }),
                HasSubstr(rank == 0 ? "/nowhere" : "process 0 could not write"));
  };
  for (const Outcome& each : together(3, check)) EXPECT_EQ(each.error, "");
}

TEST(TeamTables, TrainingsNeedTheTeam) {
  const Change leave = [](TrainOptions& options, const Host&, int64_t) { options.team = {}; };
  for (const Outcome& each : together(2, leave))
    EXPECT_THAT(each.error, HasSubstr("table \"items.weight\": its rows lie with the processes of a team"));
}

TEST(TeamTables, SavingNeedsTheTeam) {
  in_team(2, 1, [](const Host& host, Team team, int32_t) {
    const Layers outputs = recommender(host);
    const Parameters parameters = host.parameters(outputs, 1, kTables, team);
    team = {};
    EXPECT_THAT(message_of([&] { parameters.save(outputs, "/nowhere/model.safetensors"); }),
                HasSubstr("whose rows lie with the processes of a team that this one has left"));
  });
}

}  // namespace

}  // namespace tenon_tests
