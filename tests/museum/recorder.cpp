// A plugin around an exhibit, which counts what is called between host and exhibit: each function of a table in either
// direction, and each opcode of the programs that the exhibit records. The exhibit is the file of the same name with
// ".exhibit" behind it. The counters are a file that the variable MUSEUM_CALLS names, an int64 for each name of
// members.h, which calls.py writes from the headers. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <tenon/plugin.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "members.h"  // Members<Table>, kNumber<member>, kFirstOpcode, kCounters

TN_RESERVE_NOTE(65536);

namespace {

using Function = void (*)();

// ---- counters

std::atomic<int64_t>* counters() {
  static std::atomic<int64_t>* const result = [] {
    const char* const path = std::getenv("MUSEUM_CALLS");
    const int file = path == nullptr ? -1 : open(path, O_RDWR);
    void* const memory =
        file < 0 ? MAP_FAILED : mmap(nullptr, kCounters * 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    static std::array<std::atomic<int64_t>, kCounters> unused;
    return memory == MAP_FAILED ? unused.data() : static_cast<std::atomic<int64_t>*>(memory);
  }();
  return result;
}
void hit(int number) { counters()[number].fetch_add(1, std::memory_order_relaxed); }
void hit_opcodes(const tn_program* program) {
  for (uint32_t i = 0; program != nullptr && i < program->instructions_count; ++i)
    if (program->instructions[i].op < kOpcodes) hit(kFirstOpcode + program->instructions[i].op);
}

// What a call passes to the host.
template <typename T>
void inspect(const T& /*other*/) {}
void inspect(const tn_pointwise* call) {
  hit_opcodes(call->program);
  hit_opcodes(call->gradient);
}
void inspect(const tn_update* update) { hit_opcodes(update->program); }

// ---- tables of the host: copies whose functions count. A function is found by its number and `self`.

std::mutex mutex;
std::map<std::pair<int, const void*>, Function> functions;
std::map<const void*, const void*> copies;  // of tables that outlive a call, and of the exhibit's tables

template <typename T>
const T* lent(const T* table);
const void* lent_service(const char* id, const void* table) {
  const std::string name = id;
  if (name == TN_MEMORY) return lent(static_cast<const tn_memory*>(table));
  if (name == TN_LOG) return lent(static_cast<const tn_log*>(table));
  if (name == TN_OPTIONS) return lent(static_cast<const tn_options*>(table));
  return table;
}

template <auto kMember, typename Type = std::remove_const_t<decltype(kMember)>>
struct Lent;
template <auto kMember, typename Table, typename Result, typename... Arguments>
struct Lent<kMember, Result (*Table::*)(void*, Arguments...)> {
  static Result call(void* self, Arguments... arguments) {
    Function function = nullptr;
    {
      const std::lock_guard lock(mutex);
      function = functions.at({kNumber<kMember>, self});
    }
    hit(kNumber<kMember>);
    (inspect(arguments), ...);
    const auto host = reinterpret_cast<Result (*)(void*, Arguments...)>(function);
    if constexpr (std::is_same_v<Table, tn_services>)
      return lent_service(arguments..., host(self, arguments...));
    else
      return host(self, arguments...);
  }
};

// Replaces the functions of a table that the host lent.
template <typename T>
void count_calls(T& table) {
  Members<T>::each([&table](auto member) {
    auto& function = table.*member.value;
    if (reinterpret_cast<const char*>(&function + 1) > reinterpret_cast<const char*>(&table) + table.size) return;
    if (function == nullptr || function == &Lent<member.value>::call) return;
    const std::lock_guard lock(mutex);
    functions[{kNumber<member.value>, table.self}] = reinterpret_cast<Function>(function);
    function = &Lent<member.value>::call;
  });
}

// The tables that a table of the host points to.
template <typename T>
void lend_inner(T& table) {
  if constexpr (requires { table.errors; }) table.errors = lent(table.errors);
  if constexpr (requires { table.services; }) table.services = lent(table.services);
  if constexpr (requires { table.parallel; }) table.parallel = lent(table.parallel);
  if constexpr (requires { table.expander; }) table.expander = lent(table.expander);
  if constexpr (std::is_same_v<T, tn_kernel_site>) table.device = lent(table.device);
}

// A copy that counts. None is freed: an exhibit keeps those of services.
template <typename T>
const T* lent(const T* table) {
  constexpr bool kStays = std::is_same_v<T, tn_services> || std::is_same_v<T, tn_memory> || std::is_same_v<T, tn_log> ||
                          std::is_same_v<T, tn_options> || std::is_same_v<T, tn_device>;
  if (table == nullptr) return nullptr;
  auto* const copy = new T();
  std::memcpy(copy, table, std::min<size_t>(table->size, sizeof(T)));
  lend_inner(*copy);
  if constexpr (requires { Members<T>::kLent; }) count_calls(*copy);
  if constexpr (kStays) {
    const std::lock_guard lock(mutex);
    return static_cast<const T*>(copies.try_emplace(table, copy).first->second);
  }
  return copy;
}

// What a call of the exhibit gets in place of an argument, and what is done with the argument afterwards.
template <typename T>
T passed(T argument) {
  using Table = std::remove_const_t<std::remove_pointer_t<T>>;
  if constexpr (std::is_same_v<T, tn_kernel_needs*>)
    count_calls(*argument);
  else if constexpr (requires { Members<Table>::kPassed; })
    return lent(argument);
  return argument;
}

struct Call {
  void* binding;
  decltype(tn_prepared::run) run;
  decltype(tn_prepared::destroy) destroy;
};
tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  hit(kNumber<&tn_prepared::run>);
  return static_cast<Call*>(self)->run(static_cast<Call*>(self)->binding, passed(execution), call);
}
void destroy(void* self) {
  auto* const call = static_cast<Call*>(self);
  if (call->destroy != nullptr) {
    hit(kNumber<&tn_prepared::destroy>);
    call->destroy(call->binding);
  }
  delete call;
}
template <typename T>
void finish(const T& /*other*/) {}
void finish(tn_prepared* prepared) {
  if (prepared->run == nullptr) return;
  prepared->binding = new Call{prepared->binding, prepared->run, prepared->destroy};
  prepared->run = run;
  prepared->destroy = destroy;
}

// ---- tables of the exhibit: copies whose functions count. The number of a table picks the function.

constexpr int kTables = 16;  // of one type
template <typename T>
std::array<const T*, kTables> originals;

template <typename T>
const T* own(const T* table);
const void* own_extension(const char* id, const void* table);

template <int kTable, auto kMember, typename Type = std::remove_const_t<decltype(kMember)>>
struct Own;
template <int kTable, auto kMember, typename Table, typename Result, typename... Arguments>
struct Own<kTable, kMember, Result (*Table::*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    hit(kNumber<kMember>);
    const auto exhibit = originals<Table>[kTable]->*kMember;
    if constexpr (std::is_same_v<Result, const void*>) {
      return std::invoke([](void*, const char* id, const void* result) { return own_extension(id, result); },
                         arguments..., exhibit(arguments...));
    } else if constexpr (std::is_void_v<Result>) {
      exhibit(passed(arguments)...);
    } else {
      const Result result = exhibit(passed(arguments)...);
      (finish(arguments), ...);
      return result;
    }
  }
};
template <auto kMember, int... kTable>
auto own_function(int table, std::integer_sequence<int, kTable...> /*all*/) {
  const std::array list = {&Own<kTable, kMember>::call...};
  return list.at(static_cast<size_t>(table));
}

