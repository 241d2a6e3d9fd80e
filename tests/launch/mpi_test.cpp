// Processes that the launcher of an MPI starts, under the supervision of tenon-launch: a script in place of mpiexec,
// and trainings by the MPIs of this machine. SPDX-License-Identifier: Apache-2.0
#include "tests/launch/launch.h"
#include "tests/support/paths.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A script in place of mpiexec.mpich, whose processes are those of worker.cpp.
class LaunchMpi : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    fs::create_directory(path("bin"));
    write("bin/mpiexec.mpich", R"(#!/bin/sh
echo "$*" >>"$TEST_LOG.mpi"
n=$2
shift 2
case $TEST_MPI in
fails) echo "There are not enough slots" >&2; exit 3 ;;
lacks) n=$((n - 1)) ;;
esac
i=0
while [ $i -lt $n ]; do
  PMI_RANK=$i PMI_SIZE=$n "$@" &
  i=$((i + 1))
done
wait
)");
    fs::permissions(path("bin/mpiexec.mpich"), fs::perms::owner_all);
    before_ = std::getenv("PATH");
    setenv("PATH", (path("bin") + ":" + before_).c_str(), 1);
    unsetenv("TEST_MPI");
  }
  void TearDown() override { setenv("PATH", before_.c_str(), 1); }
  [[nodiscard]] std::string refused(int exit, const std::string& arguments) const {
    const Outcome outcome = launch(arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << ": " << outcome.error;
    EXPECT_EQ(notes("start").size(), 0U) << arguments;
    return outcome.error;
  }

  std::string before_;  // the folders of programs
};

TEST_F(LaunchMpi, EachProcessHasItsPlaceFromTheLauncherOfTheMpi) {
  const Outcome outcome = launch("--processes 3 --comm mpich --threads 1");
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_EQ(outcome.out, "trained to the end\n") << "of process 0 alone";
  EXPECT_THAT(read("log.mpi"), testing::MatchesRegex("-n 3 .*/tenon-launch --node .* mpich\n"));
  const std::vector<json> starts = notes("start");
  ASSERT_EQ(starts.size(), 3U);
  std::set<std::string> ranks;
  for (const json& start : starts) {
    ranks.insert(start.at("rank"));
    EXPECT_EQ(start.at("processes"), "3");
    EXPECT_EQ(start.at("comm"), "mpich");
    EXPECT_EQ(start.at("address"), "") << "the MPI connects them";
    EXPECT_EQ(start.at("words"), json({"train", "job.toml", "--threads=1", "--set=shards=3"}));
  }
  EXPECT_EQ(ranks, (std::set<std::string>{"0", "1", "2"}));
  EXPECT_EQ(epoch().at("ended"), true);
  EXPECT_TRUE(nothing_left());
}

TEST_F(LaunchMpi, TheEndOfAProcessIsKnownAsItIs) {
  actions("1@1 kill 3;0@2 exit 1 2;1@3 stop 2");
  steps(100);
  setenv("TEST_CHECKPOINTS", "", 1);
  const std::string error = launched("--processes 2 --comm mpich");
  EXPECT_THAT(error, AllOf(HasSubstr("process 1 was ended by signal 9 (Killed) at step"),
                           HasSubstr("process 0 has ended with exit code 1 at step"),
                           HasSubstr("process 1 has said nothing for"), HasSubstr("(restart 3 of at most 20)"),
                           Not(HasSubstr("restart 4"))));
  EXPECT_EQ(notes("start").size(), 8U);
  EXPECT_THAT(words(7), Contains("--resume"));
  EXPECT_TRUE(nothing_left());
}

TEST_F(LaunchMpi, AProcessThatHangsIsNamed) {
  actions("1@* hang 3;0@* wait 1 3");
  setenv("TEST_CHECKPOINTS", "", 1);
  const Outcome outcome = launch("--processes 2 --comm mpich --stall 1");
  EXPECT_EQ(outcome.exit, 70);
  EXPECT_THAT(outcome.error, HasSubstr("process 1 is stuck: step 3, phase train, layer hidden for"));
  EXPECT_TRUE(nothing_left());
}

TEST_F(LaunchMpi, AnInterruptEndsAll) {
  steps(4000);
  Child child = begin("--processes 2 --comm mpich");
  ASSERT_TRUE(comes([&] { return notes("start").size() == 2; })) << read("output");
  child.send(SIGINT);
  EXPECT_EQ(exit_of(child), 130) << read("output");
  EXPECT_EQ(notes("stop").size(), 2U);
  EXPECT_TRUE(nothing_left());
}

