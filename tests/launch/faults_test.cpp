// Processes on this machine, their ends of every kind, and what the launcher makes of them: counts and order, not
// times. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/usable_cores.h"
#include "tests/launch/launch.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

using LaunchFaults = LaunchTest;

TEST_F(LaunchFaults, StartsEachProcessWithItsPlaceInTheTeam) {
  const Outcome outcome = launch("--processes 3 --comm loop --threads 1 --set updater.learning_rate=0.5");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "trained to the end\n") << "of process 0 alone";
  EXPECT_THAT(outcome.error,
              AllOf(HasSubstr("process 0 trains, tests, reports and saves, processes 1 and 2 train; epoch 1"),
                    HasSubstr("3 shards of a minibatch, one for each process; shards = 3 in the job")));
  const std::vector<json> starts = notes("start");
  ASSERT_EQ(starts.size(), 3U);
  std::set<std::string> ranks;
  for (const json& start : starts) {
    ranks.insert(start.at("rank"));
    EXPECT_EQ(start.at("processes"), "3");
    EXPECT_EQ(start.at("comm"), "loop");
    EXPECT_EQ(start.at("epoch"), "1");
    EXPECT_EQ(start.at("secret_bytes"), 32);
    EXPECT_EQ(start.at("address"), starts[0].at("address"));
    EXPECT_EQ(start.at("words"),
              json({"train", "job.toml", "--threads=1", "--set=updater.learning_rate=0.5", "--set=shards=3"}));
  }
  EXPECT_EQ(ranks, (std::set<std::string>{"0", "1", "2"}));
  const std::string address = starts[0].at("address");
  ASSERT_THAT(address, testing::StartsWith("ipc:///"));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(address.substr(6)).parent_path())) << "is removed";
  EXPECT_EQ(epoch().at("epoch"), 1);
  EXPECT_EQ(epoch().at("ended"), true);
}

TEST_F(LaunchFaults, DividesTheCores) {
  (void)launched("--processes 8 --set shards=8 --quiet");
  const std::vector<json> starts = notes("start");
  ASSERT_EQ(starts.size(), 8U);
  const int32_t threads = std::max(1, tenon::base::usable_cores().count / 8);
  EXPECT_EQ(starts[0].at("words"),
            json({"train", "job.toml", "--set=shards=8", "--quiet", "--threads=" + std::to_string(threads)}));
}

TEST_F(LaunchFaults, AKilledProcessIsStartedAgainWithTheOthers) {
  actions("1@1 kill 3");
  const std::string error = launched("--processes 2");
  EXPECT_THAT(error, HasSubstr("tenon: process 1 was ended by signal 9 (Killed) at step"));
  EXPECT_THAT(error, HasSubstr("(restart 1 of at most 20)"));
  ASSERT_EQ(notes("start").size(), 4U);
  EXPECT_THAT(words(0), Not(Contains("--resume")));
  EXPECT_THAT(words(2), Contains("--resume"));
  EXPECT_THAT(words(3), Contains("--resume"));
  EXPECT_EQ(notes("start")[2].at("epoch"), "2");
  EXPECT_EQ(epoch().at("epoch"), 2);
  for (const json& stop : notes("stop")) EXPECT_THAT(stop.at("reason"), HasSubstr("process 1 was ended by signal 9"));
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchFaults, EveryKindOfEnd) {
  actions("0@1 crash 2;1@2 exit 1 2;0@3 exit 0 2;1@4 exit 200 2");
  steps(30);
  setenv("TEST_CHECKPOINTS", "", 1);
  const std::string error = launched("--processes 2");
  EXPECT_THAT(error, AllOf(HasSubstr("process 0 was ended by signal 6 (Aborted)"),
                           HasSubstr("process 1 has ended with exit code 1 at step"),
                           HasSubstr("process 0 has ended with exit code 0 at step"),
                           HasSubstr("process 1 has ended with exit code 200 at step"), HasSubstr("restart 4 of")));
  EXPECT_EQ(notes("start").size(), 10U);
}

