// Programs as child processes of a test. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

#include "process/child.h"

namespace tenon_tests {

using tenon::process::Child;
using tenon::process::ChildEnd;
using tenon::process::run_child;

// Replaces this process by a program; words: its path and arguments. Ends with code 99 without it.
[[noreturn]] inline void become(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(99);
}

// Runs a command of the shell; the text is its standard output.
[[nodiscard]] inline ChildEnd shell(const std::string& command) {
  const auto work = [&](int to) {
    dup2(to, STDOUT_FILENO);
    close(to);
    become({"/bin/sh", "-c", command});
  };
  return run_child(work, 0);
}

}  // namespace tenon_tests
