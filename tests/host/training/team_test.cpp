// Trainings of several processes, here threads with a host each: the bits of one. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <tenon/kernel.hpp>
#include <tenon/plugin.hpp>
#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_updater.hpp>

#include "tests/host/training/team_job.h"

namespace tenon_tests {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A recurrence over the words that goes on where the minibatch before ended.
Layers carrying(const Host& host) {
  DataOptions ids = integers("words", 20);
  ids.storage = TN_RAGGED, ids.levels = 1;
  const Layer vectors = host.layer("embedding", {host.data(ids)}, {{"vocabulary", 20}, {"size", 6}}, "vectors");
  const ScanResult scanned = scan({vectors}, [&](Step& step) {
    const Layer state = step.memory({5}, 0, "state", true);
    step.next(state, host.layer("fc", {step.input(0), state}, {{"size", 5}, {"act", "tanh"}}, "next"));
    return Layers{state};
  });
  const Layer scores = host.layer("fc", {scanned.last[0]}, {{"size", 4}}, "scores");
  return {host.layer("cross_entropy", {scores, host.data(integers("label", 4))}, {{"from_logits", true}}, "cost")};
}

TEST(Team, DenseModelsHaveTheBitsOfOneProcess) { expect_bits_of_one({dense}); }

TEST(Team, RowSparseGradientsAndSequencesHaveTheBitsOfOneProcess) { expect_bits_of_one({sequences}); }

TEST(Team, SkippedStepsHaveTheBitsOfOneProcess) { expect_bits_of_one({dense, 8, TN_BF16, {{"learning_rate", 1e30}}}); }

TEST(Team, MoreShardsThanSamplesHaveTheBitsOfOneProcess) { expect_bits_of_one({dense, 9}); }

TEST(Team, TestsAndAveragesHaveTheBitsOfOneProcess) {
  Job job{dense};
  job.change = [](TrainOptions& options, const Host& host, int64_t) {
    options.test = TestOptions{host.reader(schema(), Samples()).batch(5), {}, {}, 0, 2};
    options.average.emplace();
    options.average->parameters = host.parameters(options.outputs, 1);
    options.early_stop.emplace();
    options.early_stop->patience = 3;
    options.early_stop->min_delta = 1e9;
  };
  expect_bits_of_one(job);
}

TEST(Team, Process0DecidesForAll) {
  Job job{dense};
  job.change = [](TrainOptions& options, const Host&, int64_t rank) {
    options.handler = [rank, seen = 0](Event& event) mutable {
      EXPECT_EQ(rank, 0);
      if (event.kind() != TN_END_ITERATION) return;
      event.set_learning_rate(0.05);
      if (++seen == 5) event.stop();
    };
  };
  const Outcome one = alone(job);
  for (const Outcome& each : together(job, 3, disordered(1))) {
    EXPECT_EQ(each.error, "");
    EXPECT_TRUE(each.model == one.model);
  }
}

TEST(Team, OneProcessWritesCheckpointsFromWhichAnyNumberResumes) {
  Job job{dense};
  const Outcome whole = alone(job);
  const TemporaryFolder folder;
  const auto checkpointed = [&](const std::string& name, uint32_t start) {
    job.change = [path = folder.file(name), start](TrainOptions& options, const Host&, int64_t) {
      options.checkpoint.emplace();
      options.checkpoint->folder = path;
      options.checkpoint->every_batches = 1;
      options.checkpoint->keep = 100;
      options.checkpoint->start = start;
      if (start == TN_START_FRESH)
        options.handler = [seen = 0](Event& event) mutable {
          if (event.kind() == TN_END_ITERATION && ++seen == 5) event.stop();
        };
    };
  };
  checkpointed("one", TN_START_FRESH);
  alone(job);
  checkpointed("four", TN_START_FRESH);
  together(job, 4, disordered(2));
  const std::string one = content(folder.file("one/checkpoint-1-1.safetensors"));
  const std::string four = content(folder.file("four/checkpoint-1-1.safetensors"));
  ASSERT_EQ(four.size(), one.size());
  size_t different = 0;
  for (size_t i = 0; i < one.size(); ++i) different += one[i] != four[i];
  EXPECT_LE(different, sizeof(double) + 32) << "the seconds of the pass so far, and the digest of the file in hex";
  checkpointed("four", TN_START_RESUME);
  for (const Outcome& each : together(job, 3, disordered(3))) {
    EXPECT_EQ(each.error, "");
    EXPECT_TRUE(each.model == whole.model);
  }
}

// The samples, of which number 11, of process 1 of two, is there when the test says so.
struct HeldSamples {
  std::shared_ptr<std::atomic<bool>> released;
  [[nodiscard]] static int64_t size() { return Samples::size(); }
  void read(int64_t index, Sample& sample) const {
    for (int i = 0; index == 11 && !*released && i < 30'000; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Samples::read(index, sample);
  }
};

// Process 0 does 2 steps of minibatches of 4 samples, then waits for process 1, which has no third one.
TEST(Team, AnyThreadSeesTheStepAndForWhomAProcessWaits) {
  const auto released = std::make_shared<std::atomic<bool>>(false);
  std::thread observer;
  tn_team_info seen = {};
  Job job{dense, 2};
  job.change = [&](TrainOptions& options, const Host& host, int64_t rank) {
    options.reader = host.reader(schema(), Samples()).batch(4);
    if (rank == 1) options.reader = host.reader(schema(), HeldSamples{released}).batch(4);
    if (rank == 1) return;
    EXPECT_EQ(options.team.info().step, -1) << "no training has begun";
    observer = std::thread([&seen, released, team = options.team] {
      for (int i = 0; i < 30'000 && (seen.step != 2 || seen.waits_for != 1); ++i) {
        seen = team.info();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      *released = true;
    });
  };
  const std::vector<Outcome> all = together(job, 2, {});
  observer.join();
  EXPECT_EQ(seen.step, 2) << "samples 0 to 7";
  EXPECT_EQ(seen.waits_for, 1);
  EXPECT_EQ(all[0].error, "");
  EXPECT_EQ(all[0].step_in_the_end, -1);
}

TEST(Team, StepsOfATeamOfOneGoOnAfterAResume) {
  const TemporaryFolder folder;
  std::vector<int64_t> steps;
  Job job{dense};
  const auto train = [&](uint32_t start, int64_t passes) {
    job.change = [&, start, passes](TrainOptions& options, const Host&, int64_t) {
      options.passes = passes;
      options.checkpoint.emplace();
      options.checkpoint->folder = folder.file("ck");
      options.checkpoint->start = start;
      options.handler = [&steps, team = options.team](Event& event) {
        if (event.kind() == TN_END_ITERATION) steps.push_back(team.info().step);
      };
    };
    for (const Outcome& each : together(job, 1, {})) EXPECT_EQ(each.error, "");
  };
  train(TN_START_FRESH, 1);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4));
  train(TN_START_RESUME, 2);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

// ---- what goes wrong

TEST(Team, AnotherJobIsRefusedByAll) {
  Job job{dense};
  job.change = [](TrainOptions& options, const Host&, int64_t rank) {
    if (rank == 1) options.passes = 3;
  };
  for (const Outcome& each : together(job, 3, {}))
    EXPECT_THAT(each.error, HasSubstr("process 1 has another job, or another place in it, than process 0"));
}

// Copies the folder of plugins, by links but for one, which has a byte more.
void copy_plugins(const std::string& to, const std::string& changed) {
  namespace fs = std::filesystem;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(plugin_folder())) {
    const fs::path inner = fs::path(entry.path()).lexically_relative(plugin_folder()), copy = fs::path(to) / inner;
    if (entry.is_directory()) {
      fs::create_directories(copy);
    } else if (inner == changed) {
      fs::copy_file(entry.path(), copy);
      std::ofstream(copy, std::ios::app) << ' ';
    } else if (entry.path().extension() == ".so") {
      fs::create_symlink(entry.path(), copy);
    }
  }
}

TEST(Team, OtherFilesOfPluginsAreRefusedByAll) {
  const TemporaryFolder folder;
  Job job{dense};
  job.plugins_of_last = folder.file("plugins");
  std::filesystem::create_directory(job.plugins_of_last);
  copy_plugins(job.plugins_of_last, "layers/crf.so");  // is not used
  for (const Outcome& each : together(job, 3, {})) EXPECT_EQ(each.error, "");
  std::filesystem::remove_all(job.plugins_of_last);
  std::filesystem::create_directory(job.plugins_of_last);
  copy_plugins(job.plugins_of_last, "layers/fc.so");
  for (const Outcome& each : together(job, 3, {}))
    EXPECT_THAT(each.error, HasSubstr("process 2 has another plugin tenon.fc than process 0"));
}

TEST(Team, OtherValuesAreRefusedByAll) {
  Job job{dense};
  job.change = [](TrainOptions& options, const Host& host, int64_t rank) {
    if (rank == 2) options.parameters = host.parameters(options.outputs, 2);
  };
  for (const Outcome& each : together(job, 3, {}))
    EXPECT_THAT(each.error, HasSubstr("process 2 has other values of parameters than process 0"));
}

// Sets all values to the number of the step; in a process that drifts to another one, for one parameter, from step 5
// on.
class Drifting final : public UpdateRule {
 public:
  Drifting(Parameters parameters, bool drifts) : parameters_(std::move(parameters)), drifts_(drifts) {}
  void update(const RuleStep& step) override {
    std::vector<std::vector<float>> values;
    std::vector<ParameterValues> list;
    for (const std::string& name : step.names) {
      Array array = parameters_.get(name);
      size_t count = 1;
      for (const int64_t extent : array.shape) count *= static_cast<size_t>(extent);
      const bool odd = drifts_ && step.number >= 5 && name == "scores.bias";
      values.emplace_back(count, static_cast<float>(step.number) + (odd ? 0.5F : 0.0F));
      array.data = values.back().data();
      list.push_back({name, array});
    }
    commit(step.machine, list);
  }

