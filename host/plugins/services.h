// The services that the host offers to plugins by id. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/services.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/system.h"
#include "host/plugins/set/plugin_options.h"

namespace tenon::host {

using namespace core;

struct Origin;
class ThreadTags;

using LogFunction = std::function<void(int32_t level, const char* message)>;

// What plugins get, each its own tables: their options, and what they use is counted by plugin. Neither copied nor
// moved, since plugins keep pointers to them. Thread-safe.
class Services : base::NotCopied {
 public:
  // tags: null if checking is off; must outlive the services. options: null: no plugin has options.
  Services(std::shared_ptr<Allocator> allocator, LogFunction log, ThreadTags* tags = nullptr,
           std::shared_ptr<const OptionTable> options = nullptr);
  ~Services();

  // Returns the tables of a plugin, which live as long as this. A plugin sees its own options alone; one that was built
  // before 0.4 sees those of others, as hosts of then showed them.
  [[nodiscard]] const tn_services* tables(const Origin& plugin) const;

  // What a plugin uses of tenon.memory/1 at present, and has written by tenon.log/1.
  struct Usage {
    uint64_t bytes = 0;
    uint64_t log_lines = 0;
  };
  [[nodiscard]] Usage usage(const std::string& plugin) const;

 private:
  struct OfPlugin;

  std::shared_ptr<Allocator> allocator_;
  LogFunction log_function_;
  ThreadTags* tags_;
  std::shared_ptr<const OptionTable> option_table_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<OfPlugin>> plugins_;  // by id
};

}  // namespace tenon::host
