// The program's output. Results and JSON events go to standard output, one line each; the progress bar and remarks to
// standard error, the bar only if that is a terminal. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/not_copied.h"
#include "host/cli/options.h"

namespace tenon::cli {

class Console : base::NotCopied {
 public:
  Console(LogFormat format, bool quiet);
  ~Console() { clear_bar(); }

  [[nodiscard]] bool json() const { return format_ == LogFormat::kJson; }
  // Print a result: line in text format, event in JSON format; each prints nothing in the other format. Both throw
  // Failure(kIo) if standard output cannot be written.
  void line(const std::string& text);
  void event(const nlohmann::json& object);
  // Prints a remark, unless quiet; warn always prints.
  void note(const std::string& text);
  void warn(const std::string& text);

  // Returns whether a bar is to be drawn now. Mostly false, so that drawing costs little time.
  [[nodiscard]] bool bar_is_due();
  // fraction: 0 to 1, or below 0 if the end is unknown.
  void bar(const std::string& before, double fraction, const std::string& after);
  void clear_bar();

 private:
  using Clock = std::chrono::steady_clock;

  LogFormat format_;
  bool quiet_;
  bool terminal_;  // standard error is a terminal with control sequences
  bool color_;
  bool drawn_ = false;
  Clock::time_point next_bar_;
};

// The columns of the terminal that standard output is; 0 if it is not one.
[[nodiscard]] size_t output_width();

// "0.5312"; "1.234e-05" if four digits after the point do not suit the value.
[[nodiscard]] std::string shown(double number);
// "3.2 s", "1:05", "2:03:04"
[[nodiscard]] std::string shown_seconds(double seconds);
// "512 B", "1.2 MiB"
[[nodiscard]] std::string shown_bytes(uint64_t bytes);
// Returns null for infinity and NaN, which JSON does not have.
[[nodiscard]] nlohmann::json number(double value);

}  // namespace tenon::cli
