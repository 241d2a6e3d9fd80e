// SPDX-License-Identifier: Apache-2.0
#include "process/child.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <system_error>

#include "base/files.h"
#include "process/last_words.h"

namespace tenon::process {

namespace {

[[noreturn]] void fail_system(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

// Reads until the end of the pipe. Returns false after `silence` seconds without a byte.
bool read_all(int from, unsigned silence, std::string& text) {
  char part[4096];
  for (;;) {
    pollfd waits = {from, POLLIN, 0};
    const int ready = poll(&waits, 1, silence == 0 ? -1 : static_cast<int>(silence * 1000));
    if (ready == 0) return false;
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t got = read(from, part, sizeof part);
    if (got > 0) text.append(part, static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
  }
}

// Returns the id of a new process; 0 in that process.
pid_t start() {
  std::cout.flush();  // else the child might print it again
  std::cerr.flush();
  std::fflush(nullptr);
  const pid_t id = fork();
  if (id < 0) fail_system("cannot start a process");
  return id;
}

}  // namespace

Child::Child(const std::function<void()>& work) : id_(start()) {
  if (id_ > 0) return;
  try {
    work();
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

Child::~Child() {
  send(SIGKILL);
  wait();
}

Child::Child(Child&& other) noexcept : id_(other.id_), status_(other.status_), ended_(other.ended_) {
  other.ended_ = true;
}

void Child::send(int signal) const noexcept {
  if (!ended_) kill(id_, signal);
}

int Child::wait() noexcept {
  collect(true);
  return status_;
}

bool Child::collect(bool wait) noexcept {
  pid_t result = 0;
  while (!ended_ && (result = waitpid(id_, &status_, wait ? 0 : WNOHANG)) < 0 && errno == EINTR) continue;
  ended_ = ended_ || result != 0;
  return ended_;
}

int ChildEnd::code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

std::string ChildEnd::how() const {
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")"
                             : "exit code " + std::to_string(WEXITSTATUS(status));
}

ChildEnd run_child(const std::function<void(int to)>& work, unsigned seconds, unsigned silence) {
  int ends[2];
  if (pipe(ends) != 0) fail_system("cannot create a pipe");
  base::Descriptor from(ends[0]), to(ends[1]);
  Child child([&] {
    from.close();
    alarm_in(seconds, SIG_DFL);
    work(to.get());
  });
  to.close();
  ChildEnd end;
  if (!read_all(from.get(), silence, end.text)) {
    end.timed_out = true;
    child.send(SIGKILL);
  }
  from.close();
  end.status = child.wait();
  if (WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGALRM) end.timed_out = true;
  return end;
}

}  // namespace tenon::process
