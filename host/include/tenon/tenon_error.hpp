// Tenon's C++ API: errors, and exceptions in callbacks of C. Include <tenon/tenon.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_ERROR_HPP
#define TENON_TENON_ERROR_HPP

#include <tenon/tenon.h>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace tenon {
inline namespace v0 {

class Error : public std::runtime_error {
 public:
  Error(tn_status code, const std::string& message, std::string component = {}, std::string subject = {})
      : std::runtime_error(message),
        code_(code),
        about_(std::make_shared<const About>(About{std::move(component), std::move(subject)})) {}
  [[nodiscard]] tn_status code() const noexcept { return code_; }
  // As in tn_error; "" if unknown.
  [[nodiscard]] const std::string& component() const noexcept { return about_->component; }
  [[nodiscard]] const std::string& subject() const noexcept { return about_->subject; }

 private:
  struct About {
    std::string component, subject;
  };
  tn_status code_;
  std::shared_ptr<const About> about_;  // shared: copies of an exception must not fail
};

namespace detail {

inline void check(tn_status status, const tn_error& error) {
  if (status == TN_OK) return;
  throw Error(status, error.message[0] != '\0' ? error.message : tn_status_text(status), error.component,
              error.subject);
}

// call(&error) -> status; throws unless it is TN_OK.
template <typename Call>
void checked(Call call) {
  tn_error error;
  error.size = sizeof error;
  error.code = TN_OK;
  error.message[0] = error.component[0] = error.subject[0] = '\0';
  const tn_status status = call(&error);
  check(status, error);
}

// Carries the first exception of callbacks around C, through which it must not pass.
class CallbackFailure {
 public:
  // Runs `work`; false if it returned false or threw, or a callback before it did.
  template <typename Work>
  bool keep(Work work) {
    if (first_) return false;
    try {
      if constexpr (std::is_same_v<decltype(work()), bool>) return work();
      work();
      return true;
    } catch (...) {
      first_ = std::current_exception();
      return false;
    }
  }
  // After the C function.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::exception_ptr first_;
};

// call(callback, user, &error) -> status; the callback runs take(arguments...), whose exceptions the caller gets. It
// returns a Result: void, or where `take` returns whether to go on an int32_t, not 0 to end.
template <typename Result, typename... Arguments, typename Take, typename Call>
void collect(Take take, Call call) {
  struct Target {
    Take& take;
    CallbackFailure failure;
  } target{take, {}};
  const auto callback = [](void* user, Arguments... arguments) {
    auto& to = *static_cast<Target*>(user);
    return static_cast<Result>(to.failure.keep([&] { return to.take(arguments...); }) ? 0 : 1);
  };
  checked([&](tn_error* error) {
    const tn_status status = call(callback, static_cast<void*>(&target), error);
    target.failure.rethrow();
    return status;
  });
}

// call(write, user, &error) -> status; returns the text that was written.
template <typename Call>
std::string written(Call call) {
  std::string result;
  collect<void, const char*, size_t>([&](const char* text, size_t length) { result.append(text, length); }, call);
  return result;
}

// Stores exceptions that the application threw in a callback from C, each under a number. The subject of the C error
// carries the number, by which the failing call finds and rethrows the exception. Any thread.
class ExceptionStore {
 public:
  // Inside a catch block: stores the current exception.
  tn_status keep(tn_error* error) noexcept {
    tn_status code = TN_INVALID;
    try {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::string why = "no std::exception";
      try {
        throw;
      } catch (const Error& caught) {
        code = caught.code();
        why = caught.what();
      } catch (const std::exception& caught) {
        why = caught.what();
      } catch (...) {
      }
      constexpr std::size_t kMost = 256;  // exceptions of a read-ahead that was dropped stay here
      if (kept_.size() == kMost) kept_.erase(kept_.begin());
      kept_[++last_] = std::current_exception();
      const std::string name = name_of(last_), text = name + " of the application: " + why;
      error->message[text.copy(error->message, sizeof error->message - 1)] = '\0';
      error->subject[name.copy(error->subject, sizeof error->subject - 1)] = '\0';
    } catch (...) {
      code = TN_OUT_OF_MEMORY;
    }
    return error->code = code;
  }
  // Rethrows the exception whose number the subject carries, if any.
  void rethrow(const char* subject) {
    std::exception_ptr found;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (auto it = kept_.begin(); it != kept_.end() && !found; ++it)
        if (name_of(it->first) == subject) found = it->second, it->second = nullptr;
    }
    if (found) std::rethrow_exception(found);
  }

 private:
  static std::string name_of(std::uint64_t number) { return "exception " + std::to_string(number); }
  std::mutex mutex_;
  std::map<std::uint64_t, std::exception_ptr> kept_;
  std::uint64_t last_ = 0;
};

}  // namespace detail

}  // namespace v0
}  // namespace tenon
#endif
