// Collects what a component reports, and turns it into an Error. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <mutex>
#include <string>

#include "host/plugins/thread_tags.h"

namespace tenon {

// Fixed in place: components hold on to get(). Thread-safe.
class ErrorSink {
 public:
  // who: what is being talked to, for the message: `layer "hidden" (fc)`. tags: null where nothing is checked.
  explicit ErrorSink(std::string who, ThreadTags* tags = nullptr);
  ErrorSink(const ErrorSink&) = delete;
  ErrorSink& operator=(const ErrorSink&) = delete;

  [[nodiscard]] const tn_errors* get() const { return errors_.get(); }
  [[nodiscard]] const std::string& who() const { return who_; }

  // Nothing for TN_OK. Otherwise throws Error: "<who>: <port>: <message> (expected ..., got ...)" from the last report,
  // or a text that names the status when there was none. A status that is none is TN_PLUGIN_FAULT. Clears the report.
  // A lack of memory that was reported stays one, whatever the status: a plugin that is given no value, such as the
  // number of a parameter, cannot tell why.
  void check(tn_status status);

 private:
  void report(const tn_error_report& report) noexcept;

  std::string who_;
  std::mutex mutex_;
  std::string message_;  // empty: nothing was reported
  tn_status reported_ = TN_OK;
  Loan<tn_errors> errors_;
};

}  // namespace tenon
