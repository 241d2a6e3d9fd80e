// Real trainings by several processes, of which one is lost: the model is that of one process, byte for byte.
// SPDX-License-Identifier: Apache-2.0
#include "launch/node/lease.h"
#include "tests/launch/launch.h"
#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LaunchTrainings : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    unsetenv("TENON_PROGRAM");
    std::string text = job();
    text.replace(text.find("passes = 4"), 10, "passes = 150\nshards = 4");
    text.replace(text.find("size = 8\n"), 9, "size = 8\ndrop_rate = 0.25\n");
    write("job.toml", text + "\n[checkpoint]\nfolder = \"ck\"\nevery_batches = 20\n");
    EXPECT_EQ(run("train job.toml --set save=one.safetensors --set checkpoint.folder=one --threads 1").exit, 0);
    EXPECT_NE(read("one.safetensors"), "");
  }
  // Returns the names of the checkpoints that are whole.
  [[nodiscard]] std::set<std::string> checkpoints() const {
    std::set<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(path("ck")))
      if (entry.path().filename().string().starts_with("checkpoint-")) names.insert(entry.path().filename().string());
    return names;
  }
  // Returns the state of a process as /proc has it: 'T' for one that is stopped.
  static char state_of(pid_t id) {
    std::ifstream file("/proc/" + std::to_string(id) + "/stat");
    std::string number, name;
    char state = 0;
    file >> number >> name >> state;
    return state;
  }
  // Trains with three processes, one of which gets a signal after the first checkpoint.
  void expect_same_model(const std::string& rank, int signal, const std::string& reason) {
    fs::remove_all(path("ck"));
    fs::remove(path("model.safetensors"));
    Child child = begin("--processes 3 --threads 1");
    ASSERT_TRUE(comes([&] { return has_checkpoint() || child.has_ended(); }));
    ASSERT_FALSE(child.has_ended()) << read("output");
    const pid_t lost = process(rank);
    ASSERT_GT(lost, 0);
    kill(lost, signal);
    EXPECT_EQ(exit_of(child), 0) << read("output");
    EXPECT_THAT(read("output"), HasSubstr("tenon: process " + rank + " " + reason));
    EXPECT_TRUE(read("model.safetensors") == read("one.safetensors")) << read("output");
    EXPECT_FALSE(is_alive(lost));
    EXPECT_EQ(epoch().at("epoch"), 2) << read("output");
  }
};

TEST_F(LaunchTrainings, AnUndisturbedOne) {
  for (const char* const processes : {"1", "2"}) {
    fs::remove_all(path("ck"));
    fs::remove(path("model.safetensors"));
    const Outcome outcome = run(std::string("train job.toml --threads 1 --processes ") + processes);
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    EXPECT_TRUE(read("model.safetensors") == read("one.safetensors")) << processes;
    EXPECT_THAT(outcome.out, HasSubstr("pass 150/150"));
  }
}

TEST_F(LaunchTrainings, AKilledProcess) {
  expect_same_model("1", SIGKILL, "was ended by signal 9");
  expect_same_model("0", SIGKILL, "was ended by signal 9");
}

TEST_F(LaunchTrainings, AStoppedProcess) { expect_same_model("2", SIGSTOP, "has said nothing for"); }

TEST_F(LaunchTrainings, AnInterruptedOneGoesOn) {
  Child child = begin("--processes 2 --threads 1");
  ASSERT_TRUE(comes([&] { return has_checkpoint(); })) << read("output");
  child.send(SIGINT);
  EXPECT_EQ(exit_of(child), 130) << read("output");
  EXPECT_FALSE(fs::exists(path("model.safetensors")));
  const Outcome outcome = launch("--processes 3 --threads 1 --resume");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_TRUE(read("model.safetensors") == read("one.safetensors"));
}

// As a process whose machine was cut off: another machine takes the lease, and starts the training again.
TEST_F(LaunchTrainings, AProcessOfAnOlderStartWritesNothing) {
  const tenon::launch::Holder first = {path("job.toml"), "node7", 1, "2026-11-29 14:02:11 UTC"};
  { (void)tenon::launch::Lease(path("ck"), first, 0).begin_epoch(); }
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"RANK", "0"}, {"PROCESSES", "1"}, {"COMM", "zmq"}, {"ADDRESS", "ipc://" + path("team")}, {"EPOCH", "1"}})
    setenv(("TENON_TEAM_" + name).c_str(), value.c_str(), 1);
  Child child([&] {
    become({"/bin/sh", "-c",
            "cd '" + path(".") + "' && exec '" + std::string(program()) +
                "' train job.toml --threads 1 >output 2>&1 </dev/null"});
  });
  for (const char* const name : {"RANK", "PROCESSES", "COMM", "ADDRESS", "EPOCH"})
    unsetenv((std::string("TENON_TEAM_") + name).c_str());
  ASSERT_TRUE(comes([&] { return has_checkpoint() || child.has_ended(); }));
  child.send(SIGSTOP);
  ASSERT_TRUE(comes([&] { return state_of(child.id()) == 'T' || child.has_ended(); }));
  ASSERT_FALSE(child.has_ended()) << read("output");
  const std::set<std::string> before = checkpoints();
  {
    tenon::launch::Lease lease(path("ck"), {path("job.toml"), "node8", 2, "2026-11-29 14:03:00 UTC"}, 0);
    EXPECT_EQ(lease.begin_epoch(), 2U);
    child.send(SIGCONT);
    EXPECT_EQ(exit_of(child), 77) << read("output");
    EXPECT_EQ(epoch().at("epoch"), 2);
  }
  EXPECT_THAT(read("output"), HasSubstr("the training was started again, as epoch 2; this process is of epoch 1, "
                                        "which may not write checkpoints any more"));
  // It may have been about to remove one.
  EXPECT_THAT(before, testing::IsSupersetOf(checkpoints())) << "a checkpoint was written";
  for (const char* const model : {"model.safetensors", "model.safetensors.partial"})
    EXPECT_FALSE(fs::exists(path(model))) << model;
}

TEST_F(LaunchTrainings, APluginThatNeverReturnsIsNamedWithItsProcess) {
  ASSERT_EQ(shell("mkdir plugins && cp '" + test_plugin_folder() + "/layers/ends.so' plugins/").exit, 0);
  std::string text = job();
  const std::string score = "[[layer]]\nname = \"score\"\ntype = \"fc\"\ninputs = [\"hidden\"]";
  ASSERT_NE(text.find(score), std::string::npos);
  text.replace(text.find(score), score.size(),
               "[[layer]]\nname = \"odd\"\ninputs = [\"hidden\"]\ntype = \"test_ends\"\nin = \"run\"\n" +
                   score.substr(0, score.find("hidden")) + "odd\"]");
  write("job.toml", text);
  const Outcome outcome = launch("--processes 2 --threads 1 --plugins plugins --stall 8");
  EXPECT_EQ(outcome.exit, 201) << outcome.error;
  EXPECT_THAT(outcome.error,
              testing::ContainsRegex("process 1 is stuck: step 0, phase train, layer \"odd\" .* of plugin "
                                     "\"tenon.test.ends\": run .* for .* s; process 0 waits for it"));
}

TEST_F(LaunchTrainings, MistakesOfTheJobAreSaidOnce) {
  const Outcome outcome = launch("--processes 5 --threads 1");
  EXPECT_GE(outcome.exit, 64);
  EXPECT_LE(outcome.exit, 78) << "more processes than the 4 shards: " << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("shards"));
}

}  // namespace

}  // namespace tenon_tests
