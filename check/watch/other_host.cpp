// SPDX-License-Identifier: Apache-2.0
#include "check/watch/other_host.h"

#include <tenon/device_host.h>

#include <deque>
#include <map>
#include <memory>

#include "base/full_table.h"
#include "check/watch/full_plugin.h"
#include "check/watch/lent_arguments.h"

namespace tenon::check {

namespace {

// ---- functions

struct LentBinding {
  decltype(tn_prepared::run) run;
  decltype(tn_prepared::destroy) destroy;
  void* binding;
};

tn_status run_lent(void* binding, const tn_execution* execution, const tn_call* call) {
  const auto& inner = *static_cast<const LentBinding*>(binding);
  Loans loans;
  return inner.run(inner.binding, loans.pass(execution), loans.pass(call));
}
void destroy_lent(void* binding) {
  const std::unique_ptr<LentBinding> owned(static_cast<LentBinding*>(binding));
  if (owned->destroy != nullptr) owned->destroy(owned->binding);
}

// After a call: what a prepared call gets is lent, too.
template <typename Argument, typename Result>
void after_call(Argument, Result) {}
void after_call(tn_prepared* prepared, tn_status status) {
  if (status != TN_OK || prepared->run == nullptr) return;
  const struct {
    const char* what;
    uint32_t trait;
    int minor;
  } late_traits[] = {{"prepare sets TN_TRAIT_HOST_SIZES", TN_TRAIT_HOST_SIZES, 3},
                     {"prepare sets TN_TRAIT_BATCH_VARIANT", TN_TRAIT_BATCH_VARIANT, 3},
                     {"prepare sets TN_TRAIT_ANY_ALIGNMENT", TN_TRAIT_ANY_ALIGNMENT, 4},
                     {"prepare sets TN_TRAIT_PORTABLE", TN_TRAIT_PORTABLE, 4},
                     {"prepare sets TN_TRAIT_BLOCKING", TN_TRAIT_BLOCKING, 4}};
  for (const auto& [what, trait, minor] : late_traits)
    if ((prepared->traits & trait) != 0) blame_newer(what, minor);
  prepared->binding = new LentBinding{prepared->run, prepared->destroy, prepared->binding};
  prepared->run = run_lent;
  prepared->destroy = destroy_lent;
}

template <typename First, typename... Rest>
void* instance_of(First first, Rest...) {
  if constexpr (std::is_same_v<First, void*>) return first;
  return nullptr;
}

// A function of the plugin's table, with copies of its arguments.
template <auto kFunction>
struct Lending;
template <typename Table, typename Result, typename... Arguments, Result (*Table::*kFunction)(Arguments...)>
struct Lending<kFunction> {
  static Result call(Arguments... arguments) {
    const LentCall outer = lent_call;
    lent_call.reader = instance_of(arguments...);
    Loans loans;
    const Result result = (PluginTable<Table>::table_of(arguments...).*kFunction)(loans.pass(arguments)...);
    loans.end();
    lent_call = outer;
    (after_call(arguments, result), ...);
    return result;
  }
};
template <auto... kFunctions, typename Table>
void lend_functions(Table& table) {
  ((table.*kFunctions = table.*kFunctions == nullptr ? nullptr : Lending<kFunctions>::call), ...);
}

// ---- tables by id

template <typename Table, typename Function>
Table owner_of(Function Table::*);
template <auto kFirst, auto... kRest>
const void* lent_copy(const void* inner) {
  using Table = decltype(owner_of(kFirst));
  static Table copy;
  PluginTable<Table>::table = base::full_table(*static_cast<const Table*>(inner));
  copy = PluginTable<Table>::table;
  lend_functions<kFirst, kRest...>(copy);
  return &copy;
}
const void* lent_table(const std::string& id, const void* inner) {
  static const std::map<std::string, const void* (*)(const void*)> copies = {
      {TN_GEMM, lent_copy<&tn_gemm_table::prepare>},
      {TN_GEMM_EPILOGUE, lent_copy<&tn_gemm_epilogue_table::supports, &tn_gemm_epilogue_table::prepare>},
      {TN_PACKED_GEMM, lent_copy<&tn_packed_gemm_table::packed_bytes, &tn_packed_gemm_table::prepare_pack,
                                 &tn_packed_gemm_table::prepare_multiply, &tn_packed_gemm_table::prepare_epilogue>},
      {TN_POINTWISE, lent_copy<&tn_pointwise_table::prepare>},
      {TN_GATHER, lent_copy<&tn_gather_table::prepare>},
      {TN_GATHER_GEMM, lent_copy<&tn_gather_gemm_table::supports, &tn_gather_gemm_table::prepare>},
      {TN_MOVE, lent_copy<&tn_move_table::prepare>},
      {TN_SEGMENT, lent_copy<&tn_segment_table::prepare>},
      {TN_ARGSORT, lent_copy<&tn_argsort_table::prepare>},
      {TN_PREFIX_SUM, lent_copy<&tn_prefix_sum_table::prepare>},
      {TN_ROW_SPARSE_TABLE, lent_copy<&tn_row_sparse_table::prepare_coalesce, &tn_row_sparse_table::prepare_update>},
      {TN_COALESCE_PRODUCTS, lent_copy<&tn_coalesce_products_table::supports, &tn_coalesce_products_table::prepare>},
      {TN_CONV, lent_copy<&tn_conv_table::prepare>},
      {TN_CONV_EPILOGUE, lent_copy<&tn_conv_epilogue_table::supports, &tn_conv_epilogue_table::prepare>},
      {TN_POOL, lent_copy<&tn_pool_table::prepare>},
      {TN_RESIZE, lent_copy<&tn_resize_table::prepare>},
      {TN_HOST_MEMORY, lent_copy<&tn_host_memory_table::allocate>},
      {TN_CAPTURE, lent_copy<&tn_capture_table::begin, &tn_capture_table::end, &tn_capture_table::launch>},
      {TN_STEP, lent_copy<&tn_step::step>},
      {TN_MIGRATE, lent_copy<&tn_migrate::migrate>},
      {TN_LAYER_NUMBERS, lent_copy<&tn_layer_numbers::declare>},
      {TN_PARALLEL_READ, lent_copy<&tn_parallel_read::read_at>},
  };
  const auto entry = copies.find(id);
  return inner == nullptr || entry == copies.end() ? inner : entry->second(inner);
}
template <typename Type>
const void* lent_extension(void* user, const char* id) {
  return lent_table(id, PluginTable<Type>::table.extension(user, id));
}

// ---- components

struct LentShared {
  const tn_shared* inner;
  tn_shared table;
};
const tn_shared* lent_shared(const tn_shared* shared_type) {
  static std::map<const tn_shared*, LentShared> copies;
  if (shared_type == nullptr) return nullptr;
  LentShared& copy = copies.try_emplace(shared_type, LentShared{shared_type, *shared_type}).first->second;
  copy.table.user = &copy;
  copy.table.open = [](const tn_services* services, const tn_errors* errors, const tn_device* device, void* user,
                       void** shared) {
    const tn_shared& inner = *static_cast<const LentShared*>(user)->inner;
    Loans loans;
    return inner.open(loans.pass(services), loans.pass(errors), loans.pass(device), inner.user, shared);
  };
  return &copy.table;
}

// A list with a copy of the element whose name this is.
template <auto... kFunctions, typename Type, typename Name>
const Type* const* lent_list(const Type* const* inner, uint32_t count, const std::string& name, const Name& name_of) {
  static std::vector<const Type*> list;
  static Type copy;
  list.assign(inner, inner + count);
  for (const Type*& each : list) {
    if (name != name_of(*each)) continue;
    PluginTable<Type>::table = base::full_table(*each);
    copy = PluginTable<Type>::table;
    lend_functions<kFunctions...>(copy);
    if (copy.extension != nullptr) copy.extension = lent_extension<Type>;
    each = &copy;
  }
  return list.data();
}
const char* type_name(const auto& component) { return component.description->type; }

const tn_kernel* const* lent_kernels(const tn_plugin& plugin) {
  static std::deque<LentKernel> kernels;
  static std::vector<const tn_kernel*> list;
  for (uint32_t i = 0; i < plugin.kernels_count; ++i) {
    LentKernel& kernel = kernels.emplace_back(LentKernel{plugin.kernels[i], base::full_table(*plugin.kernels[i])});
    lend_functions<&tn_kernel::supports, &tn_kernel::query, &tn_kernel::prepare>(kernel.table);
    kernel.table.shared = lent_shared(kernel.table.shared);
    kernel.table.user = &kernel;
    list.push_back(&kernel.table);
  }
  return list.data();
}

const tn_provider* const* lent_providers(const tn_plugin& plugin, const std::string& name) {
  static std::deque<tn_provider> copies;
  static std::vector<const tn_provider*> list;
  for (uint32_t i = 0; i < plugin.providers_count; ++i) {
    tn_provider& copy = copies.emplace_back(base::full_table(*plugin.providers[i]));
    if (name == copy.name) copy.table = lent_table(copy.id, copy.table), copy.shared = lent_shared(copy.shared);
    list.push_back(&copy);
  }
  return list.data();
}

}  // namespace

const tn_plugin* plugin_in_other_host(const tn_plugin& plugin, const std::string& kind, const std::string& name) {
  static tn_plugin copy = {};
  if (copy.size != 0) return &copy;
  copy = full_plugin(plugin);
  if (kind == "updater") {
    copy.updaters =
        lent_list<&tn_updater_type::record>(copy.updaters, copy.updaters_count, name, type_name<tn_updater_type>);
  } else if (kind == "reader") {
    using Type = tn_reader_type;
    copy.readers =
        lent_list<&Type::open, &Type::read_at, &Type::next>(copy.readers, copy.readers_count, name, type_name<Type>);
  } else if (kind == "device") {
    using Type = tn_device_type;
    copy.devices = lent_list<&Type::count, &Type::open, &Type::properties, &Type::allocate, &Type::copy, &Type::fill,
                             &Type::stream_create, &Type::stream_wait, &Type::event_create, &Type::event_record,
                             &Type::event_wait>(copy.devices, copy.devices_count, name,
                                                [](const Type& type) { return type.description->kind; });
  } else if (kind == "comm") {
    using Type = tn_comm_type;
    copy.comms = lent_list<&Type::open, &Type::world, &Type::send, &Type::receive>(copy.comms, copy.comms_count, name,
                                                                                   type_name<Type>);
  } else if (kind == "provider") {
    copy.providers = lent_providers(plugin, name);
  } else {
    using Type = tn_layer_type;
    copy.layers = lent_list<&Type::plan, &Type::expand, &Type::lower, &Type::finalize>(copy.layers, copy.layers_count,
                                                                                       name, type_name<Type>);
    copy.kernels = lent_kernels(plugin);
  }
  return &copy;
}

}  // namespace tenon::check
