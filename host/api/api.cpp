// The public C API: library, host, and the functions of api.h. SPDX-License-Identifier: Apache-2.0
#include "host/api/api.h"

#include <tenon/tenon_machine.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "core/error.h"
#include "core/files/destination.h"
#include "core/plugin_call.h"
#include "host/layers/host_attributes.h"
#include "host/layers/renames.h"
#include "host/training/updater_options.h"

namespace tenon::host::api {

namespace {

template <size_t kRoom>
void copy_text(char (&to)[kRoom], const char* text) noexcept {
  const size_t length = std::min(std::strlen(text), kRoom - 1);
  std::memcpy(to, text, length);
  to[length] = '\0';
}

}  // namespace

tn_status set_error(tn_error* error, tn_status code, const char* message, const char* component,
                    const char* subject) noexcept {
  if (error == nullptr || !TN_HAS(error, tn_error, message)) return code;
  error->code = code;
  copy_text(error->message, message);
  if (TN_HAS(error, tn_error, component)) copy_text(error->component, component);
  if (TN_HAS(error, tn_error, subject)) copy_text(error->subject, subject);
  return code;
}

std::vector<std::string> strings(const char* const* texts, uint32_t count, const char* argument) {
  if (count > 0) required(texts, argument);
  std::vector<std::string> result;
  for (uint32_t i = 0; i < count; ++i) result.push_back(string(texts[i], argument, i));
  return result;
}

std::string string(const char* text, const char* argument) { return &required(text, argument); }

bool channels_first(uint32_t layout, const char* argument) {
  if (layout != TN_CHANNELS_LAST && layout != TN_CHANNELS_FIRST)
    fail(TN_INVALID, SubjectName{argument}, argument, " is ", layout,
         "; expected TN_CHANNELS_LAST or TN_CHANNELS_FIRST");
  return layout == TN_CHANNELS_FIRST;
}

std::string string(const char* text, const char* list, size_t index, const char* member) {
  if (text == nullptr) fail(TN_MISUSE, SubjectName{list}, list, "[", index, "]", member, " is null");
  return text;
}

namespace {

// Returns a copy of an attribute's value. list, index: its place, for messages.
Value value_of(const tn_named_value& attribute, const char* list, size_t index) try {
  const tn_value& value = attribute.value;
  const bool is_list = value.kind >= TN_ATTR_INTS && value.kind <= TN_ATTR_STRINGS;
  const bool is_pointer = value.kind == TN_ATTR_STRING || (is_list && value.count > 0);
  if (is_pointer && value.as.s == nullptr) fail(TN_MISUSE, list, "[", index, "].value is null");
  return value_from(value);
} catch (const Error& error) {
  const Error named = error.with_context(text("attribute \"", attribute.name, "\""));
  throw Error(named.code(), named.message(), named.component(), attribute.name);
}

}  // namespace

Values values(const tn_named_value* attributes, uint32_t count, const char* argument) {
  if (count > 0) required(attributes, argument);
  Values result;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = string(attributes[i].name, argument, i, ".name");
    if (!result.emplace(name, value_of(attributes[i], argument, i)).second)
      fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\" is given twice");
  }
  return result;
}

std::vector<SlotNames> names(const tn_names* const* names, uint32_t count, const char* argument) {
  if (count > 0) required(names, argument);
  std::vector<SlotNames> result;
  for (uint32_t i = 0; i < count; ++i) {
    const tn_names& from = required(names[i], argument, i);
    if (from.size == 0) fail(TN_MISUSE, SubjectName{argument}, argument, "[", i, "].size is 0; it was not set");
    const std::string slot = string(from.slot, argument, i, ".slot");
    if (std::any_of(result.begin(), result.end(), [&](const SlotNames& other) { return other.slot == slot; }))
      fail(TN_INVALID, SubjectName{slot}, argument, ": names of \"", slot, "\" are given twice");
    result.push_back({slot, adopt_names(&from, true, TN_INVALID, text(argument, ": \"", slot, "\""))});
  }
  return result;
}

namespace {

std::vector<SlotNames> with_integers_first(std::vector<SlotNames> names) {
  std::stable_partition(names.begin(), names.end(), [](const SlotNames& each) { return each.names->count > 0; });
  return names;
}

}  // namespace

std::vector<SlotNames> names_of(HeldParameters& parameters) {
  std::vector<SlotNames> names;
  const SetRead read(parameters.gate);
  for (const auto& [layer, list] : parameters.set->names()) names.push_back({layer, list});
  return with_integers_first(std::move(names));
}

