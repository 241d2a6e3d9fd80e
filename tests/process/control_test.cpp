// The channel between a process of a training and what started it. SPDX-License-Identifier: Apache-2.0
#include "process/control.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "process/thread_probe.h"
#include "tests/support/child.h"

namespace tenon_tests {

namespace {

using nlohmann::json;
using tenon::base::Descriptor;
using tenon::process::Control;
using testing::HasSubstr;

class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    launcher = Descriptor(ends[0]);
    worker = Descriptor(ends[1]);
  }
  // Returns the next line that the worker writes; null at the end.
  json line() {
    while (text.find('\n') == std::string::npos) {
      char part[256];
      pollfd wait = {launcher.get(), POLLIN, 0};
      if (poll(&wait, 1, 30'000) <= 0) return "nothing came";
      const ssize_t got = read(launcher.get(), part, sizeof part);
      if (got <= 0) return nullptr;
      text.append(part, static_cast<size_t>(got));
    }
    const std::string result = text.substr(0, text.find('\n'));
    text.erase(0, result.size() + 1);
    return json::parse(result);
  }
  void say(const std::string& words) const {
    ASSERT_EQ(write(launcher.get(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
  }
  // Runs a process with the channel that pauses until it is ended; returns how.
  int ended(const std::function<void()>& act, Control::Handlers handlers = {}) {
    Child child([&] {
      launcher.close();
      const Control control(std::move(worker), std::move(handlers));
      for (;;) pause();
    });
    worker.close();
    EXPECT_TRUE(line().is_object()) << "it runs";
    act();
    return child.wait();
  }

  Descriptor launcher, worker;
  std::string text;
};

TEST_F(ControlTest, TellsStepPhaseAndEnd) {
  Control control(std::move(worker), {});
  EXPECT_EQ(line(), json({{"step", 0}, {"phase", "start"}, {"call", ""}, {"waits_for", -1}}));
  control.change([](Control::State& state) { state = {7, "train", "hidden\n", 2}; });
  json beat = line();
  for (int i = 0; i < 3 && beat["step"] != 7; ++i) beat = line();
  EXPECT_EQ(beat, json({{"step", 7}, {"phase", "train"}, {"call", "hidden\n"}, {"waits_for", 2}}));
  control.done(78);
  while (beat.contains("step")) beat = line();
  EXPECT_EQ(beat, json({{"done", 78}}));
}

TEST_F(ControlTest, AsksForItsStateBeforeEachLine) {
  Control control(std::move(worker), {});
  control.set_refresh([step = int64_t{100}](Control::State& state) mutable { state.step = ++step; });
  json beat = line();
  for (int i = 0; i < 3 && beat["step"] == 0; ++i) beat = line();
  EXPECT_EQ(beat["step"], 101);
  EXPECT_EQ(line()["step"], 102);
  control.set_refresh({});
  beat = line();
  EXPECT_EQ(line()["step"], beat["step"]);
}

thread_local const char* place = "another thread";

TEST(ThreadProbe, AsksTheThreadThatMadeIt) {
  place = "the first thread";
  const tenon::process::ThreadProbe probe(
      [](char* text, uint64_t size) { return static_cast<uint64_t>(std::snprintf(text, size, "in %s", place)); });
  const auto ask = [&] {
    std::string answer;
    std::thread([&] { answer = probe.ask(); }).join();
    return answer;
  };
  EXPECT_EQ(ask(), "in the first thread");
  sigset_t urgent;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  pthread_sigmask(SIG_BLOCK, &urgent, nullptr);
  EXPECT_EQ(ask(), "") << "it does not answer";
  place = "the first thread, later";
  pthread_sigmask(SIG_UNBLOCK, &urgent, nullptr);
  EXPECT_EQ(ask(), "in the first thread, later");
}

TEST_F(ControlTest, EndsWithoutAWordIfNothingIsDone) {
  { const Control control(std::move(worker), {}); }
  json beat = line();
  while (beat.is_object()) {
    EXPECT_FALSE(beat.contains("done"));
    beat = line();
  }
  EXPECT_TRUE(beat.is_null()) << beat;
}

TEST_F(ControlTest, PassesRequestsToStopOn) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Descriptor from(ends[0]), to(ends[1]);
  Control::Handlers handlers;
  handlers.stop = [&](const std::string& reason, int signal) {
    const std::string told = reason + "=" + std::to_string(signal) + ";";
    EXPECT_EQ(write(to.get(), told.data(), told.size()), static_cast<ssize_t>(told.size()));
  };
  std::string told;
  {
    const Control control(std::move(worker), handlers);
    say("{\"stop\":\"signal 15\"}\n{\"other\":1}\nnonsense\n{\"stop\":\"process 2 ");
    say("is lost\"}\n{\"stop\":\"signal 1x\"}\n");
    const std::string expected = "signal 15=15;process 2 is lost=0;signal 1x=0;";
    while (told.size() < expected.size()) {
      char part[100];
      const ssize_t got = read(from.get(), part, sizeof part);
      ASSERT_GT(got, 0);
      told.append(part, static_cast<size_t>(got));
    }
    EXPECT_EQ(told, expected);
  }
}

TEST_F(ControlTest, WithoutHandlersSignalsAreSentAndTheRestEndsTheProcess) {
  EXPECT_EQ(WTERMSIG(ended([&] { say("{\"stop\":\"signal 2\"}\n"); })), SIGINT);
}

TEST_F(ControlTest, ALostTeamEndsTheProcess) {
  EXPECT_EQ(WEXITSTATUS(ended([&] { say("{\"stop\":\"process 1 is stuck\"}\n"); })), 200);
}

TEST_F(ControlTest, ALostLauncherEndsTheProcess) {
  EXPECT_EQ(WEXITSTATUS(ended([&] { launcher.close(); })), 200);
}

TEST_F(ControlTest, ALostLauncherEndsAProcessThatGoesOn) {
  Control::Handlers handlers;
  handlers.lost = [] {};
  EXPECT_EQ(WEXITSTATUS(ended([&] { launcher.close(); }, handlers)), 200);
}

TEST_F(ControlTest, OfTheEnvironment) {
  unsetenv("TENON_TEAM_CONTROL");
  EXPECT_EQ(Control::from_environment(), nullptr);
  for (const char* const wrong : {"", "fd:", "fd:x", "fd:-1", "7", "fd:9999"}) {
    setenv("TENON_TEAM_CONTROL", wrong, 1);
    try {
      (void)Control::from_environment();
      ADD_FAILURE() << wrong;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("got \"") + wrong + "\""));
    }
  }
  setenv("TENON_TEAM_CONTROL", ("fd:" + std::to_string(dup(worker.get()))).c_str(), 1);
  const auto control = Control::from_environment();
  ASSERT_NE(control, nullptr);
  EXPECT_EQ(std::getenv("TENON_TEAM_CONTROL"), nullptr) << "children are not in the team";
  EXPECT_TRUE(line().contains("step"));
}

}  // namespace

}  // namespace tenon_tests
