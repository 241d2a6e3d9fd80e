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

}  // namespace

std::string ChildEnd::how() const {
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")"
                             : "exit code " + std::to_string(WEXITSTATUS(status));
}

int write_all(int to, const std::string& bytes) noexcept {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = write(to, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
  return 0;
}

ChildEnd run_child(const std::function<void(int to)>& work, unsigned seconds, unsigned silence) {
  int ends[2];
  if (pipe(ends) != 0) fail_system("cannot create a pipe");
  std::cout.flush();  // else the child might print it again
  std::cerr.flush();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    const int failure = errno;
    close(ends[0]);
    close(ends[1]);
    errno = failure;
    fail_system("cannot start a process");
  }
  if (child == 0) {
    close(ends[0]);
    alarm_in(seconds, SIG_DFL);
    try {
      work(ends[1]);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  ChildEnd end;
  if (!read_all(ends[0], silence, end.text)) {
    end.timed_out = true;
    kill(child, SIGKILL);
  }
  close(ends[0]);
  while (waitpid(child, &end.status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGALRM) end.timed_out = true;
  return end;
}

}  // namespace tenon::process
