// SPDX-License-Identifier: Apache-2.0
#include "host/cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

namespace tenon::cli {

namespace {

constexpr std::chrono::milliseconds kBarEvery(100);
constexpr size_t kBarWidth = 24;

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool understands_control(int descriptor) {
  const char* kind = std::getenv("TERM");
  return isatty(descriptor) == 1 && kind != nullptr && std::string(kind) != "dumb";
}

size_t columns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

template <typename... Numbers>
std::string printed(const char* form, Numbers... numbers) {
  char text[64];
  const int length = std::snprintf(text, sizeof text, form, numbers...);
  return std::string(text, static_cast<size_t>(std::clamp(length, 0, static_cast<int>(sizeof text) - 1)));
}

}  // namespace

Console::Console(LogFormat format, bool quiet)
    : format_(format),
      quiet_(quiet),
      terminal_(understands_control(STDERR_FILENO)),
      color_(terminal_ && !is_set("NO_COLOR")),
      next_bar_(Clock::now() + kBarEvery) {}

void Console::line(const std::string& text) {
  if (format_ != LogFormat::kText) return;
  clear_bar();
  if (!(std::cout << plain(text) << std::endl)) throw Failure(kIo, "cannot write to standard output");
}

void Console::event(const nlohmann::json& object) {
  if (!json()) return;
  clear_bar();
  if (!(std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl))
    throw Failure(kIo, "cannot write to standard output");
}

void Console::note(const std::string& text) {
  if (quiet_) return;
  clear_bar();
  std::cerr << shortened(plain(text)) << std::endl;
}

void Console::warn(const std::string& text) {
  clear_bar();
  std::cerr << (color_ ? "\033[33mwarning:\033[0m " : "warning: ") << shortened(plain(text)) << std::endl;
}

bool Console::bar_is_due() { return terminal_ && !quiet_ && Clock::now() >= next_bar_; }

void Console::bar(const std::string& before, double fraction, const std::string& after) {
  next_bar_ = Clock::now() + kBarEvery;
  std::string body;
  if (fraction >= 0) {
    const double share = std::min(fraction, 1.0);
    const auto full = static_cast<size_t>(share * static_cast<double>(kBarWidth));
    body = "[" + std::string(full, '=') + std::string(kBarWidth - full, '.') + "]" + printed(" %3.0f %%", 100 * share);
  }
  std::string text = plain(before + "  " + body + "  " + after);
  text.resize(std::min(text.size(), columns() - 1));  // a wrapped line could not be cleared
  if (color_ && fraction >= 0 && before.size() + 2 + body.size() <= text.size()) {
    text.insert(before.size() + 2 + body.size(), "\033[0m");
    text.insert(before.size() + 2, "\033[32m");
  }
  std::cerr << "\r\033[K" << text << std::flush;
  drawn_ = true;
}

void Console::clear_bar() {
  if (drawn_) std::cerr << "\r\033[K" << std::flush;
  drawn_ = false;
}

size_t output_width() {
  winsize size = {};
  return isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string shown(double number) {
  if (std::isnan(number)) return "nan";  // its sign means nothing
  const double size = std::fabs(number);
  return printed(size == 0 || (size >= 0.01 && size < 1e6) ? "%.4f" : "%.4g", number);
}

std::string shown_seconds(double seconds) {
  if (seconds < 10) return printed("%.1f s", seconds);
  if (!(seconds < 1e9)) return "-";
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 3600) return printed("%ld:%02ld", whole / 60, whole % 60);
  return printed("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string shown_bytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double size = static_cast<double>(bytes);
  size_t unit = 0;
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  return printed("%.1f %s", size, kUnits[unit]);
}

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

}  // namespace tenon::cli
