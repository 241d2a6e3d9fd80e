// kill -9 at random moments of a training with checkpoints: resumed until it ends, it saves the same model, byte for
// byte. 20 kills; TENON_KILLS sets another number. SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <thread>

#include "tests/host/cli/program.h"
#include "tests/support/child.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class Killed : public ProgramTest {
 protected:
  // Starts the program with the job, with checkpoints always by the same command; its output goes to the file "output".
  [[nodiscard]] Child start(bool checkpoints = true) const {
    return Child([&] {
      const int output = open(path("output").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(output, stream);
      std::vector<std::string> words = {
          tenon_tests::program(), "train", path("job.toml"), "--save", path("model.safetensors"), "--threads", "2"};
      if (checkpoints) words.push_back("--resume");
      become(words);
    });
  }
  // Waits until the child ends or the time has come to kill it. Returns whether it ended by itself, with success.
  bool ended(Child child, std::chrono::microseconds time) const {
    const auto until = Clock::now() + time;
    while (Clock::now() < until) {
      if (child.has_ended()) {
        EXPECT_EQ(child.wait(), 0) << read("output");
        return true;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    child.send(SIGKILL);
    return child.wait() == 0;
  }
  [[nodiscard]] bool has_checkpoint() const {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(path("saves"), none))
      if (entry.path().filename().string().rfind("checkpoint-", 0) == 0) return true;
    return false;
  }
};

TEST_F(Killed, TrainingsResumeToTheSameModel) {
  std::string text = job();
  text.replace(text.find("passes = 4"), 10, "passes = 30");
  text.replace(text.find("size = 8\n"), 9, "size = 8\ndrop_rate = 0.25\n");
  write("job.toml", text);
  const auto began = Clock::now();
  ASSERT_TRUE(ended(start(false), std::chrono::minutes(2)));
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  const std::string expected = read("model.safetensors");
  ASSERT_FALSE(expected.empty());
  fs::remove(path("model.safetensors"));
  write("job.toml", text + "\n[checkpoint]\nfolder = \"saves\"\nevery_batches = 3\nbest = \"cost\"\n");

  const char* const wanted = std::getenv("TENON_KILLS");
  const int kills = wanted == nullptr ? 20 : std::atoi(wanted);
  const uint32_t seed = std::random_device()();
  std::cout << "seed " << seed << ", " << kills << " kills" << std::endl;
  std::mt19937 random(seed);
  // Up to about as long as a start and some of the training.
  std::uniform_int_distribution<int64_t> moment(0, std::max<int64_t>(whole.count(), 20'000));
  int killed = 0, trainings = 0, resumed = 0;
  // On a busy machine a start may take so long that most kills come before the first checkpoint: then more are needed,
  // and later ones.
  const auto kills_more = [&] { return killed < kills || (resumed < kills / 10 && killed < 10 * kills); };
  while (kills_more() || trainings == 0 || has_checkpoint()) {
    resumed += has_checkpoint() ? 1 : 0;
    const auto time =
        kills_more() ? std::chrono::microseconds(moment(random) * (1 + killed / kills)) : std::chrono::minutes(2);
    if (!ended(start(), time)) {
      ++killed;
      continue;
    }
    ASSERT_EQ(read("model.safetensors"), expected) << "after " << killed << " kills";
    ++trainings;
    fs::remove(path("model.safetensors"));
    fs::remove_all(path("saves"));
  }
  EXPECT_GE(killed, kills);
  EXPECT_GE(trainings, 1);
  EXPECT_GE(resumed, kills / 10) << "some kills came after a checkpoint";
  std::cout << trainings << " trainings ended, " << resumed << " starts resumed" << std::endl;
}

}  // namespace

}  // namespace tenon_tests