std::vector<SlotNames> names_of(const HeldReader& reader) {
  std::vector<SlotNames> names;
  for (const Slot& slot : reader.reader->slots()) names.push_back({slot.name, known_of(slot)});
  return with_integers_first(std::move(names));
}

void give_names(Host& host, std::vector<SlotNames> known, const tn_names* const** names, uint32_t* count) {
  required(names, "names");
  required(count, "count");
  // Applications of 0.3 get what they were promised, lists of integers alone.
  std::erase_if(known, [](const SlotNames& each) { return each.names->count == 0; });
  const NamesTable& lent = host.lend(std::move(known));
  *names = lent.data();
  *count = lent.size();
}

void give_text(tn_write write, void* user, const std::string& text) {
  required(write, "write")(user, text.data(), text.size());
}

std::vector<LayerOutput> layer_outputs(Host& host, const tn_layer* layers, uint32_t count, const char* argument) {
  if (count > 0) required(layers, argument);
  std::vector<LayerOutput> result;
  for (uint32_t i = 0; i < count; ++i) {
    const bool absent = layers[i].index == 0 && layers[i].generation == 0;
    naming(argument, i, [&] { result.push_back(absent ? LayerOutput{} : host.layers.at(layers[i])); });
  }
  return result;
}

std::vector<LayerOutput> outputs(Host& host, const tn_layer* layers, uint32_t count, const char* argument) {
  std::vector<LayerOutput> result = layer_outputs(host, layers, count, argument);
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i].layer == nullptr) fail(TN_MISUSE, SubjectName{argument}, argument, "[", i, "] is a zeroed handle");
  return result;
}

tn_array array(const ArrayView& view) {
  if (!has_whole_bytes(view.dtype))
    fail(TN_UNSUPPORTED, "values of type ", dtype_name(view.dtype), ": arrays have elements of at least 8 bits");
  tn_array result = {};
  result.device_type = kDLCPU;
  result.dtype = view.dtype;
  result.rank = static_cast<int32_t>(view.shape.size());
  std::copy(view.shape.begin(), view.shape.end(), result.shape);
  result.data = const_cast<void*>(view.data);
  result.storage = view.storage;
  result.levels = view.levels;
  std::copy(std::begin(view.offsets), std::end(view.offsets), result.offsets);
  result.ids = view.ids;
  result.samples = view.samples;
  return result;
}

namespace {

const char* device_name(int32_t dlpack_type) {
  switch (dlpack_type) {
    case kDLCPU:
      return "cpu";
    case kDLCUDA:
      return "cuda";
    case kDLCUDAHost:
      return "cuda_host";
    case kDLCUDAManaged:
      return "cuda_managed";
    case kDLROCM:
      return "rocm";
    default:
      return "unknown";
  }
}

}  // namespace

ArrayView view(const tn_array& array, const std::function<std::string()>& who, const std::string& subject) {
  const bool on_host = (array.device_type == 0 || array.device_type == kDLCPU) && array.device_id == 0;
  if (!on_host)
    fail(TN_UNSUPPORTED, SubjectName{subject}, who(), ": an array on device ", array.device_id, " of type ",
         array.device_type, " (", device_name(array.device_type), "); expected memory of the host (0 or 1)");
  if (array.reserved[0] != nullptr || array.reserved[1] != nullptr)
    fail(TN_UNSUPPORTED, SubjectName{subject}, who(), ": an array with reserved members that are not null");
  if (!has_whole_bytes(array.dtype))
    fail(TN_UNSUPPORTED, SubjectName{subject}, who(), ": an array of ", dtype_name(array.dtype),
         "; expected elements of at least 8 bits");
  if (array.rank < 0 || array.rank > TN_MAX_RANK)
    fail(TN_INVALID, SubjectName{subject}, who(), ": an array of rank ", array.rank, "; expected 0 to ", TN_MAX_RANK);
  if (array.storage != TN_DENSE && array.storage != TN_RAGGED && array.storage != TN_CSR)
    fail(TN_INVALID, SubjectName{subject}, who(), ": an array of storage ", array.storage,
         "; expected TN_DENSE, TN_RAGGED or TN_CSR");
  if (array.storage == TN_CSR && array.strides != nullptr)
    fail(TN_INVALID, SubjectName{subject}, who(), ": a sparse array (TN_CSR) with strides; expected null");
  std::vector<int64_t> strides;
  if (array.strides != nullptr) strides.assign(array.strides, array.strides + array.rank);
  return {array.dtype,       {array.shape, array.shape + array.rank}, array.data, array.storage,
          array.levels,      {array.offsets[0], array.offsets[1]},    array.ids,  array.samples,
          std::move(strides)};
}

