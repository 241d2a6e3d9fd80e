// SPDX-License-Identifier: Apache-2.0
#include "launch/events.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace tenon::launch {

void wait_for(const std::vector<Wait>& waits, Clock::time_point until) {
  std::vector<pollfd> polled;
  for (const Wait& wait : waits) polled.push_back({wait.descriptor, wait.events, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  const int milliseconds = static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
  if (poll(polled.data(), polled.size(), milliseconds) <= 0) return;
  for (size_t i = 0; i < waits.size(); ++i)
    if (polled[i].revents != 0) waits[i].ready();
}

Signals::Signals(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  descriptor_ = base::Descriptor(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (descriptor_.get() < 0) throw std::system_error(errno, std::generic_category(), "cannot wait for signals");
  sigprocmask(SIG_BLOCK, &set, &before_);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &pipe_before_);
}

Signals::~Signals() { restore(); }

int Signals::next() const noexcept {
  signalfd_siginfo info;
  const ssize_t got = base::uninterrupted([&] { return ::read(descriptor_.get(), &info, sizeof info); });
  return got == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

void Signals::restore() const noexcept {
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace tenon::launch