 private:
  Parameters parameters_;
  bool drifts_;
};

TEST(Team, ADriftEndsTheTrainingNamingTheParameter) {
  Job job{dense};
  bool drifts = false;
  job.change = [&drifts](TrainOptions& options, const Host&, int64_t rank) {
    options.verify_every = 3;
    options.updater =
        updater_of(options.parameters, "drifting", std::make_shared<Drifting>(options.parameters, drifts && rank == 1));
  };
  for (const Outcome& each : together(job, 2, {})) EXPECT_EQ(each.error, "");
  drifts = true;
  for (const Outcome& each : together(job, 2, {}))
    EXPECT_THAT(each.error, HasSubstr("the values of \"scores.bias\" in process 1 are not those of process 0 after 6 "
                                      "updates"));
}

TEST(Team, CarriedStatesAreOfOneProcess) {
  const Job job{carrying, 2};
  const Outcome one = alone(job);
  EXPECT_EQ(one.error, "");
  const std::vector<Outcome> same = together(job, 1, {});
  EXPECT_EQ(same[0].error, "");
  EXPECT_TRUE(same[0].model == one.model);
  for (const Outcome& each : together(job, 2, {}))
    EXPECT_THAT(each.error, HasSubstr("states that are carried to the next minibatch are of one process; 2 train"));
}

TEST(Team, FewerShardsThanProcessesAreRefused) {
  for (const Outcome& each : together({dense, 2}, 3, {}))
    EXPECT_THAT(each.error, HasSubstr("shards is 2, fewer than the devices, \"cpu:0\", of 3 processes"));
}

// The identity, of which a backward waits until something has happened.
struct Waiting {
  static void describe(tn::LayerDescription& d) {
    d.type("waiting", "its input");
    d.input("in", "[samples, ...]");
    d.output("out", "the shape of in");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
  static void lower(const tn::Attributes&, tn::Builder& body) { body.output(0, body.input(0)); }
  static inline std::function<void()> wait;
};
class WaitingKernel {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("waiting", "cpu", "waiting", 10); }
  WaitingKernel(const tn::KernelSite&, int32_t direction) : backward_(direction == TN_BACKWARD) {}
  // forward: in -> out; backward: -, -, dout -> din
  void run(const tn::Call& call) const {
    if (backward_) Waiting::wait();
    const auto* const from = call.in<float>(backward_ ? 2 : 0);
    std::copy_n(from, tn_elements(call.output(0)), call.out<float>(0));
  }

