// Trainings of processes that own the rows of tables between them: the files of one process without tables.
// SPDX-License-Identifier: Apache-2.0
#include "tests/host/training/tables.h"

#include <tenon/tenon_predictor.hpp>
#include <tenon/tenon_topology.hpp>

namespace tenon_tests {

namespace {

using testing::HasSubstr;

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

TEST(TeamTables, AScheduleOfTablesAloneIsReported) {
  expect_bits_of_whole_tables([](TrainOptions& options, const Host& host, int64_t) {
    options.updater = host.updater(
        "adam",
        {{"learning_rate", 0.1}, {"schedule.type", "polynomial"}, {"schedule.steps", 10}, {"schedule.end", 0.1}});
    options.groups = {{host.updater("sgd", {{"learning_rate", 0.2}}), {"scores", "tagged.bias", "dense"}}};
  });
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

}  // namespace

}  // namespace tenon_tests