template <typename T>
const T* own(const T* table) {
  static int count = 0;
  if (table == nullptr) return nullptr;
  if (const auto found = copies.find(table); found != copies.end()) return static_cast<const T*>(found->second);
  auto* const copy = new T();
  std::memcpy(copy, table, std::min<size_t>(table->size, sizeof(T)));
  originals<T>.at(static_cast<size_t>(count)) = copy;
  auto* const counting = new T(*copy);
  Members<T>::each([&](auto member) {
    if (copy->*member.value != nullptr)
      counting->*member.value = own_function<member.value>(count, std::make_integer_sequence<int, kTables>());
  });
  if constexpr (requires { counting->shared; }) counting->shared = own(counting->shared);
  ++count;
  copies[table] = counting;
  return counting;
}

#define EXTENSION(id, type) \
  if (std::strcmp(name, id) == 0) return own(static_cast<const type*>(table));
const void* own_extension(const char* name, const void* table) {
  const std::lock_guard lock(mutex);
  EXTENSION(TN_MIGRATE, tn_migrate)
  EXTENSION(TN_STEP, tn_step)
  EXTENSION(TN_PASS, tn_pass)
  EXTENSION(TN_PARALLEL_READ, tn_parallel_read)
  EXTENSION(TN_GEMM, tn_gemm_table)
  EXTENSION(TN_POINTWISE, tn_pointwise_table)
  EXTENSION(TN_GEMM_EPILOGUE, tn_gemm_epilogue_table)
  EXTENSION(TN_GATHER, tn_gather_table)
  EXTENSION(TN_MOVE, tn_move_table)
  EXTENSION(TN_SEGMENT, tn_segment_table)
  EXTENSION(TN_ROW_SPARSE_TABLE, tn_row_sparse_table)
  EXTENSION(TN_NATIVE, tn_native_table)
  EXTENSION(TN_PACKED_GEMM, tn_packed_gemm_table)
  EXTENSION(TN_GATHER_GEMM, tn_gather_gemm_table)
  EXTENSION(TN_ARGSORT, tn_argsort_table)
  EXTENSION(TN_PREFIX_SUM, tn_prefix_sum_table)
  EXTENSION(TN_COALESCE_PRODUCTS, tn_coalesce_products_table)
  EXTENSION(TN_CONV, tn_conv_table)
  EXTENSION(TN_CONV_EPILOGUE, tn_conv_epilogue_table)
  EXTENSION(TN_POOL, tn_pool_table)
  EXTENSION(TN_RESIZE, tn_resize_table)
  EXTENSION(TN_HOST_MEMORY, tn_host_memory_table)
  EXTENSION(TN_CAPTURE, tn_capture_table)
  return table;
}

