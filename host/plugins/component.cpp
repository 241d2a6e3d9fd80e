// Copies a plugin's tables into the host's own full-size ones. Placeholders that return TN_UNSUPPORTED replace missing
// functions, so callers need no null checks; null stays only where it has a meaning of its own.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "host/plugins/loader.h"

namespace tenon::host {

namespace {

// Copies a table that may have been made by another version: its size says how many bytes it has; the rest is 0.
template <typename Table>
Table full_size(const Table& from) {
  Table table = {};
  std::memcpy(&table, &from, std::min<size_t>(from.size, sizeof table));
  table.size = sizeof table;
  return table;
}

template <typename Function>
void fill(Function*& slot, Function* otherwise) {
  if (slot == nullptr) slot = otherwise;
}

tn_status missing(const tn_errors* errors, const char* what) { return tn_fail(errors, TN_UNSUPPORTED, nullptr, what); }

tn_layer_type adopt(const tn_layer_type& from) {
  tn_layer_type table = full_size(from);
  fill(
      table.plan, +[](const tn_planner* p) { return missing(p->errors, "the plugin offers no plan for this layer"); });
  if (table.description->role == TN_ROLE_METRIC)  // elsewhere null says that there is nothing to finalize
    fill(
        table.finalize,
        +[](const tn_finalizer* f) { return missing(f->errors, "the plugin offers no finalize for this metric"); });
  return table;
}

tn_updater_type adopt(const tn_updater_type& from) {
  tn_updater_type table = full_size(from);
  fill(
      table.record, +[](const tn_update_recorder* r) { return missing(r->errors, "the plugin offers no record"); });
  return table;
}

tn_reader_type adopt(const tn_reader_type& from) {
  tn_reader_type table = full_size(from);
  fill(
      table.open,
      +[](const tn_reader_open* open, void**) { return missing(open->errors, "the plugin offers no open"); });
  fill(
      table.close, +[](void*) {});
  fill(
      table.schema, +[](void*) -> const tn_reader_schema* { return nullptr; });
  fill(
      table.samples, +[](void*) -> int64_t { return -1; });
  fill(
      table.next, +[](void*, const tn_reader_buffers*, int64_t*) -> tn_status { return TN_UNSUPPORTED; });
  fill(
      table.position, +[](void*) -> int64_t { return -1; });
  fill(
      table.seek, +[](void*, int64_t) -> tn_status { return TN_UNSUPPORTED; });
  return table;
}

tn_device_type adopt(const tn_device_type& from) {
  tn_device_type table = full_size(from);
  fill(
      table.count,
      +[](void*, const tn_errors* errors) -> int32_t { return -missing(errors, "the plugin offers no count"); });
  fill(
      table.open,
      +[](const tn_device_open* open, void**) { return missing(open->errors, "the plugin offers no open"); });
  fill(
      table.close, +[](void*) {});
  fill(
      table.properties, +[](void*, const tn_errors* errors, tn_device_properties*) {
        return missing(errors, "the plugin offers no properties");
      });
  fill(
      table.allocate, +[](void*, const tn_errors* errors, uint64_t) -> void* {
        missing(errors, "the plugin offers no allocate");
        return nullptr;
      });
  fill(
      table.release, +[](void*, void*, uint64_t) {});
  fill(
      table.copy,
      +[](void*, const tn_errors* errors, const tn_copy*) { return missing(errors, "the plugin offers no copy"); });
  fill(
      table.fill, +[](void*, const tn_errors* errors, void*, void*, uint8_t, uint64_t) {
        return missing(errors, "the plugin offers no fill");
      });
  fill(
      table.stream_create,
      +[](void*, const tn_errors* errors, void**) { return missing(errors, "the plugin offers no stream_create"); });
  fill(
      table.stream_destroy, +[](void*, void*) {});
  fill(
      table.stream_wait,
      +[](void*, const tn_errors* errors, void*) { return missing(errors, "the plugin offers no stream_wait"); });
  fill(
      table.event_create,
      +[](void*, const tn_errors* errors, void**) { return missing(errors, "the plugin offers no event_create"); });
  fill(
      table.event_destroy, +[](void*, void*) {});
  fill(
      table.event_record, +[](void*, const tn_errors* errors, void*, void*) {
        return missing(errors, "the plugin offers no event_record");
      });
  fill(
      table.event_wait,
      +[](void*, const tn_errors* errors, void*, void*) { return missing(errors, "the plugin offers no event_wait"); });
  return table;
}

tn_kernel adopt(const tn_kernel& from) {
  tn_kernel table = full_size(from);
  fill(
      table.supports, +[](const tn_kernel_site*, int32_t*) -> tn_status { return TN_UNSUPPORTED; });
  fill(
      table.query, +[](const tn_kernel_site*, tn_kernel_needs*) -> tn_status { return TN_UNSUPPORTED; });
  fill(
      table.prepare, +[](const tn_kernel_site* site, int32_t, tn_prepared*) {
        return missing(site->errors, "the plugin offers no prepare for this kernel");
      });
  return table;
}

}  // namespace

Components adopt(const tn_plugin& plugin, const Manifest& manifest, ThreadTags* tags, std::recursive_mutex* setup) {
  const Origin origin{manifest.id, tags, manifest.version, setup, manifest.abi.built};
  Components result;
  for (size_t i = 0; i < manifest.layers.size(); ++i)
    result.layers.push_back({origin, manifest.layers[i], adopt(*plugin.layers[i])});
  for (size_t i = 0; i < manifest.updaters.size(); ++i)
    result.updaters.push_back({origin, manifest.updaters[i], adopt(*plugin.updaters[i])});
  for (size_t i = 0; i < manifest.readers.size(); ++i)
    result.readers.push_back({origin, manifest.readers[i], adopt(*plugin.readers[i])});
  for (size_t i = 0; i < manifest.devices.size(); ++i)
    result.devices.push_back({origin, manifest.devices[i].kind, adopt(*plugin.devices[i])});
  for (size_t i = 0; i < manifest.kernels.size(); ++i)
    result.kernels.push_back({origin, adopt(*plugin.kernels[i]), manifest.kernels[i].chain});
  for (size_t i = 0; i < manifest.providers.size(); ++i)
    result.providers.push_back({origin, full_size(*plugin.providers[i])});
  return result;
}

}  // namespace tenon::host
