// A program in place of tenon, which does what it is told by environment variables: a process of a training without a
// training. SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "process/control.h"

namespace {

using nlohmann::json;
using tenon::process::Control;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// TEST_ACTIONS is a list such as "1@1 kill 3;0@2 exit 78 2": process 1 in epoch 1 kills itself at step 3.
struct Action {
  std::string name, value;
  int64_t step = 0;
};
std::vector<Action> actions() {
  const std::string own = variable("TENON_TEAM_RANK") + "@" + variable("TENON_TEAM_EPOCH");
  std::vector<Action> result;
  std::istringstream list(variable("TEST_ACTIONS"));
  for (std::string text; std::getline(list, text, ';');) {
    std::istringstream words(text);
    std::string who;
    Action action;
    words >> who >> action.name;
    if (action.name == "exit" || action.name == "wait") words >> action.value;
    words >> action.step;
    const bool any = who == variable("TENON_TEAM_RANK") + "@*" || who == "*@*";
    if (who == own || any) result.push_back(action);
  }
  return result;
}

// Appends a line to the file of the test: several processes write into it.
void note(const std::string& kind, json line) {
  line["kind"] = kind;
  line["rank"] = variable("TENON_TEAM_RANK");
  line["epoch"] = variable("TENON_TEAM_EPOCH");
  std::ofstream(variable("TEST_LOG"), std::ios::app) << line.dump() + "\n" << std::flush;
}

// As the processes of a team do, none of which begins before all are there. Not for ever: a test may lack some.
void wait_for_others() {
  const std::string epoch = variable("TENON_TEAM_EPOCH");
  const auto all = std::atoll(variable("TENON_TEAM_PROCESSES").c_str());
  for (int turn = 0; turn < 300; ++turn) {
    std::ifstream log(variable("TEST_LOG"));
    int64_t started = 0;
    for (std::string text; std::getline(log, text);) {
      const json line = json::parse(text, nullptr, false);
      if (line.is_object() && line.value("kind", "") == "start" && line.value("epoch", "") == epoch) ++started;
    }
    if (started >= all) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

int64_t checkpoint_step(const std::string& folder) {
  int64_t last = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("checkpoint-0-", 0) == 0) last = std::max<int64_t>(last, std::atoll(name.c_str() + 13));
  }
  return last;
}

void act(const Action& action, Control& control) {
  if (action.name == "kill") std::raise(SIGKILL);
  if (action.name == "stop") std::raise(SIGSTOP);
  if (action.name == "crash") std::abort();
  if (action.name == "term") std::raise(SIGTERM);
  if (action.name == "exit") std::_Exit(std::atoi(action.value.c_str()));
  if (action.name == "done") {
    control.done(std::atoi(action.value.c_str()));
    std::_Exit(std::atoi(action.value.c_str()));
  }
  if (action.name == "print") std::cerr << "warning: step " << action.step << std::endl;
  if (action.name == "flood")
    for (int i = 0; i < 40'000; ++i) std::cout << "line " << i << " of a long text that fills pipes\n";
  if (action.name == "hang") {
    control.change([](Control::State& state) { state.call = "layer hidden"; });
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  if (action.name == "wait") {  // for the process of that number
    const auto other = std::atoll(action.value.c_str());
    control.change([other](Control::State& state) { state.waits_for = other; });
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  if (action.name == "linger") {  // says that it is done, but does not end
    control.done(0);
    std::signal(SIGTERM, SIG_IGN);
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  if (action.name == "child" && fork() == 0) {  // a process of its own that outlives it
    note("child", {{"pid", getpid()}});
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string secret(64, '\0');
  const int from = std::atoi(variable("TENON_TEAM_SECRET").substr(3).c_str());
  const ssize_t got = read(from, secret.data(), secret.size());
  const json start = {{"words", std::vector<std::string>(argv + 1, argv + argc)},
                      {"processes", variable("TENON_TEAM_PROCESSES")},
                      {"comm", variable("TENON_TEAM_COMM")},
                      {"address", variable("TENON_TEAM_ADDRESS")},
                      {"node", variable("TEST_NODE")},
                      {"secret", secret.substr(0, got < 0 ? 0 : static_cast<size_t>(got))},
                      {"folder", std::filesystem::current_path().string()},
                      {"pid", getpid()}};
  note("start", {{"words", start["words"]},
                 {"processes", start["processes"]},
                 {"comm", start["comm"]},
                 {"address", start["address"]},
                 {"node", start["node"]},
                 {"pid", start["pid"]},
                 {"folder", start["folder"]},
                 {"secret_bytes", got}});
  wait_for_others();
  static std::atomic<int> signal = 0;
  const bool ignores = variable("TEST_IGNORE") == "1";
  if (ignores) std::signal(SIGTERM, SIG_IGN);
  Control::Handlers handlers;
  handlers.stop = [&](const std::string& reason, int number) {
    note("stop", {{"reason", reason}});
    if (ignores) return;
    if (number == 0) std::_Exit(tenon::process::kLostExit);
    signal = number;
  };
  const auto control = Control::from_environment(handlers);
  const std::vector<Action> list = actions();
  const std::string steps = variable("TEST_STEPS"), folder = variable("TEST_CHECKPOINTS");
  const int64_t count = steps.empty() ? 5 : std::atoll(steps.c_str());
  const bool first = variable("TENON_TEAM_RANK") == "0";
  control->change([](Control::State& state) { state.phase = "train"; });
  for (int64_t step = checkpoint_step(folder) + 1; step <= count && signal == 0; ++step) {
    control->change([step](Control::State& state) { state.step = step; });
    for (const Action& action : list)
      if (action.step == step) act(action, *control);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (first && !folder.empty())
      std::ofstream(folder + "/checkpoint-0-" + std::to_string(step) + ".safetensors") << step;
  }
  if (first) std::cout << "trained to the end\n" << std::flush;
  const int code = signal == 0 ? 0 : 128 + signal;
  control->done(code);
  return code;
}
