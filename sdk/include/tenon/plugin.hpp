/* Tenon SDK for C++17: the descriptor. SPDX-License-Identifier: MIT
 *
 *   void describe(tn::Plugin& plugin) {
 *     plugin.about("vendor.double", "1.0.0", "one line", "MIT");
 *     plugin.layer<Double>();
 *   }
 *   const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
 */
#ifndef TENON_PLUGIN_HPP
#define TENON_PLUGIN_HPP

#include <tenon/plugin.h>

#include <cstring>
#include <tenon/kernel.hpp>
#include <tenon/layer.hpp>
#include <tenon/reader.hpp>
#include <tenon/updater.hpp>

namespace tn {

// Filled by describe. Strings are literals, tables static.
class Plugin {
 public:
  Plugin() {
    table_.size = sizeof table_;
    table_.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, detail::required_minor(), 0};
    table_.isa = "";
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  // id: reverse domain; version: "1.2.3"; doc: one line; license: an SPDX expression.
  void about(const char* id, const char* version, const char* doc, const char* license) {
    table_.id = id;
    table_.version = version;
    table_.doc = doc;
    table_.license = license;
  }
  // CPU features that must be present, comma separated.
  void isa(const char* features) { table_.isa = features; }
  // The oldest minor version of the host that the plugin runs on, if it uses newer members of the C tables, or newer
  // values in calls: TN_TRAIT_*, TN_GRAIN_MATRIX. Wrappers, and values in the tables of components, state theirs
  // themselves.
  void requires_minor(uint16_t minor) {
    if (table_.abi.required < minor) table_.abi.required = minor;
  }
#if TN_TARGET_MINOR >= 4
  // The same for one component alone, which this plugin has added: plugin.requires_minor(5, tn::layer_type<Scan>()).
  // Its calls of wrappers then state no requirement of the whole plugin: body.prefix_sum<TN_ABI_OLDEST>(...).
  template <uint16_t kMinor = 4>
  void requires_minor(uint16_t minor, const void* component) {
    require<kMinor>();
    requirements_.add({sizeof(tn_requirement), minor, component});
  }
#endif
#if TN_TARGET_MINOR >= 3
  // An option that a plugin set may set, a bool, int, float or string; tn::options reads it.
  template <uint16_t kMinor = 3>
  void option(const Attribute& attribute) {
    require<kMinor>();
    options_.add(attribute);
  }
#endif
  void library(const char* name, const char* hint) { libraries_.add({sizeof(tn_library), 0, name, hint}); }

  // Costs and metrics are layers.
  template <typename T>
  void layer() {
    layer(layer_type<T>());
  }
  template <typename T>
  void updater() {
    updaters_.add(updater_type<T>());
  }
  template <typename T>
  void reader() {
    readers_.add(reader_type<T>());
  }
  template <typename T>
  void kernel() {
    kernel(tn::kernel<T>());
  }
  void layer(const tn_layer_type* layer) {
    require_names(layer == nullptr ? nullptr : layer->description);
    layers_.add(layer);
  }
  void kernel(const tn_kernel* kernel) {
    if (kernel != nullptr) require_flags(kernel->shared);
    kernels_.add(kernel);
  }
  void updater(const tn_updater_type* updater) { updaters_.add(updater); }
  void reader(const tn_reader_type* reader) { readers_.add(reader); }
  void device(const tn_device_type* device) { devices_.add(device); }
  void provider(const tn_provider* provider) {
    if (provider != nullptr) require_flags(provider->shared);
    providers_.add(provider);
  }

#if TN_TARGET_MINOR >= 4
  // A communicator, a draft (tenon/draft/comm.h).
  template <uint16_t kMinor = 4>
  void comm(const tn_comm_type* comm) {
    require<kMinor>();
    comms_.add(comm);
  }
#endif

