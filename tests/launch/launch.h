// Runs tenon-launch with a program in place of tenon, worker.cpp, in a folder of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "tests/host/cli/program.h"

namespace tenon_tests {

using nlohmann::json;

// A TCP port of this machine that something else listens at.
class TakenPort {
 public:
  TakenPort() {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_.get(), 1), 0);
    EXPECT_EQ(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  [[nodiscard]] std::string text() const { return std::to_string(port_); }

 private:
  tenon::base::Descriptor socket_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port_ = 0;
};

class LaunchTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write_job("\n[checkpoint]\nfolder = \"ck\"\n");
    setenv("TENON_PROGRAM", (own_folder() / "launch_worker").c_str(), 1);
    setenv("TEST_LOG", path("log").c_str(), 1);
    setenv("TEST_CHECKPOINTS", path("ck").c_str(), 1);
    for (const char* name : {"TEST_ACTIONS", "TEST_STEPS", "TEST_IGNORE", "TENON_TEAM_RANK"}) unsetenv(name);
  }
  static std::filesystem::path own_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }
  static std::string launcher() {
    return (std::filesystem::path(tenon_tests::program()).parent_path() / "tenon-launch").string();
  }
  void write_job(const std::string& more) const { write("job.toml", job() + more); }
  static void actions(const std::string& list) { setenv("TEST_ACTIONS", list.c_str(), 1); }
  static void steps(int count) { setenv("TEST_STEPS", std::to_string(count).c_str(), 1); }

  [[nodiscard]] Outcome launch(const std::string& arguments) const {
    return shell("exec '" + launcher() + "' job.toml " + arguments);
  }
  [[nodiscard]] std::string launched(const std::string& arguments) const {
    const Outcome outcome = launch(arguments);
    EXPECT_EQ(outcome.exit, 0) << outcome.error;
    return outcome.error;
  }
  // Starts the launcher beside the test; its output goes to the file "output".
  [[nodiscard]] Child begin(const std::string& arguments) const {
    return Child([&] {
      become(
          {"/bin/sh", "-c",
           "cd '" + path(".") + "' && exec '" + launcher() + "' job.toml " + arguments + " >output 2>&1 </dev/null"});
    });
  }

  // What the workers have noted, in order.
  [[nodiscard]] std::vector<json> notes(const std::string& kind) const {
    std::vector<json> result;
    std::istringstream lines(read("log"));
    for (std::string line; std::getline(lines, line);)
      if (json note = json::parse(line, nullptr, false); note.is_object() && note.at("kind") == kind)
        result.push_back(std::move(note));
    return result;
  }
  [[nodiscard]] std::vector<std::string> words(size_t start) const { return notes("start").at(start).at("words"); }

  [[nodiscard]] bool has_checkpoint() const {
    std::error_code none;
    for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(path("ck"), none))
      if (entry.path().filename().string().rfind("checkpoint-", 0) == 0) return true;
    return false;
  }
  // Returns the process with this number of the training in the folder of the test; 0 without it.
  [[nodiscard]] pid_t process(const std::string& rank) const {
    for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code gone;
      const std::filesystem::path folder = std::filesystem::read_symlink(entry.path() / "cwd", gone);
      if (gone || folder != std::filesystem::path(path(".")).parent_path().lexically_normal()) continue;
      std::ifstream file(entry.path() / "environ", std::ios::binary);
      for (std::string variable; std::getline(file, variable, '\0');)
        if (variable == "TENON_TEAM_RANK=" + rank) return std::atoi(entry.path().filename().c_str());
    }
    return 0;
  }

  // Sends a signal to the process of a rank. Without one it fails, for kill() takes 0 for the group of this test.
  void send(const std::string& rank, int signal) const {
    const pid_t id = process(rank);
    ASSERT_GT(id, 0) << "there is no process " << rank;
    kill(id, signal);
  }

  static bool is_alive(pid_t id) {
    std::ifstream file("/proc/" + std::to_string(id) + "/stat");
    std::string number, name, state;
    file >> number >> name >> state;
    return file && state != "Z" && state != "X";
  }
  static pid_t parent_of(pid_t id) {
    std::ifstream file("/proc/" + std::to_string(id) + "/stat");
    std::string number, name, state;
    pid_t parent = 0;
    file >> number >> name >> state >> parent;
    return parent;
  }
  // Waits until something is so, at most half a minute: the machine may be busy.
  static bool comes(const std::function<bool()>& so) {
    for (int i = 0; i < 3000; ++i) {
      if (so()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  // Whether all processes that have noted something end.
  [[nodiscard]] bool none_left() const {
    return comes([&] {
      for (const char* const kind : {"start", "child"})
        for (const json& note : notes(kind))
          if (is_alive(note.at("pid"))) return false;
      return true;
    });
  }
  // Whether the launcher ends, too, with its agents and all that these have started in the folder of the test.
  [[nodiscard]] bool nothing_left() const {
    return comes([&] {
      for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator("/proc")) {
        std::error_code gone;
        const std::filesystem::path folder = std::filesystem::read_symlink(entry.path() / "cwd", gone);
        if (!gone && folder == std::filesystem::path(path(".")).parent_path().lexically_normal()) return false;
      }
      return true;
    });
  }
  static int exit_of(Child& child) {
    const int status = child.wait();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] json epoch() const { return json::parse(read("ck/epoch"), nullptr, false); }
};

}  // namespace tenon_tests
