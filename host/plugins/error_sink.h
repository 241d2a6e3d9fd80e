// Collects what a component reports, and turns it into an Error. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <mutex>
#include <string>

#include "core/error.h"
#include "core/shape.h"
#include "host/plugins/thread_tags.h"

namespace tenon {

// Fixed in place: components hold on to get(). Thread-safe.
class ErrorSink {
 public:
  // who: the component that is called: `layer "hidden" (fc)`. tags: null where nothing is checked. names: of the
  // symbols in shapes that are reported; null: their numbers. It must outlive the sink.
  explicit ErrorSink(std::string who, ThreadTags* tags = nullptr, const SymbolNames* names = nullptr);
  ErrorSink(const ErrorSink&) = delete;
  ErrorSink& operator=(const ErrorSink&) = delete;

  [[nodiscard]] const tn_errors* get() const { return errors_.get(); }
  [[nodiscard]] const std::string& who() const { return who_; }

  // Nothing for TN_OK. Otherwise throws Error: "<who>: <port>: <message> (expected ..., got ...)" from the last report,
  // or a text that names the status when there was none; the component is `who`, the subject the port. A status that is
  // none is TN_PLUGIN_FAULT. Clears the report.
  // A lack of memory that was reported stays one, whatever the status: a plugin that is given no value, such as the
  // number of a parameter, cannot tell why.
  void check(tn_status status) { check(status, who_); }
  // The same in the name of `who`: for a sink that several components report to.
  void check(tn_status status, const std::string& who);
  // For the host's own callbacks, which fail where a plugin called them.
  void report(const Error& error) noexcept { keep(error.code(), error.what(), error.subject().c_str()); }
  void report(tn_status code, const char* message) noexcept { keep(code, message, ""); }

 private:
  void report(const tn_error_report& report) noexcept;
  void keep(tn_status code, const char* message, const char* subject) noexcept;
  void begin(tn_status code) noexcept;

  std::string who_;
  const SymbolNames* const names_;
  std::mutex mutex_;
  std::string message_;  // empty: nothing was reported
  std::string subject_;
  tn_status reported_ = TN_OK;
  Loan<tn_errors> errors_;
};

}  // namespace tenon