TEST_F(LaunchMpi, NothingOutlivesTheLauncher) {
  steps(4000);
  setenv("TEST_IGNORE", "1", 1);
  Child child = begin("--processes 2 --comm mpich");
  ASSERT_TRUE(comes([&] { return notes("start").size() == 2; })) << read("output");
  child.send(SIGKILL);
  (void)child.wait();
  EXPECT_TRUE(nothing_left());
}

TEST_F(LaunchMpi, ALauncherOfTheMpiThatFailsIsQuoted) {
  setenv("TEST_MPI", "fails", 1);
  EXPECT_THAT(refused(74, "--processes 2 --comm mpich"),
              HasSubstr("mpiexec.mpich has ended with exit code 3, and 2 of 2 processes are missing: There are not "
                        "enough slots"));
  fs::create_directory(path("few"));
  fs::create_symlink("/bin/sh", path("few/sh"));
  setenv("PATH", path("few").c_str(), 1);
  EXPECT_THAT(refused(66, "--processes 2 --comm mpich"),
              HasSubstr("mpiexec.mpich has ended with exit code 127, and 2 of 2 processes are missing: cannot run it: "
                        "No such file or directory"));
}

TEST_F(LaunchMpi, ProcessesThatDoNotComeAreMissed) {
  setenv("TEST_MPI", "lacks", 1);
  steps(10);
  const Outcome outcome = launch("--processes 2 --comm mpich");
  EXPECT_EQ(outcome.exit, 74) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("and 1 of 2 processes are missing"));
  EXPECT_TRUE(nothing_left());
}

TEST_F(LaunchMpi, SeveralMachinesAreForTheLauncherOfTheMpi) {
  EXPECT_THAT(refused(78, "--nodes ann@node0,node1:2 --comm mpich"),
              HasSubstr("mpiexec.mpich -hosts node0:1,node1:2 -n 3 tenon train job.toml"));
  EXPECT_THAT(refused(78, "--nodes ann@node0,node1:2 --comm openmpi"),
              HasSubstr("--host node0:1,node1:2 -n 3 tenon train job.toml"));
}

// ---- real ones

class LaunchMpiTrainings : public LaunchTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (!fs::exists(plugin_folder() + "/comms/" + GetParam() + ".so"))
      GTEST_SKIP() << "no communicator " << GetParam() << " in this build";
    if (shell(std::string("command -v mpiexec.") + GetParam()).exit != 0)
      GTEST_SKIP() << "no launcher mpiexec." << GetParam() << " on this machine";
    LaunchTest::SetUp();
    unsetenv("TENON_PROGRAM");
    for (const char* const name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) setenv(name, "1", 1);
    std::string text = job();
    text.replace(text.find("passes = 4"), 10, "passes = 60\nshards = 4");
    write("job.toml", text + "\n[checkpoint]\nfolder = \"ck\"\nevery_batches = 20\n");
    EXPECT_EQ(run("train job.toml --set save=one.safetensors --set checkpoint.folder=one --threads 1").exit, 0);
  }
};

TEST_P(LaunchMpiTrainings, HaveTheBitsOfOneProcessAlsoIfOneIsKilled) {
  const std::string words = std::string("--processes 2 --threads 1 --comm ") + GetParam();
  const Outcome outcome = launch(words);
  EXPECT_EQ(outcome.exit, 0) << outcome.error;
  EXPECT_TRUE(read("model.safetensors") == read("one.safetensors")) << outcome.error;
  EXPECT_EQ(epoch().at("epoch"), 1) << outcome.error;
  fs::remove_all(path("ck"));
  fs::remove(path("model.safetensors"));
  Child child = begin(words);
  ASSERT_TRUE(comes([&] { return has_checkpoint() || child.has_ended(); }));
  ASSERT_FALSE(child.has_ended()) << read("output");
  const pid_t lost = process("1");
  ASSERT_GT(lost, 0);
  kill(lost, SIGKILL);
  EXPECT_EQ(exit_of(child), 0) << read("output");
  EXPECT_THAT(read("output"), HasSubstr("process 1 was ended by signal 9"));
  EXPECT_TRUE(read("model.safetensors") == read("one.safetensors")) << read("output");
  EXPECT_EQ(epoch().at("epoch"), 2) << read("output");
  EXPECT_TRUE(nothing_left());
}

INSTANTIATE_TEST_SUITE_P(Launch, LaunchMpiTrainings, testing::Values("mpich", "openmpi"),
                         [](const auto& engine) { return std::string(engine.param); });

}  // namespace

}  // namespace tenon_tests
