// What the kit lends to a component that it opens itself, without a host. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/not_copied.h"

namespace tenon::check {

// An error sink that keeps the last report, and memory as a host would count it; the log is optional.
class KitServices : base::NotCopied {
 public:
  [[nodiscard]] const tn_errors* errors() const { return &errors_; }
  [[nodiscard]] const tn_services* services() const { return &services_; }
  [[nodiscard]] const std::string& reported() const { return reported_; }
  void forget() { reported_.clear(); }
  // ": the report", "" without one.
  [[nodiscard]] std::string reason() const { return reported_.empty() ? "" : ": " + reported_; }

 private:
  static void keep(void* self, const tn_error_report* report) {
    *static_cast<std::string*>(self) = report->message == nullptr ? "" : report->message;
  }
  static const void* service(void* self, const char* id) { return std::strcmp(id, TN_MEMORY) == 0 ? self : nullptr; }
  static void* allocate(void*, uint64_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  static void release(void*, void* memory, uint64_t) { std::free(memory); }

  std::string reported_;
  tn_errors errors_ = {sizeof(tn_errors), 0, &reported_, keep};
  tn_memory memory_ = {sizeof(tn_memory), 0, nullptr, allocate, release};
  tn_services services_ = {sizeof(tn_services), TN_ABI_MAJOR, TN_ABI_MINOR, &memory_, service};
};

}  // namespace tenon::check
