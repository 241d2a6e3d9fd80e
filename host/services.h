// What the host offers to plugins by id. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <functional>
#include <memory>

#include "core/seams.h"

namespace tenon {

using LogFunction = std::function<void(int32_t level, const char* message)>;

// The services tables of one host; fixed in place, so that plugins may hold on to them.
class Services {
 public:
  Services(std::shared_ptr<Allocator> allocator, LogFunction log);
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  [[nodiscard]] const tn_services* get() const { return &services_; }

 private:
  std::shared_ptr<Allocator> allocator_;
  LogFunction log_function_;
  tn_services services_ = {};
  tn_log log_ = {};
  tn_memory memory_ = {};
};

}  // namespace tenon
