// SPDX-License-Identifier: Apache-2.0
#include "launch/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/text.h"
#include "launch/channel.h"

namespace tenon::launch {

namespace {

constexpr size_t kMostWords = 4096;  // bytes that are kept

}  // namespace

void begin_child_of_agent(pid_t agent, const Signals& signals, int out, int errors) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != agent) _exit(127);  // ended between the two calls
  signals.restore();
  const base::Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(nothing.get(), STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

void LastWords::open(base::Descriptor from) {
  from_ = std::move(from);
  make_waitless(from_.get());
}

void LastWords::read() {
  if (!is_open()) return;
  char part[4096];
  const ssize_t got = base::uninterrupted([&] { return ::read(from_.get(), part, sizeof part); });
  if (got > 0) text_.append(part, static_cast<size_t>(got));
  if (text_.size() > kMostWords) text_.erase(0, text_.size() - kMostWords);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) from_.close();
}

std::string LastWords::after_colon(size_t most) const {
  const std::string words = text_.substr(0, text_.find_last_not_of("\r\n ") + 1);
  return words.empty() ? "" : ": " + base::shortened(words, most);
}

}  // namespace tenon::launch
