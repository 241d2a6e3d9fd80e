// Functions of the application that the host calls. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon_base.h>

#include <string>

#include "base/not_copied.h"
#include "core/error.h"

namespace tenon::host::api {

using namespace core;

// The application's pointer for its functions, which share it. Released at the end only if use() was called: as long as
// a call may fail, the application owns it.
class User : base::NotCopied {
 public:
  User(void* user, void (*release)(void*)) : user_(user), release_(release) {}
  ~User() {
    if (used_ && release_ != nullptr) release_(user_);
  }

  [[nodiscard]] void* get() const { return user_; }
  void use() { used_ = true; }

 private:
  void* user_;
  void (*release_)(void*);
  bool used_ = false;
};

// Calls tn_status call(tn_error*), a function of `who`; turns its failure into an Error.
template <typename Call>
void call_application(const std::string& who, const Call& call) {
  tn_error error = {};
  error.size = sizeof error;
  const tn_status status = call(&error);
  error.message[sizeof error.message - 1] = '\0';
  error.subject[sizeof error.subject - 1] = '\0';
  if (status != TN_OK)
    fail(status > TN_OK && status <= TN_INTERNAL && status != TN_END ? status : tn_status{TN_INVALID},
         ComponentName{who}, SubjectName{error.subject},
         error.message[0] != '\0' ? error.message : status_text(status));
}

}  // namespace tenon::host::api
