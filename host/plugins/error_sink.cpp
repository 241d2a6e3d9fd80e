// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/error_sink.h"

#include "core/error.h"
#include "core/shape.h"

namespace tenon {

ErrorSink::ErrorSink(std::string who, ThreadTags* tags)
    : who_(std::move(who)), errors_(tags, this, "error sink", who_, true) {
  errors_->report = [](void* self, const tn_error_report* report) {
    const LentUse use(self);
    auto* const sink = use.object<ErrorSink>();
    if (sink != nullptr && report != nullptr) sink->report(*report);
  };
}

void ErrorSink::report(const tn_error_report& report) noexcept try {
  {
    const std::lock_guard lock(mutex_);
    reported_ = report.code;
    message_.clear();
  }
  std::string message;
  if (report.port != nullptr) message += std::string(report.port) + ": ";
  message += report.message != nullptr ? report.message : status_text(report.code);
  const auto shown = [](const tn_spec* spec) {
    try {
      return to_string(Spec::from(*spec));
    } catch (const Error&) {
      return std::string("no valid specification");
    }
  };
  if (report.expected != nullptr && report.actual != nullptr)
    message += " (expected " + shown(report.expected) + ", got " + shown(report.actual) + ")";
  else if (report.expected != nullptr)
    message += " (expected " + shown(report.expected) + ")";
  else if (report.actual != nullptr)
    message += " (got " + shown(report.actual) + ")";
  const std::lock_guard lock(mutex_);
  message_ = std::move(message);
} catch (...) {  // a report that cannot be rendered is lost; check() still names the status
}

void ErrorSink::check(tn_status status) {
  std::string message;
  {
    const std::lock_guard lock(mutex_);
    message.swap(message_);
    if (status != TN_OK && reported_ == TN_OUT_OF_MEMORY) status = reported_;
    reported_ = TN_OK;
  }
  if (status == TN_OK) return;
  const bool known = status > TN_OK && status <= TN_INTERNAL;
  if (!known)
    message = text("unknown status ", status, message.empty() ? "" : ": ", message);
  else if (message.empty())
    message = text(status_text(status), ", without a reason");
  throw Error(known ? status : tn_status{TN_PLUGIN_FAULT}, who_ + ": " + message);
}

}  // namespace tenon
