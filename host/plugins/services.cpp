// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/services.h"

#include <cstring>

#include "host/plugins/thread_tags.h"

namespace tenon::host {

Services::Services(std::shared_ptr<Allocator> allocator, LogFunction log, ThreadTags* tags,
                   std::shared_ptr<const OptionTable> options)
    : allocator_(std::move(allocator)), log_function_(std::move(log)), tags_(tags), option_table_(std::move(options)) {
  services_.size = sizeof services_;
  services_.abi_major = TN_ABI_MAJOR;
  services_.abi_minor = TN_ABI_MINOR;
  services_.self = this;
  services_.extension = [](void* self, const char* id) -> const void* {
    const auto& services = *static_cast<const Services*>(self);
    if (id == nullptr) return nullptr;
    if (std::strcmp(id, TN_LOG) == 0) return &services.log_;
    if (std::strcmp(id, TN_MEMORY) == 0) return &services.memory_;
    if (std::strcmp(id, TN_OPTIONS) == 0) return &services.options_;
    return nullptr;
  };
  log_.size = sizeof log_;
  log_.self = this;
  log_.write = [](void* self, int32_t level, const char* message) {
    const auto& services = *static_cast<const Services*>(self);
    if (!services.log_function_ || message == nullptr) return;
    try {
      services.log_function_(level, message);
    } catch (...) {  // a log line may be lost; the exception must not reach the plugin
    }
  };
  memory_.size = sizeof memory_;
  memory_.self = this;
  memory_.allocate = [](void* self, uint64_t bytes) -> void* {
    const auto& services = *static_cast<const Services*>(self);
    if (services.tags_ != nullptr) services.tags_->expect({Tag::kSetup, Tag::kIo}, "tenon.memory/1 allocate");
    try {
      return services.allocator_->allocate(bytes);
    } catch (...) {
      return nullptr;
    }
  };
  memory_.release = [](void* self, void* memory, uint64_t bytes) {
    const auto& services = *static_cast<const Services*>(self);
    if (services.tags_ != nullptr) services.tags_->expect({Tag::kSetup, Tag::kIo}, "tenon.memory/1 release");
    if (memory != nullptr) services.allocator_->release(memory, bytes);
  };
  options_.size = sizeof options_;
  options_.self = this;
  options_.of = [](void* self, const char* plugin) -> const tn_attributes* {
    const auto& services = *static_cast<const Services*>(self);
    return services.option_table_ == nullptr || plugin == nullptr ? nullptr : services.option_table_->find(plugin);
  };
}

}  // namespace tenon::host
