// What launchers of processes say, by variables that the test sets. SPDX-License-Identifier: Apache-2.0
#include "base/launchers.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <map>
#include <stdexcept>

namespace tenon_tests {

namespace {

using tenon::base::launched_place;
using tenon::base::LaunchedPlace;
using tenon::base::place_by_mpi;

class LaunchersTest : public testing::Test {
 protected:
  using Variables = std::map<std::string, std::string>;
  void SetUp() override {
    for (const char* const name :
         {"TENON_TEAM_RANK", "TENON_TEAM_PROCESSES", "TENON_TEAM_LOCAL", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMIX_RANK", "SLURM_PROCID",
          "SLURM_NTASKS", "SLURM_NODEID", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS",
          "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"})
      unsetenv(name);
  }
  void TearDown() override { SetUp(); }
  static void set(const Variables& variables) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  static void expect_place(const std::string& launcher, const std::string& comm, int64_t rank, int64_t processes,
                           int64_t local) {
    const std::optional<LaunchedPlace> place = launched_place();
    ASSERT_TRUE(place);
    EXPECT_EQ(place->launcher, launcher);
    EXPECT_EQ(place->comm, comm);
    EXPECT_EQ(place->rank, rank);
    EXPECT_EQ(place->processes, processes);
    EXPECT_EQ(place->local, local);
    EXPECT_EQ(place->by_tenon, launcher == "tenon");
  }
};

TEST_F(LaunchersTest, TheFirstThatIsSetCounts) {
  EXPECT_FALSE(launched_place());
  const Variables srun = {{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "6"}};
  set(srun);
  expect_place("srun", "zmq", 3, 6, 1);
  set({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALNRANKS", "2"}});
  expect_place("MPICH", "mpich", 1, 3, 2);
  set({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  expect_place("Open MPI", "openmpi", 2, 4, 4);
  EXPECT_EQ(place_by_mpi("mpich")->rank, 1);
  EXPECT_FALSE(place_by_mpi("zmq"));
  set({{"TENON_TEAM_RANK", "4"}, {"TENON_TEAM_PROCESSES", "5"}, {"TENON_TEAM_LOCAL", "5"}});
  expect_place("tenon", "", 4, 5, 5);
}

TEST_F(LaunchersTest, OneProcessIsAlone) {
  set({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}});
  EXPECT_FALSE(launched_place());
  EXPECT_EQ(place_by_mpi()->processes, 1);
  set({{"PMI_SIZE", "2"}, {"TENON_TEAM_PROCESSES", "1"}});
  EXPECT_FALSE(launched_place()) << "the user says so";
  set({{"TENON_TEAM_RANK", "0"}});
  expect_place("tenon", "", 0, 1, 1);
}

TEST_F(LaunchersTest, NumbersMustBeNumbers) {
  for (const char* const variable :
       {"TENON_TEAM_PROCESSES", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    setenv(variable, "4 ", 1);
    try {
      (void)launched_place();
      ADD_FAILURE() << variable;
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), std::string(variable) + " is \"4 \"; expected a number");
    }
    unsetenv(variable);
  }
}

TEST_F(LaunchersTest, AJobOfSlurmIsNotAStep) {
  set({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_NODEID", "0"}});
  EXPECT_FALSE(launched_place()) << "as in a batch script, which runs once";
}

TEST_F(LaunchersTest, AStepOfSlurmHasTheFirstMachineAndAPortOfItsOwn) {
  set({{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "2"}});
  const Variables machines = {{"node3", "node3"},
                              {"a,b", "a"},
                              {"node[03-05,9]", "node03"},
                              {"n[7]-ib,x[1-2]", "n7-ib"},
                              {"n[12,14-15].org", "n12.org"}};
  for (const auto& [list, first] : machines) {
    set({{"SLURM_STEP_NODELIST", list}});
    EXPECT_EQ(launched_place()->address, "tcp://" + first + ":24699") << list;
  }
  set({{"SLURM_STEP_TASKS_PER_NODE", "3(x2),2"}});
  for (const auto& [node, local] : Variables{{"0", "3"}, {"1", "3"}, {"2", "2"}}) {
    set({{"SLURM_NODEID", node}});
    EXPECT_EQ(launched_place()->local, std::stoll(local)) << node;
  }
  set({{"PMIX_RANK", "5"}});
  expect_place("srun", "openmpi", 5, 8, 2);
  EXPECT_EQ(launched_place()->address, "") << "PMIx connects them";
}

}  // namespace

}  // namespace tenon_tests
