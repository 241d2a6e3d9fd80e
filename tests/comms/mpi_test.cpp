// The communicators over MPI, under the launchers of both. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>

#include "tests/support/child.h"
#include "tests/support/paths.h"

namespace {

using tenon::process::ChildEnd;
using testing::HasSubstr;

// Beside the test.
std::string comm_rank() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tenon_comm_rank"; }

// Runs comm_rank with the communicator `engine` in `ranks` processes of a launcher.
ChildEnd launch(const std::string& launcher, int ranks, const std::string& engine, const std::string& words) {
  const std::string options = launcher == "openmpi" ? " --allow-run-as-root --oversubscribe" : "";
  const std::string plugin = tenon_tests::plugin_folder() + "/comms/" + engine + ".so";
  return tenon_tests::shell("exec timeout 120 mpiexec." + launcher + options + " -n " + std::to_string(ranks) + " " +
                            comm_rank() + " " + plugin + " " + words + " 2>&1");
}

class Mpi : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(tenon_tests::plugin_folder() + "/comms/" + engine() + ".so"))
      GTEST_SKIP() << "no communicator " << engine() << " in this build";
    if (!tenon_tests::shell("command -v mpiexec." + engine()).well())
      GTEST_SKIP() << "no launcher mpiexec." << engine() << " on this machine";
  }
  std::string engine() const { return GetParam(); }
  std::string other() const { return engine() == "mpich" ? "openmpi" : "mpich"; }
};

TEST_P(Mpi, keeps_the_contract) {
  for (const int ranks : {2, 3}) {
    const ChildEnd end = launch(engine(), ranks, engine(), "contract " + std::to_string(ranks));
    EXPECT_EQ(end.code(), 0) << end.text;
  }
}

TEST_P(Mpi, a_world_of_one_needs_no_launcher) {
  const std::string plugin = tenon_tests::plugin_folder() + "/comms/" + engine() + ".so";
  const ChildEnd end =
      tenon_tests::shell(std::string("exec timeout 60 ") + comm_rank() + " " + plugin + " close 1 2>&1");
  EXPECT_EQ(end.code(), 0) << end.text;
}

TEST_P(Mpi, a_stopped_rank_is_lost_and_an_abort_ends_it_too) {
  const auto begin = std::chrono::steady_clock::now();
  const ChildEnd end = launch(engine(), 2, engine(), "stopped");
  EXPECT_EQ(end.code(), 200) << end.text;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST_P(Mpi, an_abort_ends_all_with_its_code) {
  const ChildEnd end = launch(engine(), 3, engine(), "abort");
  EXPECT_EQ(end.code(), 200) << end.text;
}

TEST_P(Mpi, refuses_another_world_and_another_epoch) {
  EXPECT_THAT(launch(engine(), 2, engine(), "close 3").text, HasSubstr("the world has 2 ranks, expected 3"));
  EXPECT_THAT(launch(engine(), 2, engine(), "epoch").text, HasSubstr("has epoch"));
}

TEST_P(Mpi, refuses_worlds_of_one_under_another_launcher) {
  if (!tenon_tests::shell("command -v mpiexec." + other()).well())
    GTEST_SKIP() << "no launcher mpiexec." << other() << " on this machine";
  EXPECT_THAT(launch(other(), 2, engine(), "close").text,
              HasSubstr("2 processes were started, each as a world of its own: start them with mpiexec." + engine()));
}

INSTANTIATE_TEST_SUITE_P(Comms, Mpi, testing::Values("mpich", "openmpi"),
                         [](const auto& engine) { return std::string(engine.param); });

}  // namespace