TEST_F(LaunchFaults, AProcessThatLostAnotherIsNotTheCause) {
  actions("0@1 exit 200 3;1@1 kill 6");
  steps(20);
  const std::string error = launched("--processes 2");
  EXPECT_THAT(error, AllOf(HasSubstr("process 1 was ended by signal 9"), Not(HasSubstr("exit code 200"))));
}

TEST_F(LaunchFaults, AStoppedProcessIsSilent) {
  actions("1@1 stop 3");
  steps(400);
  setenv("TEST_CHECKPOINTS", "", 1);
  Child child = begin("--processes 2");
  ASSERT_TRUE(comes([&] { return notes("start").size() == 4; })) << read("output");
  EXPECT_THAT(read("output"), HasSubstr("process 1 has said nothing for"));
  EXPECT_FALSE(is_alive(notes("start")[0].at("pid")));
  EXPECT_FALSE(is_alive(notes("start")[1].at("pid"))) << "although it was stopped";
  child.send(SIGTERM);
  EXPECT_EQ(exit_of(child), 128 + SIGTERM) << read("output");
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchFaults, AStoppedAgentIsEndedSoon) {
  steps(400);
  setenv("TEST_CHECKPOINTS", "", 1);
  Child child = begin("--processes 2");
  ASSERT_TRUE(comes([&] { return notes("start").size() == 2; })) << read("output");
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // each has said something
  const pid_t agent = parent_of(notes("start")[0].at("pid"));
  const auto began = std::chrono::steady_clock::now();
  kill(agent, SIGSTOP);
  ASSERT_TRUE(comes([&] { return notes("start").size() == 4; })) << read("output");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15)) << "1.5 s of silence, then 3 and 3";
  EXPECT_FALSE(is_alive(agent)) << "although it was stopped";
  child.send(SIGTERM);
  EXPECT_EQ(exit_of(child), 128 + SIGTERM) << read("output");
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchFaults, AStuckProcessIsNamedWithItsStepAndLayer) {
  actions("1@* hang 3");
  steps(4);
  setenv("TEST_CHECKPOINTS", "", 1);
  const Outcome outcome = launch("--processes 2 --stall 1");
  EXPECT_EQ(outcome.exit, 70) << "the second time at the same step";
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("process 1 is stuck: step 3, phase train, layer hidden for"),
                                   HasSubstr("as before the training was started again"), HasSubstr("restart 1 of"),
                                   Not(HasSubstr("restart 2 of"))));
  EXPECT_EQ(notes("start").size(), 4U);
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchFaults, AProcessThatHangsAloneIsNamedAndNotThoseThatWaitForIt) {
  actions("2@* hang 4;0@* wait 1 3;1@* wait 2 3");
  steps(5);
  setenv("TEST_CHECKPOINTS", "", 1);
  const Outcome outcome = launch("--processes 3 --stall 1");
  EXPECT_EQ(outcome.exit, 70);
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("process 2 is stuck: step 4, phase train, layer hidden for"),
                                   HasSubstr("; process 1 waits for it"), Not(HasSubstr("process 0 is stuck"))));
}

TEST_F(LaunchFaults, ProcessesThatAllWaitAreNamedAsSuch) {
  actions("0@* wait 1 3;1@* wait 0 3");
  setenv("TEST_CHECKPOINTS", "", 1);
  const Outcome outcome = launch("--processes 2 --stall 1 --restarts 0");
  EXPECT_EQ(outcome.exit, 201);
  EXPECT_THAT(outcome.error, testing::ContainsRegex("process [01] is stuck: step 3, phase train for .*; it waits for "
                                                    "process [01], as all wait for one another"));
}

TEST_F(LaunchFaults, PermanentExitCodesAreNotStartedAgain) {
  for (const int code : {64, 74, 78}) {
    write("log", "");
    actions("1@* done " + std::to_string(code) + " 2;1@* exit " + std::to_string(code) + " 2");
    const Outcome outcome = launch("--processes 3 --resume");
    EXPECT_EQ(outcome.exit, code);
    EXPECT_THAT(outcome.error, HasSubstr("process 1 has ended with exit code " + std::to_string(code)));
    EXPECT_EQ(notes("start").size(), 3U) << code;
    std::filesystem::remove_all(path("ck"));
  }
}