template <typename T>
const T* const* own_list(const T* const* list, uint32_t count) {
  auto* const result = new const T*[count + 1]();
  for (uint32_t i = 0; i < count; ++i) result[i] = own(list[i]);
  return result;
}
const tn_provider* const* own_providers(const tn_plugin& plugin) {
  auto* const result = new const tn_provider*[plugin.providers_count + 1]();
  for (uint32_t i = 0; i < plugin.providers_count; ++i) {
    auto* const copy = new tn_provider(*plugin.providers[i]);
    copy->table = own_extension(copy->id, copy->table);
    copy->shared = own(copy->shared);
    result[i] = copy;
  }
  return result;
}

const tn_plugin* counted() {
  Dl_info info = {};
  dladdr(reinterpret_cast<const void*>(&counted), &info);
  void* const file = dlopen((std::string(info.dli_fname) + ".exhibit").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) return nullptr;
  const tn_plugin* const exhibit = reinterpret_cast<tn_entry>(dlsym(file, TN_ENTRY_NAME))();
  auto* const plugin = new tn_plugin();
  std::memcpy(plugin, exhibit, std::min<size_t>(exhibit->size, sizeof *plugin));
  plugin->layers = own_list(plugin->layers, plugin->layers_count);
  plugin->kernels = own_list(plugin->kernels, plugin->kernels_count);
  plugin->updaters = own_list(plugin->updaters, plugin->updaters_count);
  plugin->readers = own_list(plugin->readers, plugin->readers_count);
  plugin->devices = own_list(plugin->devices, plugin->devices_count);
  plugin->providers = own_providers(*plugin);
  return plugin;
}

}  // namespace

const tn_plugin* tenon_plugin() {
  static const tn_plugin* const result = counted();
  return result;
}
