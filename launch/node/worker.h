// One process of a training, as a child of the agent. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/channel.h"
#include "launch/events.h"
#include "process/child.h"

namespace tenon::launch {

struct WorkerStart {
  std::string program;
  std::vector<std::string> words;  // its arguments
  std::string folder;              // its working directory; empty: that of the agent
  std::string secret;              // bytes, which it reads from a descriptor
  std::map<std::string, std::string> environment;
};

// Runs in a process group of its own, which ends with it, and is killed with the agent, even by SIGKILL.
class Worker : base::NotCopied {
 public:
  // Called with each line of the control channel, and with lines of "out" and "err".
  struct Handlers {
    std::function<void(const json&)> control;
    std::function<void(const char* stream, const std::string& text)> output;
  };

  // signals: are restored in the child. Throws std::system_error.
  Worker(const WorkerStart& start, const Signals& signals, Handlers handlers);
  ~Worker();

  // Appends what is to be waited for. with_output: whether to read what the process prints.
  void add_waits(std::vector<Wait>& waits, bool with_output);
  // Sends the line {"stop": reason}.
  void stop(const std::string& reason);
  void send(int signal) const noexcept;
  // Whether the process has ended; then all that it has printed is handled, and nothing of its group is left.
  [[nodiscard]] bool has_ended();
  // How it has ended: {"code": 3} or {"signal": 9, "name": "Killed"}.
  [[nodiscard]] json ending();

 private:
  struct Stream {
    const char* name;
    base::Descriptor from;
    std::string line;
  };
  void read(Stream& stream, bool all);
  void read_control();

  Handlers handlers_;
  Stream streams_[2];
  std::optional<Channel> control_;
  std::optional<process::Child> child_;
  bool controlled_ = true;  // the channel is open
  bool ended_ = false;
};

}  // namespace tenon::launch