std::vector<NamedArray> named_arrays(const tn_feed* feeds, uint32_t count, const char* argument) {
  if (count > 0) required(feeds, argument);
  std::vector<NamedArray> result;
  result.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = string(feeds[i].name, argument, i, ".name");
    result.push_back({name, view(
                                feeds[i].values, [&] { return "data layer \"" + name + "\""; }, name)});
  }
  return result;
}

UnknownFeeds unknown_feeds(uint32_t flags) {
  if ((flags & ~static_cast<uint32_t>(TN_FORWARD_IGNORE_UNUSED)) != 0)
    fail(TN_UNSUPPORTED, SubjectName{"options.flags"}, "options.flags is ", flags, "; expected TN_FORWARD_*");
  return flags == 0 ? UnknownFeeds::kRefused : UnknownFeeds::kIgnored;
}

std::string device_kind(const char* request) { return request == nullptr || *request == 0 ? "cpu" : request; }

std::vector<std::shared_ptr<Device>> devices(Host& host, const char* device, const char* const* devices,
                                             uint32_t count) {
  if (count == 0) return {host.device(device_kind(device))};
  if (device != nullptr && *device != 0)
    fail(TN_INVALID, SubjectName{"options.devices"}, "options.device and options.devices are both set");
  return host.devices(strings(devices, count, "options.devices"));
}

void read_compute(tn_dtype compute, MachineOptions* options) {
  const bool rounds = compute == TN_BF16 || compute == TN_TF32;
  options->compute = rounds || compute == TN_COMPUTE ? TN_F32 : compute;
  options->precision = !rounds ? TN_PRECISION_FULL : compute == TN_BF16 ? TN_PRECISION_BF16 : TN_PRECISION_TF32;
}

namespace {

// Calls the application's allocator.
class GivenAllocator : public Allocator {
 public:
  explicit GivenAllocator(const tn_allocator& table) : table_(table) {}
  void* allocate(uint64_t bytes) override {
    if (bytes == 0) return nullptr;
    void* memory = table_.allocate(table_.self, bytes, 64);
    if (memory == nullptr) fail(TN_OUT_OF_MEMORY, "the application's allocator has no ", bytes, " bytes");
    return memory;
  }
  void release(void* memory, uint64_t bytes) noexcept override { table_.release(table_.self, memory, bytes); }

 private:
  tn_allocator table_;
};

void read_plugin_options(const tn_host_options& from, HostOptions& to) {
  if (from.added_plugin_paths_count > 0) required(from.added_plugin_paths, "options.added_plugin_paths");
  for (uint32_t i = 0; i < from.added_plugin_paths_count; ++i)
    to.added_plugin_paths.emplace_back(string(from.added_plugin_paths[i], "options.added_plugin_paths", i));
  if (from.plugin_paths == nullptr) {
    to.installed_plugins = base::folders_beside(reinterpret_cast<const void*>(&tn_version), "tenon/plugins");
  } else {
    for (uint32_t i = 0; i < from.plugin_paths_count; ++i)
      to.plugin_paths.emplace_back(string(from.plugin_paths[i], "options.plugin_paths", i));
  }
  if (from.plugin_set != nullptr) to.plugin_set = string(from.plugin_set, "options.plugin_set");
}

HostOptions host_options(const tn_host_options* request) {
  HostOptions options;
  const tn_host_options none = {};
  const tn_host_options from = request == nullptr ? none : sized(request, "options");
  if (from.threads < 0 || from.threads > 1024)
    fail(TN_INVALID, SubjectName{"options.threads"}, "threads is ", from.threads, "; expected 0 to 1024");
  options.threads = from.threads;
  if (from.check > TN_CHECK_OFF)
    fail(TN_INVALID, SubjectName{"options.check"}, "check is ", from.check,
         "; expected 0 (by the build), 1 (on) or 2 (off)");
#ifdef NDEBUG
  constexpr bool kDebug = false;
#else
  constexpr bool kDebug = true;
#endif
  options.check = from.check == TN_CHECK_ON || (kDebug && from.check == TN_CHECK_DEFAULT);
  options.check_finite = from.check_finite != 0;
  options.time_calls = from.time_calls != 0;
  if (from.arithmetic > TN_ARITHMETIC_NATIVE)
    fail(TN_INVALID, SubjectName{"options.arithmetic"}, "arithmetic is ", from.arithmetic,
         "; expected 0 (portable where it is known), 1 (portable) or 2 (native)");
  options.arithmetic = from.arithmetic;
  read_plugin_options(from, options);
  if (from.allocator != nullptr) {
    const tn_allocator table = sized(from.allocator, "options.allocator");
    required(table.allocate, "options.allocator.allocate");
    required(table.release, "options.allocator.release");
    options.allocator = std::make_shared<GivenAllocator>(table);
  }
  if (from.log != nullptr)
    options.log = [log = from.log, user = from.log_user](int32_t level, const char* message) {
      log(user, level, message);
    };
  return options;
}

}  // namespace
}  // namespace tenon::host::api

