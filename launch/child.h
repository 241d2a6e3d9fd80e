// What a child of the launcher, or of its agents, does before it becomes another program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "launch/events.h"

namespace tenon::launch {

// In a child of an agent: begins a group of processes that the kernel kills with the agent. It has nothing to read, and
// its output goes to the descriptors. Ends with code 127 if the agent has ended already.
void begin_child_of_agent(pid_t agent, const Signals& signals, int out, int errors);

// Returns the pointers to words that the functions of exec() take. They hold as long as the words do.
[[nodiscard]] std::vector<char*> pointers_to(std::vector<std::string>& words);

// The end of what a program says, which is read as it comes.
class LastWords {
 public:
  // from: where the program writes to. It is not waited for.
  void open(base::Descriptor from);
  [[nodiscard]] bool is_open() const { return from_.get() >= 0; }
  [[nodiscard]] int descriptor() const { return from_.get(); }
  // Reads some of what is there, and closes the descriptor at its end. Does nothing after that.
  void read();
  // Adds what has come in another way.
  void add(const std::string& words) { text_ += words; }
  // Returns the words, at most so many bytes and without white space at the end, behind a colon; "" without any.
  [[nodiscard]] std::string after_colon(size_t most) const;

 private:
  base::Descriptor from_;
  std::string text_;
};

}  // namespace tenon::launch
