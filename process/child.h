// Child processes, for code that may crash, hang or end the process. POSIX alone. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace tenon::process {

// A child made by fork(), which is killed at the latest with this object.
class Child {
 public:
  // Calls work() in the child, which ends after it with code 0, or with code 1 if it throws, without destructors of
  // static objects. Throws std::system_error without a child.
  explicit Child(const std::function<void()>& work);
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  void send(int signal) const noexcept;
  // Returns whether the child has ended.
  [[nodiscard]] bool has_ended() noexcept { return collect(false); }
  // Waits for the end, and returns what waitpid gives.
  int wait() noexcept;

 private:
  bool collect(bool wait) noexcept;

  pid_t id_;
  int status_ = 0;
  bool ended_ = false;
};

// What a child wrote, and how it ended.
struct ChildEnd {
  std::string text;
  int status = 0;  // as waitpid gives it
  bool timed_out = false;

  [[nodiscard]] bool well() const { return status == 0; }
  // The exit code; 128 + n after signal n, as shells have it.
  [[nodiscard]] int code() const;
  // "signal 11 (Segmentation fault)", "exit code 3"
  [[nodiscard]] std::string how() const;
};

// Calls work(to) in a Child; what it writes to the descriptor `to` is the text. The child ends by SIGALRM after
// `seconds`, 0: never, unless the work calls alarm_in again; and at the latest `silence` seconds after its last output,
// 0: never. Throws std::system_error without a child.
[[nodiscard]] ChildEnd run_child(const std::function<void(int to)>& work, unsigned seconds, unsigned silence = 0);

}  // namespace tenon::process
