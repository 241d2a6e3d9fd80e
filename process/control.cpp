// SPDX-License-Identifier: Apache-2.0
#include "process/control.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/signals_blocked.h"
#include "base/whole_number.h"

namespace tenon::process {

namespace {

using nlohmann::json;
using ControlClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBeat(500);
constexpr std::chrono::seconds kPatience(3);  // after the launcher is lost
constexpr size_t kLongestLine = 1 << 16;

// Returns the number after `before` at the end of a text, -1 without one: 7 of "fd:7".
int number_after(std::string_view text, std::string_view before) {
  if (!text.starts_with(before)) return -1;
  return std::max(base::whole_number<int>(text.substr(before.size())).value_or(-1), -1);
}

void make_waitless(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

}  // namespace

std::unique_ptr<Control> Control::from_environment(Handlers handlers) {
  constexpr const char* kName = "TENON_TEAM_CONTROL";
  const char* const value = std::getenv(kName);
  if (value == nullptr) return nullptr;
  const std::string text = value;
  const int number = number_after(text, "fd:");
  if (number < 0 || fcntl(number, F_GETFD) < 0)
    throw std::runtime_error(std::string(kName) + ": expected \"fd:N\" with the number of an open descriptor, got \"" +
                             text + "\"");
  unsetenv(kName);  // a child of this process is no process of the team
  return std::make_unique<Control>(base::Descriptor(number), std::move(handlers));
}

Control::Control(base::Descriptor socket, Handlers handlers)
    : socket_(std::move(socket)), handlers_(std::move(handlers)) {
  make_waitless(socket_.get());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "cannot create a pipe");
  woken_ = base::Descriptor(ends[0]);
  wake_ = base::Descriptor(ends[1]);
  const base::SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

Control::~Control() { leave(); }

void Control::change(const Change& change) {
  const std::scoped_lock lock(mutex_);
  const bool was_start = state_.phase == kStartPhase;
  change(state_);
  if (was_start && state_.phase != kStartPhase) base::write_all(wake_.get(), "1");
}

void Control::set_refresh(Change refresh) {
  const std::scoped_lock lock(mutex_);
  refresh_ = std::move(refresh);
}

void Control::done(int code) noexcept {
  code_ = code;
  leave();
}

void Control::leave() noexcept {
  ends_ = true;
  wake_.close();
  if (thread_.joinable()) thread_.join();
}

void Control::run() noexcept try {
  auto next = ControlClock::now();
  while (!ends_) {
    if (const auto now = ControlClock::now(); now >= next) {
      next = now + kBeat;
      add_beat();
    }
    flush();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - ControlClock::now()).count();
    const auto events = static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT);
    pollfd waits[] = {{socket_.get(), events, 0}, {woken_.get(), POLLIN, 0}};
    if (poll(waits, 2, left > 0 ? static_cast<int>(left) : 0) <= 0) continue;
    char byte = 0;
    if ((waits[1].revents & POLLIN) != 0 && ::read(woken_.get(), &byte, 1) == 1) next = {};
    if ((waits[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || receive()) continue;
    if (handlers_.lost) {
      handlers_.lost();
      pollfd end = {woken_.get(), POLLIN, 0};
      if (poll(&end, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) > 0 && ends_) return;
    }
    _exit(kLostExit);
  }
  finish();
} catch (...) {  // no memory for a line: the launcher then takes the process for lost
}

bool Control::receive() {
  char part[4096];
  for (;;) {
    const ssize_t got = base::uninterrupted([&] { return ::read(socket_.get(), part, sizeof part); });
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got <= 0) return false;
    received_.append(part, static_cast<size_t>(got));
    for (size_t end = 0; (end = received_.find('\n')) != std::string::npos; received_.erase(0, end + 1))
      handle(received_.substr(0, end));
    if (received_.size() > kLongestLine) return false;  // not a launcher
  }
}

void Control::handle(const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  if (!message.is_object() || !message.contains("stop") || !message["stop"].is_string()) return;
  const std::string reason = message["stop"];
  const int signal = std::max(0, number_after(reason, "signal "));
  if (handlers_.stop) {
    handlers_.stop(reason, signal);
  } else if (signal > 0) {
    kill(getpid(), signal);
  } else {
    _exit(kLostExit);
  }
}

void Control::add_beat() {
  if (!unsent_.empty()) return;  // the launcher does not read: one line is enough
  State state;
  {
    const std::scoped_lock lock(mutex_);
    if (refresh_) refresh_(state_);
    state = state_;
  }
  const json beat = {
      {"step", state.step}, {"phase", state.phase}, {"call", state.call}, {"waits_for", state.waits_for}};
  unsent_ = beat.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

void Control::flush() noexcept {
  while (!unsent_.empty()) {
    const ssize_t put = base::uninterrupted([&] { return ::write(socket_.get(), unsent_.data(), unsent_.size()); });
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (put < 0) return unsent_.clear();  // the launcher has ended, which reading finds
    unsent_.erase(0, static_cast<size_t>(put));
  }
}

void Control::finish() noexcept {
  const int code = code_;
  if (code < 0) return;
  unsent_ += "{\"done\":" + std::to_string(code) + "}\n";
  const auto until = ControlClock::now() + std::chrono::seconds(1);
  while (!unsent_.empty() && ControlClock::now() < until) {
    flush();
    pollfd waits = {socket_.get(), POLLOUT, 0};
    if (!unsent_.empty()) poll(&waits, 1, 100);
  }
}

}  // namespace tenon::process
