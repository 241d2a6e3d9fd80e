// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/services.h"

#include <cstring>

#include "host/plugins/thread_tags.h"

namespace tenon::host {

namespace {

constexpr uint16_t kOwnOptionsSince = 4;  // the minor version

}  // namespace

// The tables of one plugin; `self` of each is this.
struct Services::OfPlugin {
  OfPlugin(const Services& services, const Origin& plugin) : all(services), id(plugin.plugin), built(plugin.built) {
    table.size = sizeof table;
    table.abi_major = TN_ABI_MAJOR;
    table.abi_minor = TN_ABI_MINOR;
    table.self = this;
    table.extension = &extension;
    log = {sizeof log, 0, this, &write};
    memory.size = sizeof memory;
    memory.self = this;
    memory.allocate = &allocate;
    memory.release = &release;
    options.size = sizeof options;
    options.self = this;
    options.of = &options_of;
  }

  static const OfPlugin& from(void* self) { return *static_cast<const OfPlugin*>(self); }
  void expect(const char* function) const {
    if (all.tags_ != nullptr) all.tags_->expect({Tag::kSetup, Tag::kIo, Tag::kComm}, function);
  }

  static const void* extension(void* self, const char* id) {
    const OfPlugin& owner = from(self);
    if (id == nullptr) return nullptr;
    if (std::strcmp(id, TN_LOG) == 0) return &owner.log;
    if (std::strcmp(id, TN_MEMORY) == 0) return &owner.memory;
    if (std::strcmp(id, TN_OPTIONS) == 0) return &owner.options;
    return nullptr;
  }
  static void write(void* self, int32_t level, const char* message) {
    const OfPlugin& owner = from(self);
    if (message == nullptr) return;
    ++owner.log_lines;
    if (!owner.all.log_function_) return;
    try {
      owner.all.log_function_(level, message);
    } catch (...) {  // a log line may be lost; the exception must not reach the plugin
    }
  }
  static void* allocate(void* self, uint64_t bytes) {
    const OfPlugin& owner = from(self);
    owner.expect("tenon.memory/1 allocate");
    try {
      void* const block = owner.all.allocator_->allocate(bytes);
      owner.bytes += bytes;
      return block;
    } catch (...) {
      return nullptr;
    }
  }
  static void release(void* self, void* block, uint64_t bytes) {
    const OfPlugin& owner = from(self);
    owner.expect("tenon.memory/1 release");
    if (block == nullptr) return;
    owner.bytes -= bytes;
    owner.all.allocator_->release(block, bytes);
  }
  static const tn_attributes* options_of(void* self, const char* plugin) {
    const OfPlugin& owner = from(self);
    if (owner.all.option_table_ == nullptr || plugin == nullptr) return nullptr;
    if (owner.built >= kOwnOptionsSince && owner.id != plugin) return nullptr;
    return owner.all.option_table_->find(plugin);
  }

  const Services& all;
  const std::string id;
  const uint16_t built;
  tn_services table = {};
  tn_log log = {};
  tn_memory memory = {};
  tn_options options = {};
  mutable std::atomic<uint64_t> bytes{0}, log_lines{0};
};

Services::Services(std::shared_ptr<Allocator> allocator, LogFunction log, ThreadTags* tags,
                   std::shared_ptr<const OptionTable> options)
    : allocator_(std::move(allocator)), log_function_(std::move(log)), tags_(tags), option_table_(std::move(options)) {}

Services::~Services() = default;

const tn_services* Services::tables(const Origin& plugin) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<OfPlugin>& entry = plugins_[plugin.plugin];
  if (entry == nullptr) entry = std::make_unique<OfPlugin>(*this, plugin);
  return &entry->table;
}

Services::Usage Services::usage(const std::string& plugin) const {
  const std::lock_guard lock(mutex_);
  const auto entry = plugins_.find(plugin);
  return entry == plugins_.end() ? Usage{} : Usage{entry->second->bytes, entry->second->log_lines};
}

}  // namespace tenon::host
