// The one exception type. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace tenon {

class Error : public std::exception {
 public:
  Error(tn_status code, std::string message) : code_(code), message_(std::move(message)) {}

  [[nodiscard]] tn_status code() const noexcept { return code_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

 private:
  tn_status code_;
  std::string message_;
};

// Joins its arguments as operator<< prints them.
template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // else a stream that gets no memory drops what it was given, and says nothing
  (out << ... << parts);
  return out.str();
}

template <typename... Parts>
[[noreturn]] void fail(tn_status code, const Parts&... parts) {
  throw Error(code, text(parts...));
}

// "not found" and the like; "unknown status" for a number that is none.
const char* status_text(tn_status status) noexcept;

}  // namespace tenon
