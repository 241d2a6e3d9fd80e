// An open device and its memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_host.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "host/plugins/error_sink.h"
#include "host/plugins/offered_table.h"
#include "host/plugins/registry.h"
#include "host/plugins/shared_objects.h"

namespace tenon::host {

// An open device: its instance in the plugin, and its properties.
class Device : base::NotCopied {
 public:
  // Returns the providers of a table, by its id, for this kind of device, best score first.
  using FindProviders =
      std::function<std::vector<const Provider*>(const std::string& id, std::vector<RefusedProvider>& refused)>;
  // Opens device number `index`; TN_NOT_FOUND if there is no such device. `find` is called once for each table, when
  // one is first asked for, so that no plugin is loaded for a primitive that nothing uses; null: no providers.
  Device(const DeviceType& type, const Services& services, int32_t index, FindProviders find = nullptr);
  ~Device();

  [[nodiscard]] const std::string& kind() const { return type_.kind; }
  [[nodiscard]] std::string name() const { return kind() + ":" + std::to_string(lent_.index); }
  [[nodiscard]] const std::string& who() const { return who_; }  // `device "cpu"` or `device "cuda:1"`, for messages
  [[nodiscard]] const Origin& origin() const { return type_; }
  [[nodiscard]] const tn_device_type& table() const { return type_.table; }
  [[nodiscard]] void* instance() const { return instance_; }
  // Returns the services of a plugin that works on the device.
  [[nodiscard]] const tn_services* services_of(const Origin& plugin) const { return services_.tables(plugin); }
  // Whether the host may read and write the device's memory, and whether kernels may read the host's memory.
  [[nodiscard]] bool host_memory() const { return properties_.host_memory != 0; }
  [[nodiscard]] bool reads_host_memory() const { return table().description->dlpack_type == kDLCPU; }
  // Returns a tensor of the device without shape and data.
  [[nodiscard]] tn_tensor tensor(tn_dtype dtype, int32_t storage) const;
  // Streams; null is the device's first one.
  [[nodiscard]] void* create_stream();
  void destroy_stream(void* stream) noexcept;
  // Copy and fill in the order of a stream. kind: TN_COPY_*.
  void copy(void* stream, void* to, const void* from, uint64_t bytes, int32_t kind);
  void fill(void* stream, void* to, uint8_t value, uint64_t bytes);
  // Waits until all work of a stream is done; throws the failure of earlier work as one of component `who`.
  void wait(void* stream, const std::string& who);
  // Returns a full-size copy of the device's own table by id; null if it does not offer it, or not the functions that
  // the host needs of it. Other missing members are null.
  template <typename Table>
  [[nodiscard]] const Table* primitives(const char* id) const {
    return static_cast<const Table*>(table_by_id(id, sizeof(Table)));
  }
  // A table of primitives by id.
  template <typename Table>
  struct Offer {
    const Table* table;
    const Origin* by;
    std::string name;         // of the provider; of the device itself: the id of its plugin
    const tn_shared* shared;  // of the provider, or null
  };
  // Returns the tables of the providers, best score first, then the device's own, if any.
  template <typename Table>
  [[nodiscard]] std::vector<Offer<Table>> offers(const char* id);
  // Returns the other providers of the table: of refused plugins, and those whose table lacks a function.
  [[nodiscard]] const std::vector<RefusedProvider>& refused_providers(const std::string& id) {
    return provided(id).refused;
  }
  // The functions of an offer get as device the object of the offer, if it has one, else instance(). Throws as
  // SharedObjects::get does.
  template <typename Table>
  [[nodiscard]] std::shared_ptr<SharedObject> shared_of(const Offer<Table>& offer) {
    return shared_.get(*offer.by, offer.shared);
  }
  [[nodiscard]] void* instance_of(const SharedObject* shared) const {
    return shared == nullptr ? instance_ : shared->get();
  }
  // Returns the device as kernels see it.
  [[nodiscard]] const tn_device* lent() const { return &lent_; }
  // The objects of kernels' and providers' plugins on this device.
  [[nodiscard]] SharedObjects& shared() { return shared_; }