TEST_F(LaunchFaults, RestartsAreLimited) {
  actions("0@* kill 2");
  setenv("TEST_CHECKPOINTS", "", 1);
  const Outcome outcome = launch("--processes 1 --restarts 2");
  EXPECT_EQ(outcome.exit, 200);
  EXPECT_THAT(outcome.error, HasSubstr("process 0 was ended by signal 9 (Killed) at step"));
  EXPECT_THAT(outcome.error, HasSubstr("it was started again 2 times already (--restarts)"));
  EXPECT_EQ(notes("start").size(), 3U);
}

TEST_F(LaunchFaults, WithoutCheckpointsNothingIsStartedAgain) {
  write_job("");
  actions("1@1 kill 2");
  const Outcome outcome = launch("--processes 2");
  EXPECT_EQ(outcome.exit, 200);
  EXPECT_THAT(outcome.error, HasSubstr("it cannot be started again, since the job has no table [checkpoint]"));
  EXPECT_FALSE(std::filesystem::exists(path("ck")));
}

TEST_F(LaunchFaults, ACheckpointThatIsResumedFromIsReplacedByNewerOnes) {
  std::filesystem::create_directory(path("ck"));
  write("ck/checkpoint-0-1.safetensors", "1");
  actions("0@1 kill 2;0@2 kill 4");
  (void)launched("--processes 1 --resume-from ck/checkpoint-0-1.safetensors");
  ASSERT_EQ(notes("start").size(), 3U);
  EXPECT_THAT(words(0), Contains("--resume-from=ck/checkpoint-0-1.safetensors"));
  EXPECT_THAT(words(1), Contains("--resume-from=ck/checkpoint-0-1.safetensors")) << "there is no newer one";
  EXPECT_THAT(words(2), Contains("--resume-from=" + path("ck/checkpoint-0-3.safetensors")));
}

TEST_F(LaunchFaults, AJobThatHasChangedIsNotStartedAgain) {
  write("more.toml", "[average]\ndecay = 0.9\n");
  write("job.toml", "include.files = \"more.toml\"\n" + job() + "\n[checkpoint]\nfolder = \"ck\"\n");
  actions("1@1 stop 2");
  Child child = begin("--processes 2");
  ASSERT_TRUE(comes([&] { return notes("start").size() == 2; }));
  write("more.toml", "[average]\ndecay = 0.8\n");
  EXPECT_EQ(exit_of(child), 78);
  EXPECT_THAT(read("output"), HasSubstr(path("more.toml") + " has changed since the training was started"));
  EXPECT_EQ(notes("start").size(), 2U);
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchFaults, NothingOutlivesAProcess) {
  actions("1@1 child 2;0@1 kill 4");
  (void)launched("--processes 2");
  ASSERT_EQ(notes("child").size(), 1U);
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchFaults, AProcessThatIsDoneMayHangInTheEnd) {
  actions("1@1 linger 3");
  const std::string error = launched("--processes 2");
  EXPECT_THAT(error, Not(HasSubstr("restart")));
  EXPECT_EQ(notes("start").size(), 2U);
  EXPECT_TRUE(none_left());
}

TEST_F(LaunchFaults, WarningsOfAllOnceAndTheOutputOfTheFirst) {
  actions("*@* print 2;1@* print 3");
  const Outcome outcome = launch("--processes 3");
  size_t said = 0;
  for (size_t at = 0; (at = outcome.error.find("warning: step 2", at)) != std::string::npos; ++at) ++said;
  EXPECT_EQ(said, 1U) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("[process 1] warning: step 3\n"));
}

TEST_F(LaunchFaults, AnOutputThatIsNotReadHoldsTheProcesses) {
  actions("0@1 flood 2");
  const Outcome outcome = shell("'" + launcher() + "' job.toml --processes 2 --stall 1 | { sleep 3; cat >text; }");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_THAT(outcome.error, Not(HasSubstr("restart"))) << "they were neither silent nor stuck";
  EXPECT_THAT(read("text"), AllOf(HasSubstr("line 0 of"), HasSubstr("line 39999 of"), HasSubstr("trained to the end")));
}

}  // namespace

}  // namespace tenon_tests
