// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/error_sink.h"

#include "base/utf8.h"
#include "core/attribute.h"

namespace tenon::host {

ErrorSink::ErrorSink(std::string who, ThreadTags* tags, const SymbolNames* names)
    : who_(std::move(who)), names_(names), errors_(tags, this, "error sink", who_, true) {
  errors_->report = [](void* self, const tn_error_report* report) {
    const LoanUse use(self);
    auto* const sink = use.object<ErrorSink>();
    if (sink == nullptr || report == nullptr) return;
    if (TN_HAS(report, tn_error_report, actual))
      sink->report(*report);
    else
      sink->report(TN_PLUGIN_FAULT, "a tn_error_report that states too small a size");
  };
}

// As one, since other threads may report meanwhile.
void ErrorSink::store(tn_status code, std::string message, std::string subject) noexcept {
  const std::lock_guard lock(mutex_);
  if (failed_ != TN_OK) return;
  reported_ = code;
  message_ = std::move(message);
  subject_ = std::move(subject);
}

// Stores the code first: if there is no memory for the text, the code alone is left, and check() names the status.
void ErrorSink::keep(tn_status code, const char* message, const char* subject) noexcept try {
  store(code, {}, {});
  store(code, message, subject);
} catch (...) {
}

void ErrorSink::fail_callback(tn_status code, const char* message, const char* subject) noexcept {
  keep(code, message, subject);
  const std::lock_guard lock(mutex_);
  if (failed_ == TN_OK) failed_ = code;
}

void ErrorSink::report(const tn_error_report& report) noexcept try {
  store(report.code, {}, {});
  std::string message, subject;
  if (report.port != nullptr && *report.port != '\0') {
    subject = report.port;
    message += subject + ": ";
  }
  message += report.message != nullptr ? report.message : status_text(report.code);
  const auto shown = [&](const tn_spec* spec) {
    try {
      return names_ == nullptr ? to_string(Spec::from(*spec)) : to_string(Spec::from(*spec), *names_);
    } catch (const Error&) {
      return std::string("an invalid specification");
    }
  };
  if (report.expected != nullptr && report.actual != nullptr)
    message += " (expected " + shown(report.expected) + ", got " + shown(report.actual) + ")";
  else if (report.expected != nullptr)
    message += " (expected " + shown(report.expected) + ")";
  else if (report.actual != nullptr)
    message += " (got " + shown(report.actual) + ")";
  store(report.code, base::readable_utf8(std::move(message)), base::readable_utf8(std::move(subject)));
} catch (...) {
}

void ErrorSink::check(tn_status status, const std::string& who) {
  std::string message, subject;
  {
    const std::lock_guard lock(mutex_);
    message.swap(message_);
    subject.swap(subject_);
    if (status != TN_OK && (reported_ == TN_OUT_OF_MEMORY || reported_ == TN_PLUGIN_FAULT)) status = reported_;
    if (failed_ != TN_OK && (status == TN_OK || failed_ == TN_PLUGIN_FAULT)) status = failed_;
    reported_ = failed_ = TN_OK;
  }
  if (status == TN_OK) return;
  const bool known = status > TN_OK && status <= TN_INTERNAL;
  if (!known)
    message = text("unknown status ", status, message.empty() ? "" : ": ", message);
  else if (message.empty())
    message = text(status_text(status), ", without a reason");
  throw Error(known ? status : tn_status{TN_PLUGIN_FAULT}, who + ": " + message, who, std::move(subject));
}

}  // namespace tenon::host
