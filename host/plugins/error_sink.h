// Collects the reports of a component and throws them as an Error. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <mutex>
#include <string>

#include "core/error.h"
#include "core/shape.h"
#include "host/plugins/thread_tags.h"

namespace tenon::host {

using namespace core;

// Keeps the last report. Neither copied nor moved, since components keep the pointer get(). Thread-safe.
class ErrorSink : base::NotCopied {
 public:
  // who: the component that is called, such as `layer "hidden" (fc)`. tags: null if checking is off. names: those of
  // the symbols in reported shapes; if null, shapes show the numbers of symbols. Tags and names must outlive the sink.
  explicit ErrorSink(std::string who, ThreadTags* tags = nullptr, const SymbolNames* names = nullptr);

  [[nodiscard]] const tn_errors* get() const { return errors_.get(); }
  [[nodiscard]] const std::string& who() const { return who_; }

  // Returns for TN_OK. Otherwise throws Error: "<who>: <port>: <message> (expected ..., got ...)" from the last report,
  // or a text that names the status if there was no report; the component is `who`, the subject the port. An unknown
  // status becomes TN_PLUGIN_FAULT. Clears the report.
  // If TN_OUT_OF_MEMORY or TN_PLUGIN_FAULT was reported, the Error has this code, whatever failure `status` is: a
  // plugin that a callback gives no value, such as the number of a parameter, cannot know the reason.
  void check(tn_status status) { check(status, who_); }
  // The same with `who` as the component, for a sink that several components report to.
  void check(tn_status status, const std::string& who);
  // Reports the failure of a callback of the host. check() then fails with the first one, whatever the plugin returns.
  void report(const Error& error) noexcept { fail_callback(error.code(), error.what(), error.subject().c_str()); }
  void report(tn_status code, const char* message) noexcept { fail_callback(code, message, ""); }
  // Reports a refusal after which the plugin may go on.
  void advise(tn_status code, const char* message) noexcept { keep(code, message, ""); }

 private:
  void report(const tn_error_report& report) noexcept;
  void keep(tn_status code, const char* message, const char* subject) noexcept;
  void fail_callback(tn_status code, const char* message, const char* subject) noexcept;
  void store(tn_status code, std::string message, std::string subject) noexcept;

  std::string who_;
  const SymbolNames* const names_;
  std::mutex mutex_;
  std::string message_;  // empty: nothing was reported
  std::string subject_;
  tn_status reported_ = TN_OK;
  tn_status failed_ = TN_OK;  // of the first callback that failed; the report is its own then
  Loan<tn_errors> errors_;
};

}  // namespace tenon::host
