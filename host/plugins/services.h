// The services that the host offers to plugins by id. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <functional>
#include <memory>

#include "core/system.h"
#include "host/plugins/set/plugin_options.h"

namespace tenon::host {

using namespace core;

class ThreadTags;

using LogFunction = std::function<void(int32_t level, const char* message)>;

// The service tables of one host. Neither copied nor moved, since plugins keep pointers to them.
class Services {
 public:
  // tags: null if checking is off; must outlive the services. options: null: no plugin has options.
  Services(std::shared_ptr<Allocator> allocator, LogFunction log, ThreadTags* tags = nullptr,
           std::shared_ptr<const OptionTable> options = nullptr);
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  [[nodiscard]] const tn_services* get() const { return &services_; }

 private:
  std::shared_ptr<Allocator> allocator_;
  LogFunction log_function_;
  ThreadTags* tags_;
  std::shared_ptr<const OptionTable> option_table_;
  tn_services services_ = {};
  tn_log log_ = {};
  tn_memory memory_ = {};
  tn_options options_ = {};
};

}  // namespace tenon::host
