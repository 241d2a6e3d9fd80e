// Where output goes. Results and JSON events go to standard output, one line each; the progress bar and remarks to
// standard error, the bar only where that is a terminal. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "host/cli/options.h"

namespace tenon::cli {

class Console {
 public:
  Console(LogFormat format, bool quiet);
  ~Console() { clear_bar(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  [[nodiscard]] bool json() const { return format_ == LogFormat::kJson; }
  // One line of a result; with JSON as format, of nothing. Both throw Failure(kIo) when it cannot be written.
  void line(const std::string& text);
  void event(const nlohmann::json& object);
  // A remark, unless quiet.
  void note(const std::string& text);
  void warn(const std::string& text);

  // Whether a bar can be shown now; false more often than not, so that drawing costs nothing.
  [[nodiscard]] bool bar_is_due();
  // fraction: 0 to 1, or below 0 when the end is not known.
  void bar(const std::string& before, double fraction, const std::string& after);
  void clear_bar();

 private:
  using Clock = std::chrono::steady_clock;

  LogFormat format_;
  bool quiet_;
  bool terminal_;  // standard error is one that understands control sequences
  bool color_;
  bool drawn_ = false;
  Clock::time_point next_bar_;
};

// "0.5312"; more digits where four after the point would hide the value.
[[nodiscard]] std::string shown(double number);
// "3.2 s", "1:05", "2:03:04"
[[nodiscard]] std::string shown_seconds(double seconds);
// "101632 bytes", "1.2 MiB"
[[nodiscard]] std::string shown_bytes(uint64_t bytes);
// JSON has no word for infinity and nan: null.
[[nodiscard]] nlohmann::json number(double value);

}  // namespace tenon::cli