namespace api = tenon::host::api;
using namespace tenon::host;

const char* tn_version(void) { return TENON_VERSION; }

uint32_t tn_api_minor(void) { return TENON_API_MINOR; }
const char* tn_status_text(tn_status status) { return status_text(status); }

uint64_t tn_plugin_call(char* text, uint64_t size) {
  uint64_t length = 0;
  const auto append = [&](const char* more) {
    for (; *more != '\0'; ++more, ++length)
      if (text != nullptr && length + 1 < size) text[length] = *more;
  };
  if (const tenon::core::PluginCall* const call = tenon::core::current_plugin_call(); call != nullptr) {
    append(call->who);
    append(" of plugin \"");
    append(call->plugin);
    append("\": ");
    append(call->function);
    append(" ");
    append(call->tag);
  }
  if (text != nullptr && size > 0) text[length < size ? length : size - 1] = '\0';
  return length;
}

tn_status tn_file_replace(const char* path, const void* bytes, uint64_t size, tn_error* error) {
  return api::guarded(error, [&] {
    const std::string to = api::string(path, "path");
    if (size > 0) (void)api::required(static_cast<const char*>(bytes), "bytes");
    const auto file = tenon::core::system_files()->replace(to);
    file->write(bytes, size);
    file->commit();
  });
}

tn_status tn_file_target(const char* path, tn_write write, void* user, tn_error* error) {
  return api::guarded(error, [&] {
    api::required(write, "write");
    api::give_text(write, user, tenon::core::destination(api::string(path, "path")).string());
  });
}

tn_status tn_file_check(const char* path, tn_error* error) {
  return api::guarded(error, [&] { (void)tenon::core::system_files()->replace(api::string(path, "path")); });
}

tn_status tn_host_create(const tn_host_options* options, tn_host** host, tn_error* error) {
  return api::guarded(error, [&] {
    api::required(host, "host");
    *host = new tn_host(api::host_options(options));
  });
}

void tn_host_release(tn_host* host) {
  if (host != nullptr) host->end();
}

void tn_host_destroy(tn_host* host) { tn_host_release(host); }

tn_status tn_host_inspect(tn_host* host, tn_host_counters* counters, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    tn_host_counters now = {};
    now.threads = owner.pool.threads();
    now.bytes_now = owner.allocator->now();
    now.bytes_peak = owner.allocator->peak();
    now.workers_computed = owner.pool.workers_computed();
    api::give(counters, "counters", now);
  });
}

tn_status tn_host_count(tn_host* host, tn_host_counters* counters, tn_error* error) {
  return tn_host_inspect(host, counters, error);
}

tn_status tn_host_plugins(tn_host* host, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    nlohmann::json plugins = owner.registry.list();
    for (nlohmann::json& plugin : plugins) {
      if (plugin["status"] != "loaded") continue;
      const Services::Usage usage = owner.services.usage(plugin["manifest"]["id"].get<std::string>());
      plugin["usage"] = {{"bytes", usage.bytes}, {"log_lines", usage.log_lines}};
    }
    api::give_text(write, user, plugins.dump());
  });
}

tn_status tn_type_describe(tn_host* host, const char* kind, const char* type, tn_write write, void* user,
                           tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    api::required(write, "write");
    const std::string of = api::string(kind, "kind");
    const std::string name = api::string(type, "type");
    nlohmann::json described = owner.registry.describe_type(of, of == "layer" ? present_layer_type(name) : name);
    if (of == "layer") described["host_attributes"] = host_attribute_names();
    if (of == "updater") described["host_attributes"] = UpdaterOptions::names();
    api::give_text(write, user, described.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

tn_status tn_host_add_plugin(tn_host* host, const struct tn_plugin* plugin, tn_error* error) {
  return api::call(host, error, [&](Host& owner) { owner.registry.add(api::required(plugin, "plugin")); });
}
