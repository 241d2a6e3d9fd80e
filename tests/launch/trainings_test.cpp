// Real trainings by several processes, of which one is lost: the model is that of one process, byte for byte.
// SPDX-License-Identifier: Apache-2.0
#include "tests/launch/launch.h"

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
  [[nodiscard]] bool has_checkpoint() const {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(path("ck"), none))
      if (entry.path().filename().string().rfind("checkpoint-", 0) == 0) return true;
    return false;
  }
  // Returns the process with this number of the training in the folder of the test; 0 without it.
  [[nodiscard]] pid_t process(const std::string& rank) const {
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
      std::error_code gone;
      const fs::path folder = fs::read_symlink(entry.path() / "cwd", gone);
      if (gone || folder != fs::path(path(".")).parent_path().lexically_normal()) continue;
      std::ifstream file(entry.path() / "environ", std::ios::binary);
      for (std::string variable; std::getline(file, variable, '\0');)
        if (variable == "TENON_TEAM_RANK=" + rank) return std::atoi(entry.path().filename().c_str());
    }
    return 0;
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

TEST_F(LaunchTrainings, MistakesOfTheJobAreSaidOnce) {
  const Outcome outcome = launch("--processes 5 --threads 1");
  EXPECT_GE(outcome.exit, 64);
  EXPECT_LE(outcome.exit, 78) << "more processes than the 4 shards: " << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("shards"));
}

}  // namespace

}  // namespace tenon_tests
