// Checkpoints of processes that own the rows of tables between them. SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>

#include "core/files/model_file.h"
#include "tests/host/training/tables.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

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

TEST(TableCheckpoints, CheckpointsAreResumedByAnyNumberOfOwners) {
  for (const auto& [before, after] : {std::pair{2, 3}, {3, 2}, {4, 4}, {1, 2}, {3, 1}, {7, 2}})
    expect_resumed_bits(before, after);
}

TEST(TableCheckpoints, CheckpointsOfServersAreResumedWithoutThem) {
  for (const auto& [ranks, servers] : {std::pair{2, 1}, {4, 1}, {5, 3}})
    expect_resumed_bits(ranks, 3, nullptr, servers);
}

TEST(TableCheckpoints, CheckpointsHaveTheStatesOfEachGroup) {
  const Change groups = [](TrainOptions& options, const Host& host, int64_t) {
    options.updater = host.updater("rowwise_adagrad", {{"learning_rate", 0.1}});
    options.groups = {{host.updater("adam", {{"learning_rate", 0.2}}), {"items"}},
                      {host.updater("sgd", {{"learning_rate", 0.2}, {"momentum", 0.9}}), {"scores"}}};
  };
  expect_resumed_bits(3, 2, groups);
  expect_resumed_bits(3, 2, groups, 1);  // process 0 has no rows, and yet the steps of the updater of tables alone
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

TEST(TableCheckpoints, CheckpointsOfUpdatersOfApplicationsBesideTables) {
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

TEST(TableCheckpoints, ACheckpointIsJoinedIntoThatOfOneProcess) {
  const TemporaryFolder folder;
  const std::string alone = folder.file("alone"), kept = folder.file("kept"), one = folder.file("one.safetensors");
  EXPECT_EQ(trained(make_host(2), {}, false, with_checkpoints(alone, TN_START_FRESH, 5)).error, "");
  for (const Outcome& each : together(3, with_checkpoints(kept, TN_START_FRESH, 5))) EXPECT_EQ(each.error, "");
  make_host(1).join_model(kept + "/checkpoint-1-1.safetensors", one);
  EXPECT_TRUE(tensors_of(one) == tensors_of(alone + "/checkpoint-1-1.safetensors"));
  EXPECT_TRUE(tensors_of(kept + "/checkpoint-1-1.safetensors") == tensors_of(one));
}

TEST(TableCheckpoints, PartsStayAsLongAsTheirCheckpoint) {
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

TEST(TableCheckpoints, WhatOthersHavePutIntoTheFolderStays) {
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

TEST(TableCheckpoints, PartsThatAreDamagedOrMissingAreNamedInAllProcesses) {
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

TEST(TableCheckpoints, AFolderThatIsNotSharedIsNoticed) {
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
TEST(TableCheckpoints, AnOwnerOfAllRowsTrainsAlone) {
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

}  // namespace

}  // namespace tenon_tests
