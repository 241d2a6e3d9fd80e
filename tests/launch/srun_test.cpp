// Trainings by processes that srun has started, as far as its variables say so. SPDX-License-Identifier: Apache-2.0
#include "tests/launch/launch.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

class LaunchSrun : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    unsetenv("TENON_PROGRAM");
    std::string text = job();
    text.replace(text.find("passes = 4"), 10, "passes = 4\nshards = 4");
    write("job.toml", text);
    write("secret", std::string(32, 's'));
    std::filesystem::permissions(path("secret"), std::filesystem::perms::owner_read);
  }
  // Starts a process of a step of Slurm; its output goes to the file "output<rank>".
  [[nodiscard]] Child process_of_step(int rank, const std::string& more) const {
    const std::string variables = "SLURM_PROCID=" + std::to_string(rank) +
                                  " SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=127.0.0.1 SLURM_STEP_ID=0 "
                                  "SLURM_STEP_TASKS_PER_NODE=2 SLURM_JOB_ID=" +
                                  std::to_string(getpid());
    return Child([&] {
      become({"/bin/sh", "-c",
              "cd '" + path(".") + "' && exec env " + variables + " " + more + " '" + std::string(program()) +
                  "' train job.toml --save two" + std::to_string(rank) + ".safetensors >output" + std::to_string(rank) +
                  " 2>&1 </dev/null"});
    });
  }
};

TEST_F(LaunchSrun, TheyTrainTogetherWithASecret) {
  EXPECT_EQ(run("train job.toml --save one.safetensors").exit, 0);
  Child second = process_of_step(1, "TENON_TEAM_SECRET=secret"), first = process_of_step(0, "TENON_TEAM_SECRET=secret");
  EXPECT_EQ(exit_of(first), 0) << read("output0");
  EXPECT_EQ(exit_of(second), 0) << read("output1");
  EXPECT_THAT(read("output0"), HasSubstr("process 0 of 2, started by srun, joined by zmq"));
  EXPECT_TRUE(read("two0.safetensors") == read("one.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(path("two1.safetensors"))) << "process 0 saves";
}

TEST_F(LaunchSrun, AnOpenTeamIsWarnedOf) {
  const std::string team = "TENON_TEAM_RANK=0 TENON_TEAM_PROCESSES=1 TENON_TEAM_COMM=zmq TENON_TEAM_ADDRESS=";
  const auto trained = [&](const std::string& more) {
    return shell(team + more + " exec $TENON train job.toml").error;
  };
  EXPECT_THAT(trained("tcp://127.0.0.1:0"), HasSubstr("warning: whoever reaches tcp://127.0.0.1:0 can join"));
  EXPECT_THAT(trained("tcp://127.0.0.1:0 TENON_TEAM_SECRET=secret"), testing::Not(HasSubstr("whoever reaches")));
  EXPECT_THAT(trained("ipc://team"), testing::Not(HasSubstr("whoever reaches")));
}

TEST_F(LaunchSrun, WithoutASecretTheyAreRefused) {
  Child process = process_of_step(1, "");
  EXPECT_EQ(exit_of(process), 64);
  EXPECT_THAT(read("output1"), HasSubstr("srun has started 2 processes (SLURM_STEP_NUM_TASKS) without PMI: they train "
                                         "together if TENON_TEAM_SECRET is"));
  Child alone = process_of_step(1, "TENON_TEAM_PROCESSES=1");
  EXPECT_EQ(exit_of(alone), 0) << read("output1");
  EXPECT_TRUE(std::filesystem::exists(path("two1.safetensors")));
}

}  // namespace

}  // namespace tenon_tests
