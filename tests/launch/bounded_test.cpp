// Jobs of the bounded mode, whose trainers may be lost. SPDX-License-Identifier: Apache-2.0
#include "tests/launch/launch.h"
#include "tests/launch/table_job.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class LaunchBounded : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    unsetenv("TENON_PROGRAM");
    write("data.csv", table_data());
    write("job.toml",
          table_job("passes = 120\nstaleness = 3\n") + "[checkpoint]\nfolder = \"ck\"\nevery_batches = 20\n");
  }
  void expect_a_trained_model(Child& child) {
    EXPECT_THAT(read("output"), HasSubstr("saved model.safetensors"));
    EXPECT_TRUE(fs::exists(path("model.safetensors")));
    EXPECT_TRUE(fs::exists(path("ck/checkpoint-120-0.safetensors")));
    EXPECT_TRUE(child.has_ended());
  }
  void wait_for_checkpoint(Child& child) {
    ASSERT_TRUE(comes([&] { return fs::exists(path("ck/checkpoint-2-4.safetensors")) || child.has_ended(); }));
    ASSERT_FALSE(child.has_ended()) << read("output");
  }
};

TEST_F(LaunchBounded, AKilledTrainerIsStartedAgainWhileTheOthersGoOn) {
  Child child = begin("--processes 3 --servers 2");
  wait_for_checkpoint(child);
  send("1", SIGKILL);
  EXPECT_EQ(exit_of(child), 0) << read("output");
  expect_a_trained_model(child);
  EXPECT_THAT(read("output"), AllOf(HasSubstr("processes 1 and 2 train, processes 3 and 4 serve parameters"),
                                    HasSubstr("process 1 was ended by signal 9"),
                                    HasSubstr("the training goes on without it, and starts it again (restart 1"),
                                    Not(HasSubstr("from its last checkpoint"))));
}

TEST_F(LaunchBounded, BeforeTheTeamIsThereAllBeginAgain) {
  write("job.toml", table_job("passes = 20\nstaleness = 3\n"));
  Child child = begin("--processes 3 --servers 2");
  pid_t trainer = 0;
  ASSERT_TRUE(comes([&] { return (trainer = process("1")) != 0; }));
  kill(trainer, SIGKILL);
  ASSERT_TRUE(comes([&] { return read("output").find("restart 1") != std::string::npos; }));
  ASSERT_TRUE(comes([&] { return (trainer = process("1")) != 0; }));
  kill(trainer, SIGKILL);
  EXPECT_EQ(exit_of(child), 0) << read("output");
  EXPECT_THAT(read("output"),
              AllOf(HasSubstr("saved model.safetensors"),
                    ContainsRegex("process 1 was ended by signal 9 .Killed. at step 0.*; the training starts again "
                                  "\\(restart 2 of at most 20\\)"),
                    Not(HasSubstr("goes on without it"))));
}

TEST_F(LaunchBounded, WithoutRestartsItGoesOnWithWhatIsLeft) {
  Child child = begin("--processes 3 --servers 1 --restarts 0");
  wait_for_checkpoint(child);
  send("2", SIGKILL);
  send("1", SIGSTOP);
  EXPECT_EQ(exit_of(child), 0) << read("output");
  expect_a_trained_model(child);
  EXPECT_THAT(read("output"), AllOf(HasSubstr("process 2 was ended by signal 9"),
                                    HasSubstr("process 1 has said nothing for"), Not(HasSubstr("starts it again"))));
}

TEST_F(LaunchBounded, WithAServerOrProcess0AllBeginAgainFromTheCheckpoint) {
  for (const char* const rank : {"2", "0"}) {
    fs::remove_all(path("ck"));
    Child child = begin("--processes 2 --servers 1");
    wait_for_checkpoint(child);
    send(rank, SIGKILL);
    EXPECT_EQ(exit_of(child), 0) << read("output");
    expect_a_trained_model(child);
    EXPECT_THAT(read("output"), AllOf(HasSubstr(std::string("process ") + rank + " was ended by signal 9"),
                                      HasSubstr("the training starts again from its last checkpoint (restart 1")));
  }
}

TEST_F(LaunchBounded, MistakesAreNamed) {
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = run("train job.toml " + arguments);
    EXPECT_GE(outcome.exit, 64) << arguments;
    EXPECT_LE(outcome.exit, 78) << arguments;
    EXPECT_THAT(outcome.error, HasSubstr(why));
  };
  refused("--processes 2", "staleness is 3: in the bounded mode servers have the parameters, and the team has none");
  refused("--processes 2 --servers 1 --set pass_batches=4", "staleness: pass_batches needs a pass of the training");
  refused("--processes 2 --servers 1 --set tables=[] --set average={decay=0.9}",
          "staleness: averages of parameters need each step");
  refused("--processes 2 --servers 1 --set compute=bf16", "computes in");
  refused("--set staleness=-1", "staleness");
}

}  // namespace

}  // namespace tenon_tests