 private:
  void close() noexcept;
  [[nodiscard]] const void* table_by_id(const char* id, size_t bytes) const;
  // Returns a table as the plugin made it. Errors name the device.
  [[nodiscard]] OfferedTable adopt(const void* given, const char* id, const std::string& plugin) const;

  const DeviceType& type_;
  std::string who_;
  const Services& services_;
  void* instance_ = nullptr;
  tn_device_properties properties_ = {};
  tn_device lent_ = {};
  mutable std::mutex mutex_;
  mutable std::map<std::string, OfferedTable, std::less<>> tables_;  // the device's own, by id
  struct Provided {
    const Provider* provider;
    OfferedTable table;
  };
  struct AllProvided {
    std::vector<Provided> found;
    std::vector<RefusedProvider> refused;
  };
  // Returns the providers of a table; finds them at the first call.
  [[nodiscard]] const AllProvided& provided(const std::string& id);
  FindProviders find_providers_;
  std::map<std::string, AllProvided> providers_;  // by id of the table
  SharedObjects shared_;
  std::mutex copying_;  // copy is a [run] function: one call at a time
};

template <typename Table>
std::vector<Device::Offer<Table>> Device::offers(const char* id) {
  std::vector<Offer<Table>> all;
  for (const Provided& each : provided(id).found) {
    const tn_provider& by = each.provider->table;
    if (const auto* table = each.table.as<Table>(); table != nullptr)
      all.push_back({table, each.provider, by.name, by.shared});
  }
  if (const auto* own = primitives<Table>(id); own != nullptr) all.push_back({own, &type_, type_.plugin, nullptr});
  return all;
}

// A block of device memory, or of memory of the host that the device lends for copies.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const std::shared_ptr<Device>& device, uint64_t bytes);
  // Memory of the host from the device's table. `device` offers it.
  static DeviceMemory for_copies(std::shared_ptr<Device> device, uint64_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] uint64_t size() const { return bytes_; }

 private:
  using Release = void (*)(void* device, void* memory, uint64_t bytes);
  template <typename Table>
  DeviceMemory(std::shared_ptr<Device> device, uint64_t bytes, const Table& table);
  void release() noexcept;

  std::shared_ptr<Device> device_;
  Release release_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// A kernel or provider that does not run a call for which it was considered, and why.
struct PassedOver {
  std::string kernel, plugin;
  std::optional<int32_t> score;  // of kernels
  std::string reason;
  bool outranked = false;  // it would have run the call if a better one had not
};

// A call that a component prepared; owns its binding.
class Prepared {
 public:
  // Kernels and providers that were asked for the call and do not run it.
  std::vector<PassedOver> passed_over;

  Prepared() { prepared_.size = sizeof prepared_; }
  ~Prepared();
  Prepared(Prepared&& other) noexcept;
  Prepared& operator=(Prepared&& other) noexcept;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  // The object that prepare() passes on in `arguments`, or null. Call it before prepare().
  void use(std::shared_ptr<SharedObject> shared) { shared_ = std::move(shared); }
  // Prepares the call with `function`, a prepare function of `by`; `arguments` are all but its last one. Call it once.
  // If that fails, the destructor frees the binding that the function set, if any.
  template <typename... Parameters, typename... Arguments>
  void prepare(const Origin& by, ErrorSink& errors, tn_status (*function)(Parameters...), Arguments... arguments) {
    by_ = by;
    who_ = errors.who();
    const TaggedFunction prepares = {Tag::kSetup, "prepare"};
    const SetupLock setup = lock_setup(by, prepares);
    const auto entered = enter();
    errors.check(call_plugin(by, who_, prepares, function, arguments..., &prepared_));
  }
  // Whether run() may have to wait for another call.
  [[nodiscard]] bool waits() const { return shared_ != nullptr && shared_->is_one_at_a_time(); }
  tn_status run(const tn_execution& execution, const tn_call& call) const {
    const auto entered = enter();
    return call_plugin(by_, who_, as(), prepared_.run, prepared_.binding, &execution, &call);
  }
  // The function that run() calls, and its record; for a caller that calls it itself, without checks.
  [[nodiscard]] TaggedFunction as() const { return {Tag::kRun, "run", this}; }
  [[nodiscard]] PluginCall record() const { return record_of(by_, who_, as()); }
  // The component that failures of prepare and run name.
  [[nodiscard]] const std::string& who() const { return who_; }
  // The plugin that prepared it.
  [[nodiscard]] const Origin& by() const { return by_; }
  [[nodiscard]] const tn_prepared& operator*() const { return prepared_; }
  [[nodiscard]] const tn_prepared* operator->() const { return &prepared_; }

