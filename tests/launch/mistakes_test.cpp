// What the launcher refuses, with a sentence and an exit code. SPDX-License-Identifier: Apache-2.0
#include "tests/launch/launch.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::HasSubstr;

class LaunchMistakes : public LaunchTest {
 protected:
  [[nodiscard]] std::string refused(int exit, const std::string& arguments) const {
    const Outcome outcome = launch(arguments);
    EXPECT_EQ(outcome.exit, exit) << arguments << ": " << outcome.error;
    EXPECT_EQ(notes("start").size(), 0U) << arguments;
    return outcome.error;
  }
};

TEST_F(LaunchMistakes, Options) {
  for (const char* count : {"0", "-1", "1000000"})
    EXPECT_THAT(refused(64, std::string("--processes ") + count),
                HasSubstr(std::string("--processes: expected 1 to 1024, got ") + count));
  EXPECT_THAT(refused(64, "--processes two"), HasSubstr("'--processes'"));
  EXPECT_THAT(refused(64, ""), HasSubstr("expected --processes or --nodes"));
  EXPECT_THAT(refused(64, "--processes 2 --nodes node0"), HasSubstr("--processes and --nodes exclude each other"));
  EXPECT_THAT(refused(64, "--processes 2 --restarts -1"), HasSubstr("--restarts: expected at least 0, got -1"));
  EXPECT_THAT(refused(64, "--processes 2 --silence 0.5"), HasSubstr("--silence: expected 1 to 1e6 seconds, got 0.5"));
  EXPECT_THAT(refused(64, "--processes 2 --address a:1"), HasSubstr("--address is about --nodes"));
  EXPECT_THAT(refused(64, "--nodes a:0"), HasSubstr("expected 1 to 1024 processes behind \"a:\", got \"0\""));
  EXPECT_THAT(refused(64, "--nodes a,,b"), HasSubstr("expected the name of a machine"));
  EXPECT_THAT(refused(64, "--nodes a,-oProxyCommand=x"), HasSubstr("got \"-oProxyCommand=x\""));
  EXPECT_THAT(refused(64, "--nodes a,a"), HasSubstr("\"a\" is there twice; a:2 has two processes"));
}

TEST_F(LaunchMistakes, Jobs) {
  write("job.toml", "passes = 0\n");
  EXPECT_THAT(refused(78, "--processes 2"), HasSubstr("job.toml:1"));
  const Outcome pipe = shell("'" + launcher() + "' /dev/stdin --processes 2 </dev/null");
  EXPECT_EQ(pipe.exit, 78);
  EXPECT_THAT(pipe.error, HasSubstr("is not a file, which each process could read"));
  const Outcome absent = shell("'" + launcher() + "' absent.toml --processes 2");
  EXPECT_EQ(absent.exit, 66);
}

TEST_F(LaunchMistakes, Places) {
  setenv("TENON_PROGRAM", "/nothing/tenon", 1);
  EXPECT_THAT(refused(66, "--processes 2"), HasSubstr("there is no program /nothing/tenon"));
  SetUp();
  write_job("\n[checkpoint]\nfolder = \"absent/ck\"\n");
  EXPECT_THAT(refused(66, "--processes 2"), HasSubstr("there is no folder \"" + path("absent") + "\""));
  write_job("\n[checkpoint]\nfolder = \"/proc/ck\"\n");
  EXPECT_THAT(refused(74, "--processes 2"), HasSubstr("cannot write \"/proc/ck\": "));
  write("file", "");
  write_job("\n[checkpoint]\nfolder = \"file\"\n");
  EXPECT_THAT(refused(74, "--processes 2"),
              HasSubstr("cannot write \"" + path("file/epoch.lock") + "\": Not a directory"));
  std::filesystem::create_directory(path("ck"));
  write("ck/epoch", "7");
  write_job("\n[checkpoint]\nfolder = \"ck\"\n");
  EXPECT_THAT(refused(65, "--processes 2"), HasSubstr("it is not the epoch of a training"));
}

TEST_F(LaunchMistakes, InsideOfATeam) {
  for (const auto& [variable, launcher] : std::map<std::string, std::string>{
           {"TENON_TEAM_PROCESSES", "tenon"}, {"PMI_SIZE", "MPICH"}, {"OMPI_COMM_WORLD_SIZE", "Open MPI"}}) {
    setenv(variable.c_str(), "4", 1);
    EXPECT_THAT(refused(78, "--processes 2"), HasSubstr("this process is one of 4 that " + launcher + " has started (" +
                                                        variable + "): leave out --processes"));
    setenv(variable.c_str(), "four", 1);
    EXPECT_THAT(refused(64, "--processes 2"), HasSubstr(variable + " is \"four\"; expected a number"));
    unsetenv(variable.c_str());
  }
}

TEST_F(LaunchMistakes, TrainHandsOver) {
  unsetenv("TENON_PROGRAM");
  const Outcome outcome = run("train job.toml --processes 0");
  EXPECT_EQ(outcome.exit, 64);
  EXPECT_THAT(outcome.error, HasSubstr("see 'tenon train --help'"));
  EXPECT_THAT(run("launch --help").out, HasSubstr("usage: tenon launch"));
  EXPECT_THAT(run("train job.toml --stall 3").error, HasSubstr("--stall is about --processes or --nodes"));
}

}  // namespace

}  // namespace tenon_tests
