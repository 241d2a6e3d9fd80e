// The one exception type, with who failed and what about. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <exception>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace tenon {

// The message is complete by itself: it names component and subject, too. The fields are for code that decides by them.
class Error : public std::exception {
 public:
  Error(tn_status code, std::string message, std::string component = {}, std::string subject = {})
      : code_(code), message_(std::move(message)), component_(std::move(component)), subject_(std::move(subject)) {}

  [[nodiscard]] tn_status code() const noexcept { return code_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  // Who failed: `layer "hidden" (fc)`, `reader "csv"`, `updater "adam"`, "parameters"; "" if unknown.
  [[nodiscard]] const std::string& component() const noexcept { return component_; }
  // The name of the attribute, port, parameter, slot or data layer, or the path of the file, that the failure is about;
  // "" if unknown.
  [[nodiscard]] const std::string& subject() const noexcept { return subject_; }

  // The same failure with `context` and ": " before its message.
  [[nodiscard]] Error with_context(const std::string& context) const {
    return {code_, context + ": " + message_, component_, subject_};
  }
  // The same failure in the name of `component`.
  [[nodiscard]] Error with_component(const std::string& component) const {
    return {code_, component + ": " + message_, component, subject_};
  }

 private:
  tn_status code_;
  std::string message_;
  std::string component_;
  std::string subject_;
};
// Else a throw could end in std::terminate where memory is short: what may fail comes before it.
static_assert(std::is_nothrow_move_constructible_v<Error>);

// Arguments of fail: who failed, which the message begins with, and what about, which is not printed.
struct ComponentName {
  const std::string& name;
};
struct SubjectName {
  const std::string& name;
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
template <typename... Parts>
[[noreturn]] void fail(tn_status code, const SubjectName& subject, const Parts&... parts) {
  throw Error(code, text(parts...), {}, subject.name);
}
template <typename... Parts>
[[noreturn]] void fail(tn_status code, const ComponentName& component, const Parts&... parts) {
  throw Error(code, text(component.name, ": ", parts...), component.name);
}
template <typename... Parts>
[[noreturn]] void fail(tn_status code, const ComponentName& component, const SubjectName& subject,
                       const Parts&... parts) {
  throw Error(code, text(component.name, ": ", parts...), component.name, subject.name);
}

// "not found" and the like; "unknown status" for a number that is none.
const char* status_text(tn_status status) noexcept;

}  // namespace tenon