 private:
  [[nodiscard]] std::unique_lock<std::mutex> enter() const {
    return shared_ == nullptr ? std::unique_lock<std::mutex>() : shared_->enter();
  }

  std::shared_ptr<SharedObject> shared_;  // outlives the binding
  tn_prepared prepared_ = {};
  Origin by_;
  std::string who_;
};

// An opcode of a program that is newer than the opset of a table; op is 0 if the table knows all opcodes.
struct NewerOpcode {
  uint16_t op = 0;
  uint32_t opset = 0;  // of the table
};
[[nodiscard]] NewerOpcode newer_opcode(uint32_t opset, const tn_program& program);
template <typename Table, typename Site>
NewerOpcode newer_opcode(const Table& table, const Site& site) {
  if constexpr (std::is_same_v<Site, tn_pointwise_site>)
    return newer_opcode(table.opset, *site.program);
  else if constexpr (std::is_same_v<Site, tn_gemm_epilogue> || std::is_same_v<Site, tn_conv_epilogue> ||
                     std::is_same_v<Site, tn_row_sparse_update>)
    return newer_opcode(table.opset, *site.site->program);
  else
    return {};  // a primitive without a program
}
// "it knows the opcodes of opset 2; sin is of opset 3"
[[nodiscard]] std::string unknown_opcode(const NewerOpcode& newer);
// Returns the message of an error about the component `who`, without its name.
[[nodiscard]] std::string reason_of(const Error& error, const std::string& who);
// Throws TN_UNSUPPORTED about the component `who`, naming the device, its opset and the opcode.
[[noreturn]] void refuse(const Device& device, const NewerOpcode& newer, const std::string& who);

// Prepares a call by function `prepare` of the best table `id` for the device that takes the site: a provider that
// returns TN_UNSUPPORTED, or does not know an opcode of the site's program, leaves the call to the next. Returns the
// name of the table's maker.
template <typename Table, typename Site>
std::string prepare_primitive(Device& device, const char* id,
                              tn_status (*Table::*prepare)(void*, const tn_services*, const tn_errors*, const Site*,
                                                           tn_prepared*),
                              const Site* site, ErrorSink& errors, Prepared& prepared) {
  std::vector<PassedOver> passed_over;
  for (const RefusedProvider& each : device.refused_providers(id))
    passed_over.push_back({each.name, each.plugin, std::nullopt, each.reason});
  for (const Device::Offer<Table>& offer : device.offers<Table>(id)) {
    if (offer.table->*prepare == nullptr) {  // of two functions, each of which may be absent
      if (offer.by != &device.origin())
        passed_over.push_back({offer.name, offer.by->plugin, std::nullopt, "its table has no function for the call"});
      continue;
    }
    if (const NewerOpcode newer = newer_opcode(*offer.table, *site); newer.op != 0) {
      if (offer.by == &device.origin()) refuse(device, newer, errors.who());
      passed_over.push_back({offer.name, offer.by->plugin, std::nullopt, unknown_opcode(newer)});
      continue;
    }
    Prepared made;
    try {
      const std::shared_ptr<SharedObject> shared = device.shared_of(offer);
      made.use(shared);
      made.prepare(*offer.by, errors, offer.table->*prepare, device.instance_of(shared.get()),
                   device.services_of(*offer.by), errors.get(), site);
    } catch (const Error& error) {
      if (error.code() != TN_UNSUPPORTED || offer.by == &device.origin()) throw;
      passed_over.push_back({offer.name, offer.by->plugin, std::nullopt, reason_of(error, errors.who())});
      continue;
    }
    prepared = std::move(made);
    prepared.passed_over = std::move(passed_over);
    return offer.name;
  }
  fail(TN_UNSUPPORTED, ComponentName{errors.who()}, "device \"", device.kind(), "\" does not offer ", id);
}

}  // namespace tenon::host
