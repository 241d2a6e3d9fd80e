// Runs code that may crash, hang or end the process, in a child process. POSIX alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace tenon::process {

// What a child wrote, and how it ended.
struct ChildEnd {
  std::string text;
  int status = 0;  // as waitpid gives it
  bool timed_out = false;

  [[nodiscard]] bool well() const { return status == 0; }
  // "signal 11 (Segmentation fault)", "exit code 3"
  [[nodiscard]] std::string how() const;
};

// Writes all bytes to a descriptor. Returns 0 or the errno.
int write_all(int to, const std::string& bytes) noexcept;

// Calls work(to) in a child made by fork(); what it writes to the descriptor `to` is the text. The child ends after the
// work with code 0, without destructors of static objects; by SIGALRM after `seconds`, unless the work calls alarm_in
// again; and at the latest `silence` seconds after its last output, 0: never. Throws std::system_error without a child.
[[nodiscard]] ChildEnd run_child(const std::function<void(int to)>& work, unsigned seconds, unsigned silence = 0);

}  // namespace tenon::process
