// Signals to the launcher, and its own end: nothing is left behind. SPDX-License-Identifier: Apache-2.0
#include "tests/launch/launch.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

class LaunchStop : public LaunchTest {
 protected:
  // Starts three processes with many steps, and waits until they run.
  [[nodiscard]] Child running() const {
    steps(100'000);
    setenv("TEST_CHECKPOINTS", "", 1);
    Child child = begin("--processes 3");
    EXPECT_TRUE(comes([&] { return notes("start").size() == 3; })) << read("output");
    return child;
  }
  // Returns the agent, the parent of the processes.
  [[nodiscard]] pid_t agent() const {
    std::ifstream file("/proc/" + std::to_string(notes("start")[0].at("pid").get<int>()) + "/stat");
    std::string number, name, state;
    pid_t parent = 0;
    file >> number >> name >> state >> parent;
    return parent;
  }
};

TEST_F(LaunchStop, EndsTheTrainingOnASignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    write("log", "");
    Child child = running();
    child.send(signal);
    EXPECT_EQ(exit_of(child), 128 + signal) << read("output");
    const std::vector<json> stops = notes("stop");
    ASSERT_EQ(stops.size(), 3U);
    for (const json& stop : stops) EXPECT_EQ(stop.at("reason"), "signal " + std::to_string(signal));
    EXPECT_TRUE(nothing_left());
    EXPECT_EQ(epoch().at("ended"), true);
  }
}

TEST_F(LaunchStop, TheSecondSignalEndsProcessesThatIgnoreTheFirst) {
  setenv("TEST_IGNORE", "1", 1);
  Child child = running();
  child.send(SIGINT);
  ASSERT_TRUE(comes([&] { return notes("stop").size() == 3; }));
  EXPECT_FALSE(child.has_ended());
  child.send(SIGINT);
  EXPECT_EQ(exit_of(child), 130) << read("output");
  EXPECT_TRUE(nothing_left());
}

TEST_F(LaunchStop, AKilledLauncherLeavesNothingBehind) {
  setenv("TEST_IGNORE", "1", 1);
  Child child = running();
  const pid_t started = agent();
  child.send(SIGKILL);
  child.wait();
  EXPECT_TRUE(nothing_left());
  EXPECT_TRUE(comes([&] { return !is_alive(started); }));
}

TEST_F(LaunchStop, AKilledAgentIsReplaced) {
  Child child = running();
  kill(agent(), SIGKILL);
  ASSERT_TRUE(comes([&] { return notes("start").size() == 6; })) << read("output");
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(is_alive(notes("start")[i].at("pid")));
  EXPECT_THAT(read("output"), HasSubstr("is lost at step"));
  child.send(SIGTERM);
  EXPECT_EQ(exit_of(child), 128 + SIGTERM) << read("output");
  EXPECT_TRUE(nothing_left());
}

TEST_F(LaunchStop, TheSecondStartOfARunningJobIsRefused) {
  Child child = running();
  const Outcome second = launch("--processes 2 --resume");
  EXPECT_EQ(second.exit, 78);
  EXPECT_THAT(second.error, HasSubstr(path("job.toml") + " runs already: epoch 1, started on "));
  EXPECT_THAT(second.error, HasSubstr(" by process " + std::to_string(child.id()) + ", since 20"));
  EXPECT_EQ(notes("start").size(), 3U);
  child.send(SIGINT);
  EXPECT_EQ(exit_of(child), 130);
  steps(2);
  write("log", "");
  (void)launched("--processes 2 --resume");
  EXPECT_EQ(notes("start")[0].at("epoch"), "2");
}

}  // namespace

}  // namespace tenon_tests
