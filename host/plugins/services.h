// What the host offers to plugins by id. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <functional>
#include <memory>

#include "core/seams.h"

namespace tenon {

class ThreadTags;

using LogFunction = std::function<void(int32_t level, const char* message)>;

// The services tables of one host; fixed in place, so that plugins may hold on to them.
class Services {
 public:
  // tags: null where nothing is checked; else it must outlive the services.
  Services(std::shared_ptr<Allocator> allocator, LogFunction log, ThreadTags* tags = nullptr);
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  [[nodiscard]] const tn_services* get() const { return &services_; }

 private:
  std::shared_ptr<Allocator> allocator_;
  LogFunction log_function_;
  ThreadTags* tags_;
  tn_services services_ = {};
  tn_log log_ = {};
  tn_memory memory_ = {};
};

}  // namespace tenon