  const tn_plugin* get() {
    table_.layers_count = layers_.count();
    table_.layers = layers_.data();
    table_.kernels_count = kernels_.count();
    table_.kernels = kernels_.data();
    table_.updaters_count = updaters_.count();
    table_.updaters = updaters_.data();
    table_.readers_count = readers_.count();
    table_.readers = readers_.data();
    table_.devices_count = devices_.count();
    table_.devices = devices_.data();
    table_.libraries_count = libraries_.count();
    table_.libraries = libraries_.data();
    table_.providers_count = providers_.count();
    table_.providers = providers_.data();
#if TN_TARGET_MINOR >= 3
    table_.options_count = options_.count();
    table_.options = options_.data();
#endif
#if TN_TARGET_MINOR >= 4
    table_.requirements_count = requirements_.count();
    table_.requirements = requirements_.data();
    table_.comms_count = comms_.count();
    table_.comms = comms_.data();
#endif
    return &table_;
  }

 private:
  // Hosts of 0.2 know no parameters of inner layers, "inner.suffix".
  void require_names(const tn_layer_description* d) {
    for (uint32_t i = 0; d != nullptr && d->parameters != nullptr && i < d->parameters_count; ++i)
      if (d->parameters[i] != nullptr && std::strchr(d->parameters[i], '.') != nullptr) requires_minor(3);
  }
  // Hosts before 0.4 know no flags of shared objects.
  void require_flags(const tn_shared* shared) {
#if TN_TARGET_MINOR >= 4
    if (shared != nullptr && shared->flags != 0) requires_minor(4);
#else
    static_cast<void>(shared);
#endif
  }

  detail::Pointers<tn_layer_type, 256> layers_;
  detail::Pointers<tn_kernel, 256> kernels_;
  detail::Pointers<tn_updater_type, 64> updaters_;
  detail::Pointers<tn_reader_type, 64> readers_;
  detail::Pointers<tn_device_type, 16> devices_;
  detail::List<tn_library, 32> libraries_;
  detail::Pointers<tn_provider, 64> providers_;
#if TN_TARGET_MINOR >= 3
  detail::AttributeList<32> options_;
#endif
#if TN_TARGET_MINOR >= 4
  detail::List<tn_requirement, 64> requirements_;
  detail::Pointers<tn_comm_type, 16> comms_;
#endif
  tn_plugin table_ = {};
};

// The options of the plugin with this id, on the host of these services: "tenon.options/1". Valid as long as they.
// Throws tn::Failure, TN_UNSUPPORTED, if the host uses no such plugin.
template <uint16_t kMinor = 3>
Attributes options(const tn_services* services, const char* id) {
  require<kMinor>();
  const tn_attributes* const found = tn_options_of(services, id);
  if (found == nullptr)
    throw Failure(TN_UNSUPPORTED, "", "the host has no options of the plugin \"" + std::string(id) + "\"");
  return Attributes(found);
}

namespace detail {

// A plugin, or the reason why it could not be described. Memory that is missing may be there at the next call: it is
// thrown, so that nothing is made.
template <void (*describe)(Plugin&)>
class Described {
 public:
  Described() {
    try {
      describe(plugin_);
      table_ = plugin_.get();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& thrown) {
      fail(thrown.what());
    } catch (...) {
      fail("an exception of unknown type");
    }
  }
  const tn_plugin* get() const { return table_; }

 private:
  void fail(const char* reason) {
    reason_ = reason;
    failed_.size = sizeof failed_;
    failed_.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, required_minor(), 0};
    failed_.doc = reason_.c_str();
    table_ = &failed_;
  }

  Plugin plugin_;
  std::string reason_;
  tn_plugin failed_ = {};
  const tn_plugin* table_ = nullptr;
};

}  // namespace detail

// The descriptor that `describe` fills, made at the first call. If it throws, a descriptor of nothing but a doc, which
// is the reason, which hosts refuse; null without memory.
template <void (*describe)(Plugin&)>
const tn_plugin* entry() noexcept {
  try {
    static const detail::Described<describe> made;
    return made.get();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace tn
#endif