 private:
  bool backward_;
};
void describe_waiting(tn::Plugin& plugin) {
  plugin.about("tenon.test.waiting", "1.0.0", "a layer of the tests", "Apache-2.0");
  plugin.layer<Waiting>();
  plugin.kernel<WaitingKernel>();
}

// Two layers with a chunk of gradients each; between them the one that waits.
Layers waiting(const Host& host) {
  host.add_plugin(tn::entry<describe_waiting>());
  const Layer early = host.layer("fc", {host.data(floats("x", {8}))}, {{"size", 512}, {"act", "tanh"}}, "early");
  const Layer scores = host.layer("fc", {host.layer("waiting", {early})}, {{"size", 4}}, "late");
  return {host.layer("cross_entropy", {scores, host.data(integers("label", 4))}, {{"from_logits", true}}, "cost")};
}

// The gradients of the late layer go to the other process while those of the early one are computed. With several
// shards a process, only those of its last shard are waited for.
TEST(Team, GradientsTravelDuringTheBackward) {
  for (const uint32_t shards : {2U, 4U}) {
    constexpr uint32_t kChannelOfLate = 2;
    std::atomic<uint64_t> backwards{0}, missed{0};
    const LoopWorld world(2);
    Job job{waiting, shards, TN_F32, {}, 1};
    job.change = [](TrainOptions& options, const Host&, int64_t) { options.pass_batches = 3; };  // of 4 samples
    std::vector<Outcome> outcomes(2);
    Waiting::wait = [&] {
      const uint64_t number = ++backwards, of_a_step = shards;
      if (number % of_a_step != 0) return;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (world.sent(kChannelOfLate) < 2 * (number / of_a_step) && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
      if (std::chrono::steady_clock::now() >= end) ++missed;
    };
    std::vector<std::thread> started;
    for (int32_t rank = 0; rank < 2; ++rank)
      started.emplace_back([&, rank] {
        Process process(job, 1);
        process.join(world, rank, 2);
        outcomes[static_cast<size_t>(rank)] = process.train();
      });
    for (std::thread& each : started) each.join();
    EXPECT_EQ(missed, 0U) << shards << " shards";
    Waiting::wait = [] {};
    const Outcome one = alone(job);
    for (const Outcome& each : outcomes) {
      EXPECT_EQ(each.error, "");
      EXPECT_TRUE(each.model == one.model);
    }
  }
}

TEST(Team, LostProcessesAreNamed) {
  LoopScript script;
  script.faults = {{LoopFault::Kind::kLose, 1, 60, {}}};
  const std::vector<Outcome> all = together({dense, 7, TN_F32, {}, 100}, 3, script);
  EXPECT_THAT(all[0].error, HasSubstr("process 1 is lost"));
  EXPECT_THAT(all[2].error, HasSubstr("process 1 is lost"));
  EXPECT_NE(all[1].error, "");
}

}  // namespace

}  // namespace tenon_tests
