// The exception type, with the failed component and the subject of the failure. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <exception>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace tenon::core {

// The message is complete: it names component and subject, too. The fields are for code that branches on them.
class Error : public std::exception {
 public:
  Error(tn_status code, std::string message, std::string component = {}, std::string subject = {})
      : code_(code), message_(std::move(message)), component_(std::move(component)), subject_(std::move(subject)) {}

  [[nodiscard]] tn_status code() const noexcept { return code_; }
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  // The failed component: `layer "hidden" (fc)`, `reader "csv"`, `updater "adam"`, "parameters"; "" if unknown.
  [[nodiscard]] const std::string& component() const noexcept { return component_; }
  // The subject of the failure: the name of an attribute, port, parameter, slot or data layer, or the path of a file;
  // "" if unknown.
  [[nodiscard]] const std::string& subject() const noexcept { return subject_; }

  // Returns a copy with `context` and ": " before the message.
  [[nodiscard]] Error with_context(const std::string& context) const {
    return {code_, context + ": " + message_, component_, subject_};
  }
  // Returns a copy with `component` as its component, and ": " and the message after it.
  [[nodiscard]] Error with_component(const std::string& component) const {
    return {code_, component + ": " + message_, component, subject_};
  }

 private:
  tn_status code_;
  std::string message_;
  std::string component_;
  std::string subject_;
};
// Otherwise a throw could call std::terminate if memory runs out. Allocations happen before the throw.
static_assert(std::is_nothrow_move_constructible_v<Error>);

// Arguments of fail: the failed component, with which the message begins, and the subject, which is not printed.
struct ComponentName {
  const std::string& name;
};
struct SubjectName {
  const std::string& name;
};

// Concatenates its arguments as operator<< prints them.
template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // else a stream that runs out of memory silently drops its input
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

// Returns the text of a status, such as "not found"; "unknown status" for any other number.
const char* status_text(tn_status status) noexcept;

// Throws TN_UNSUPPORTED unless a reserved member, or the bits of flags that are not given out, are zero.
template <typename Number>
void check_unused(Number value, const char* what) {
  if (value != 0) fail(TN_UNSUPPORTED, "the ", what, " is ", value, "; expected 0");
}

}  // namespace tenon::core
