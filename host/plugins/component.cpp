// Copies a plugin's tables into the host's own full-size ones. Placeholders that return TN_UNSUPPORTED replace missing
// functions, so callers need no null checks; null stays only where it has a meaning of its own.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/full_table.h"
#include "host/plugins/loader.h"

namespace tenon::host {

namespace {

tn_status missing(const tn_errors* errors, const char* what) { return tn_fail(errors, TN_UNSUPPORTED, nullptr, what); }

template <size_t kSize>
struct Text {
  consteval Text(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }
  char text[kSize] = {};
};

// Fill a slot that is null: with a function that returns kResult, one that does nothing, and one that reports kText to
// the errors that it gets or that its first argument has.
template <auto kResult, typename Result, typename... Arguments>
void fill(Result (*&slot)(Arguments...)) {
  if (slot == nullptr) slot = [](Arguments...) -> Result { return kResult; };
}
template <typename... Arguments>
void fill(void (*&slot)(Arguments...)) {
  if (slot == nullptr) slot = [](Arguments...) {};
}
template <Text kText, typename... More>
void report(tn_status (*&slot)(void*, const tn_errors*, More...)) {
  if (slot == nullptr) slot = [](void*, const tn_errors* errors, More...) { return missing(errors, kText.text); };
}
template <Text kText, typename Request, typename... More>
void report(tn_status (*&slot)(const Request*, More...)) {
  if (slot == nullptr) slot = [](const Request* request, More...) { return missing(request->errors, kText.text); };
}

tn_layer_type adopt(const tn_layer_type& from) {
  tn_layer_type table = base::full_table(from);
  report<"the plugin offers no plan for this layer">(table.plan);
  if (table.description->role == TN_ROLE_METRIC)  // elsewhere null says that there is nothing to finalize
    report<"the plugin offers no finalize for this metric">(table.finalize);
  return table;
}

tn_updater_type adopt(const tn_updater_type& from) {
  tn_updater_type table = base::full_table(from);
  report<"the plugin offers no record">(table.record);
  return table;
}

tn_reader_type adopt(const tn_reader_type& from) {
  tn_reader_type table = base::full_table(from);
  report<"the plugin offers no open">(table.open);
  fill(table.close);
  fill<nullptr>(table.schema);
  fill<-1>(table.samples);
  fill<TN_UNSUPPORTED>(table.next);
  fill<-1>(table.position);
  fill<TN_UNSUPPORTED>(table.seek);
  return table;
}

tn_comm_type adopt(const tn_comm_type& from) {
  tn_comm_type table = base::full_table(from);
  report<"the plugin offers no open">(table.open);
  fill<TN_UNSUPPORTED>(table.world);
  fill<TN_UNSUPPORTED>(table.send);
  fill<TN_UNSUPPORTED>(table.receive);
  fill<TN_UNSUPPORTED>(table.progress);
  fill(table.wake);
  fill(table.abort);
  fill(table.close);
  return table;
}

tn_device_type adopt(const tn_device_type& from) {
  tn_device_type table = base::full_table(from);
  if (table.count == nullptr)
    table.count = [](void*, const tn_errors* errors) -> int32_t {
      return -missing(errors, "the plugin offers no count");
    };
  report<"the plugin offers no open">(table.open);
  fill(table.close);
  report<"the plugin offers no properties">(table.properties);
  if (table.allocate == nullptr)
    table.allocate = [](void*, const tn_errors* errors, uint64_t) -> void* {
      missing(errors, "the plugin offers no allocate");
      return nullptr;
    };
  fill(table.release);
  report<"the plugin offers no copy">(table.copy);
  report<"the plugin offers no fill">(table.fill);
  report<"the plugin offers no stream_create">(table.stream_create);
  fill(table.stream_destroy);
  report<"the plugin offers no stream_wait">(table.stream_wait);
  report<"the plugin offers no event_create">(table.event_create);
  fill(table.event_destroy);
  report<"the plugin offers no event_record">(table.event_record);
  report<"the plugin offers no event_wait">(table.event_wait);
  return table;
}

tn_kernel adopt(const tn_kernel& from) {
  tn_kernel table = base::full_table(from);
  fill<TN_UNSUPPORTED>(table.supports);
  fill<TN_UNSUPPORTED>(table.query);
  report<"the plugin offers no prepare for this kernel">(table.prepare);
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
  for (size_t i = 0; i < manifest.comms.size(); ++i)
    result.comms.push_back({origin, manifest.comms[i], adopt(*plugin.comms[i])});
  for (size_t i = 0; i < manifest.kernels.size(); ++i)
    result.kernels.push_back({origin, adopt(*plugin.kernels[i]), manifest.kernels[i].chain});
  for (size_t i = 0; i < manifest.providers.size(); ++i)
    result.providers.push_back({origin, base::full_table(*plugin.providers[i])});
  return result;
}

}  // namespace tenon::host
