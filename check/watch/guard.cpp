// SPDX-License-Identifier: Apache-2.0
#include "check/watch/guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/full_table.h"
#include "base/not_copied.h"
#include "check/watch/floating_point.h"
#include "check/watch/full_plugin.h"

namespace tenon::check {

namespace {

// Of the process, which checks one component: the functions of its tables have no argument that leads to the kit.
std::mutex fault_lock;
std::string first_fault;
std::atomic<int64_t> runs, draws;
std::atomic<bool> shares;

void blame(const std::string& fault) {
  const std::lock_guard<std::mutex> lock(fault_lock);
  if (first_fault.empty()) first_fault = fault;
}

constexpr unsigned char kPoison = 0xFF;  // as float32 and float64 a NaN
constexpr uint64_t kAlignment = 64;

// Memory that ends at a page without access, or less than `alignment` bytes before it.
class Block : base::NotCopied {
 public:
  explicit Block(uint64_t bytes, uint64_t alignment = kAlignment) : bytes_(bytes) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
    data_pages_ = (rounded + page - 1) / page * page;
    mapped_ = data_pages_ + 2 * page;
    void* const memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<unsigned char*>(memory);
    if (data_pages_ > 0 && mprotect(base_ + page, data_pages_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    begin_ = base_ + page;
    data_ = begin_ + (data_pages_ - rounded);
    if (data_pages_ > 0) std::memset(begin_, kPoison, data_pages_);
  }
  // Keeps the addresses without access for a while: a pointer to them must not be used after the run.
  ~Block() {
    constexpr size_t kMost = 1024;
    static std::mutex lock;
    static std::deque<std::pair<void*, uint64_t>> past;
    static_cast<void>(mmap(base_, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0));
    const std::lock_guard<std::mutex> guard(lock);
    past.emplace_back(base_, mapped_);
    if (past.size() <= kMost) return;
    munmap(past.front().first, past.front().second);
    past.pop_front();
  }

  [[nodiscard]] unsigned char* data() const { return data_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  void protect() const {
    if (data_pages_ > 0) mprotect(begin_, data_pages_, PROT_READ);
  }
  // Whether memory beside the data was written.
  [[nodiscard]] bool overrun() const {
    for (const unsigned char* at = begin_; at < begin_ + data_pages_; ++at)
      if ((at < data_ || at >= data_ + bytes_) && *at != kPoison) return true;
    return false;
  }

 private:
  uint64_t bytes_, data_pages_ = 0, mapped_ = 0;
  unsigned char *base_ = nullptr, *begin_ = nullptr, *data_ = nullptr;
};

// ---- calls

uint64_t bytes_of(const tn_tensor& tensor) {
  return tn_dtype_storage(TN_DTYPE(tensor.dl.dtype.code, tensor.dl.dtype.bits),
                          static_cast<uint64_t>(tn_elements(&tensor)));
}

// Whether the values of a tensor are all that a call needs of it. Row-sparse tensors, and those of an update, which
// have no shape, are left where they are.
bool is_copied(const tn_tensor* tensor) {
  return tensor != nullptr && (tensor->storage == TN_DENSE || tensor->storage == TN_RAGGED);
}

// Per result of a call the number of the operand whose memory it may have, or -1. A shorter list: -1 of the rest.
using Pairs = std::vector<int32_t>;

// The copies of the operands of one run. Results have the memory of the operands in `pairs`.
class Operands {
 public:
  // traits: of the call. Operands of TN_TRAIT_ANY_ALIGNMENT are aligned like their elements.
  Operands(const tn_call& call, uint64_t workspace, uint32_t traits, const Pairs& pairs = {})
      : call_(call), workspace_(workspace), any_alignment_((traits & TN_TRAIT_ANY_ALIGNMENT) != 0) {
    std::vector<Block*> of_inputs;
    for (uint32_t i = 0; i < call.inputs_count; ++i) {
      of_inputs.push_back(is_copied(call.inputs[i]) ? copy(*call.inputs[i], true) : nullptr);
      inputs_.push_back(of_inputs[i] == nullptr ? call.inputs[i] : &tensors_.back());
    }
    for (uint32_t i = 0; i < call.outputs_count; ++i) {
      const tn_tensor* const to = call.outputs[i];
      const int32_t from = i < pairs.size() ? pairs[i] : -1;
      Block* block = nullptr;
      if (is_copied(to) && from >= 0 && of_inputs.at(static_cast<size_t>(from)) != nullptr &&
          call.requests[i] == TN_REQUEST_WRITE && of_inputs[static_cast<size_t>(from)]->bytes() == bytes_of(*to)) {
        std::swap(block, of_inputs[static_cast<size_t>(from)]);
        add(*to, *block);
        any_shared_ = true;
      } else if (is_copied(to)) {
        block = copy(*to, call.requests[i] == TN_REQUEST_ADD);
      }
      results_.push_back(block);
      outputs_.push_back(block == nullptr ? call.outputs[i] : &tensors_.back());
    }
    for (const Block* input : of_inputs)
      if (input != nullptr) input->protect();
    call_.inputs = inputs_.data();
    call_.outputs = outputs_.data();
    call_.workspace = workspace == 0 ? nullptr : workspace_.data();
  }
  [[nodiscard]] const tn_call* call() const { return &call_; }
  [[nodiscard]] bool any_shared() const { return any_shared_; }
  void finish(const tn_call& inner) const {
    if (workspace_.overrun()) blame("a call writes outside of its workspace");
    for (uint32_t i = 0; i < inner.outputs_count; ++i) {
      const Block* const from = results_[i];
      if (from == nullptr) continue;
      if (from->overrun()) blame("a call writes outside of operand " + std::to_string(i) + " of its results");
      if (from->bytes() > 0) std::memcpy(tn_data(inner.outputs[i]), from->data(), from->bytes());
    }
  }
  // Blames the call if a result differs from that of another run, in which none had the memory of an operand.
  void compare(const Operands& apart, const Pairs& pairs) const {
    for (size_t i = 0; i < results_.size(); ++i)
      for (uint64_t at = 0; results_[i] != nullptr && at < results_[i]->bytes(); ++at) {
        const unsigned char expected = apart.results_[i]->data()[at];
        if (results_[i]->data()[at] == expected || expected == kPoison) continue;
        std::string shared;
        for (size_t k = 0; k < pairs.size(); ++k)
          if (pairs[k] >= 0)
            shared += (shared.empty() ? "" : ", and ") + ("result " + std::to_string(k)) +
                      " has the memory of operand " + std::to_string(pairs[k]);
        return blame("result " + std::to_string(i) + " of a call differs where " + shared +
                     ", as its kernel's query or the contract of its table allows");
      }
  }

 private:
  Block* copy(const tn_tensor& tensor, bool with_values) {
    Block& block = *blocks_.emplace_back(std::make_unique<Block>(bytes_of(tensor), alignment_of(tensor)));
    if (with_values && block.bytes() > 0) std::memcpy(block.data(), tn_data(&tensor), block.bytes());
    add(tensor, block);
    return &block;
  }
  [[nodiscard]] uint32_t alignment_of(const tn_tensor& tensor) const {
    return any_alignment_ ? std::max(tensor.dl.dtype.bits / 8U, 1U) : static_cast<uint32_t>(kAlignment);
  }
  void add(const tn_tensor& tensor, const Block& block) {
    tensors_.push_back(tensor);
    tensors_.back().alignment = alignment_of(tensor);
    tensors_.back().dl.data = block.data();
    tensors_.back().dl.byte_offset = 0;
  }

  tn_call call_;
  Block workspace_;
  bool any_alignment_;
  std::deque<tn_tensor> tensors_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Block*> results_;  // of each output; null: where it was
  bool any_shared_ = false;
  std::vector<const tn_tensor*> inputs_;
  std::vector<tn_tensor*> outputs_;
};

struct GuardedBinding {
  tn_prepared inner;
  Pairs pairs;
};

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) try {
  const auto& [inner, pairs] = *static_cast<GuardedBinding*>(binding);
  const Operands operands(*call, inner.workspace_bytes, inner.traits);
  const FloatingPoint mode = floating_point();
  const tn_status status = inner.run(inner.binding, execution, operands.call());
  if (!(floating_point() == mode)) blame("a call changes the floating-point mode");
  set_floating_point(mode);
  std::unique_ptr<Operands> shared;  // begins with the values that were there
  if (shares && !pairs.empty()) shared = std::make_unique<Operands>(*call, inner.workspace_bytes, inner.traits, pairs);
  operands.finish(*call);
  ++runs;
  if (status != TN_OK || shared == nullptr || !shared->any_shared()) return status;
  const tn_status again = inner.run(inner.binding, execution, shared->call());
  if (again == TN_OK) shared->compare(operands, pairs);
  return again;
} catch (const std::bad_alloc&) {
  return tn_fail(execution->errors, TN_OUT_OF_MEMORY, nullptr, "no memory for guarded operands");
}

void destroy(void* binding) {
  const std::unique_ptr<GuardedBinding> owned(static_cast<GuardedBinding*>(binding));
  if (owned->inner.destroy != nullptr) owned->inner.destroy(owned->inner.binding);
}

// Prepares by `prepare_given(tn_prepared*)` a call that runs on copies of its operands.
template <typename Prepare>
tn_status prepare_guarded(tn_prepared* prepared, Pairs pairs, Prepare&& prepare_given) {
  auto copy = std::make_unique<GuardedBinding>();
  copy->inner.size = sizeof(tn_prepared);
  const tn_status status = prepare_given(&copy->inner);
  if (status != TN_OK) return status;
  copy->pairs = std::move(pairs);
  prepared->traits = copy->inner.traits;
  prepared->workspace_bytes = copy->inner.workspace_bytes;
  prepared->run = run;
  prepared->destroy = destroy;
  prepared->binding = copy.release();
  return TN_OK;
}

// ---- kernels

struct GuardedKernel {
  const tn_kernel* inner;
  tn_kernel table;
};

// The site as the given kernel expects it.
tn_kernel_site site_of(const tn_kernel_site* site) {
  tn_kernel_site result = *site;
  result.user = static_cast<const GuardedKernel*>(site->user)->inner->user;
  return result;
}
const tn_kernel& given_of(const tn_kernel_site* site) { return *static_cast<const GuardedKernel*>(site->user)->inner; }

tn_status supports(const tn_kernel_site* site, int32_t* score) {
  const tn_kernel_site with = site_of(site);
  return given_of(site).supports == nullptr ? TN_OK : given_of(site).supports(&with, score);
}
tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  const tn_kernel_site with = site_of(site);
  const tn_status status = given_of(site).query == nullptr ? TN_OK : given_of(site).query(&with, needs);
  draws += needs->draws;
  return status;
}
// The pairs that query declares.
Pairs pairs_of(const tn_kernel& kernel, const tn_kernel_site& site, int32_t direction) {
  if (kernel.query == nullptr) return {};
  const size_t read = size_t{site.inputs_count} + site.parameters_count + site.buffers_count + site.carried_count;
  std::vector<uint8_t> reads_in(read), reads_out(site.outputs_count);
  Pairs in_place(site.outputs_count, -1), backward(site.inputs_count, -1);
  int32_t saved = 0;
  tn_kernel_needs needs = {};
  needs.size = sizeof needs;
  needs.reads_in = reads_in.data(), needs.reads_out = reads_out.data();
  needs.in_place = in_place.data(), needs.backward_in_place = backward.data();
  needs.self = &saved;
  needs.saved = [](void* self, const tn_spec*) { return (*static_cast<int32_t*>(self))++; };
  needs.rows = [](void*, uint32_t, const tn_dim*) -> tn_status { return TN_OK; };
  if (kernel.query(&site, &needs) != TN_OK) return {};
  if (direction == TN_FORWARD) return in_place;
  for (int32_t& output : backward)
    if (output >= 0) output += static_cast<int32_t>(read) + static_cast<int32_t>(site.outputs_count) + saved;
  return backward;
}
tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const tn_kernel_site with = site_of(site);
  return prepare_guarded(prepared, pairs_of(given_of(site), with, direction),
                         [&](tn_prepared* inner) { return given_of(site).prepare(&with, direction, inner); });
}

// ---- tables of primitives

// The pairs that the contract of a table allows: each output of a program in the memory of the first input of its
// extent and element size that no other output has. Of a fused program without the product, which lies before them.
Pairs pairs_of(const tn_pointwise_site& site, int32_t product = -1) {
  Pairs pairs;
  const tn_program& program = *site.program;
  for (uint32_t i = 0; i < program.outputs_count; ++i) {
    const uint8_t extent = site.extents[program.outputs[i].value];
    int32_t shared_input = -1;
    for (int32_t k = 0; k < static_cast<int32_t>(program.inputs_count) && shared_input < 0; ++k)
      if (k != product && program.inputs[k].extent == extent &&
          tn_dtype_bytes(site.inputs[k]) == tn_dtype_bytes(site.outputs[i]) &&
          std::find(pairs.begin(), pairs.end(), k) == pairs.end())
        shared_input = k;
    pairs.push_back(shared_input);
  }
  if (product < 0) return pairs;
  for (int32_t& input : pairs)
    if (input >= 0) input += 2 - (input > product ? 1 : 0);
  pairs.insert(pairs.begin(), -1);  // the product
  return pairs;
}
Pairs pairs_of(const tn_gemm_epilogue& site) { return pairs_of(*site.site, site.product); }
Pairs pairs_of(const tn_conv_epilogue& site) { return pairs_of(*site.site, site.product); }
template <typename Site>
Pairs pairs_of(const Site&) {
  return {};
}

// The table of one family, whose calls run on copies of their operands. The functions of a table get nothing that leads
// to the given one, so that is a static variable: one for each family of the one component that the process checks.
template <typename Table, typename Site>
struct GuardedTable {
  static inline Table inner, copy;

  static tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const Site* site,
                           tn_prepared* prepared) {
    return prepare_guarded(prepared, pairs_of(*site),
                           [&](tn_prepared* to) { return inner.prepare(device, services, errors, site, to); });
  }
  static const void* of(const void* table) {
    inner = {};
    std::memcpy(&inner, table, std::min<size_t>(*static_cast<const uint32_t*>(table), sizeof inner));
    copy = inner;
    if (inner.prepare != nullptr) copy.prepare = prepare;
    return &copy;
  }
};

// The same for the table that packs matrices, which prepares several kinds of calls.
struct GuardedPacking {
  static inline tn_packed_gemm_table inner, copy;

  template <auto kPrepare, typename Site>
  static tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const Site* site,
                           tn_prepared* prepared) {
    return prepare_guarded(prepared, pairs_of(*site),
                           [&](tn_prepared* to) { return (inner.*kPrepare)(device, services, errors, site, to); });
  }
  static const void* of(const void* table) {
    inner = {};
    std::memcpy(&inner, table, std::min<size_t>(*static_cast<const uint32_t*>(table), sizeof inner));
    copy = inner;
    if (inner.prepare_pack != nullptr) copy.prepare_pack = prepare<&tn_packed_gemm_table::prepare_pack>;
    if (inner.prepare_multiply != nullptr) copy.prepare_multiply = prepare<&tn_packed_gemm_table::prepare_multiply>;
    if (inner.prepare_epilogue != nullptr) copy.prepare_epilogue = prepare<&tn_packed_gemm_table::prepare_epilogue>;
    return &copy;
  }
};

const void* guarded_table(const std::string& id, const void* inner) {
  const std::pair<const char*, const void* (*)(const void*)> families[] = {
      {TN_GEMM, GuardedTable<tn_gemm_table, tn_gemm>::of},
      {TN_GEMM_EPILOGUE, GuardedTable<tn_gemm_epilogue_table, tn_gemm_epilogue>::of},
      {TN_PACKED_GEMM, GuardedPacking::of},
      {TN_POINTWISE, GuardedTable<tn_pointwise_table, tn_pointwise_site>::of},
      {TN_GATHER, GuardedTable<tn_gather_table, tn_gather>::of},
      {TN_GATHER_GEMM, GuardedTable<tn_gather_gemm_table, tn_gather_gemm>::of},
      {TN_MOVE, GuardedTable<tn_move_table, tn_move>::of},
      {TN_SEGMENT, GuardedTable<tn_segment_table, tn_segment>::of},
      {TN_ARGSORT, GuardedTable<tn_argsort_table, tn_argsort>::of},
      {TN_PREFIX_SUM, GuardedTable<tn_prefix_sum_table, tn_prefix_sum>::of},
      {TN_CONV, GuardedTable<tn_conv_table, tn_conv>::of},
      {TN_CONV_EPILOGUE, GuardedTable<tn_conv_epilogue_table, tn_conv_epilogue>::of},
      {TN_POOL, GuardedTable<tn_pool_table, tn_pool>::of},
      {TN_RESIZE, GuardedTable<tn_resize_table, tn_resize_site>::of},
  };
  if (inner == nullptr) return nullptr;
  for (const auto& [family, guarded] : families)
    if (id == family) return guarded(inner);
  return inner;
}

// Of the one device that the process checks, like the tables.
const tn_device_type* given_device = nullptr;

const void* guarded_extension(void* user, const char* id) {
  return guarded_table(id, given_device->extension(user, id));
}

// ---- descriptors

// What the copies of descriptors consist of; kept until the process ends, as hosts need.
struct Kept {
  std::deque<tn_plugin> plugins;
  std::deque<GuardedKernel> kernels;
  std::deque<std::vector<const tn_kernel*>> lists;
  std::vector<const tn_device_type*> devices;
  tn_device_type device;
  std::vector<const tn_provider*> providers;
  tn_provider provider;
};
Kept& kept() {
  static Kept result;
  return result;
}

}  // namespace

const tn_plugin* guarded_plugin(const tn_plugin& plugin) {
  tn_plugin& copy = kept().plugins.emplace_back(full_plugin(plugin));
  std::vector<const tn_kernel*>& list = kept().lists.emplace_back();
  for (uint32_t i = 0; i < copy.kernels_count; ++i) {
    GuardedKernel& kernel =
        kept().kernels.emplace_back(GuardedKernel{plugin.kernels[i], base::full_table(*plugin.kernels[i])});
    kernel.table.supports = supports;
    kernel.table.query = query;
    kernel.table.prepare = prepare;
    kernel.table.user = &kernel;
    list.push_back(&kernel.table);
  }
  copy.kernels = list.data();
  return &copy;
}

const tn_plugin* guarded_device(const tn_plugin& plugin, const std::string& kind) {
  tn_plugin& copy = kept().plugins.emplace_back(full_plugin(plugin));
  kept().devices.clear();
  for (uint32_t i = 0; i < copy.devices_count; ++i) {
    kept().devices.push_back(plugin.devices[i]);
    if (kind != plugin.devices[i]->description->kind || plugin.devices[i]->extension == nullptr) continue;
    given_device = plugin.devices[i];
    kept().device = base::full_table(*given_device);
    kept().device.extension = guarded_extension;
    kept().devices.back() = &kept().device;
  }
  copy.devices = kept().devices.data();
  return &copy;
}

const tn_plugin* guarded_provider(const tn_plugin& plugin, const std::string& name) {
  tn_plugin& copy = kept().plugins.emplace_back(full_plugin(plugin));
  kept().providers.clear();
  for (uint32_t i = 0; i < copy.providers_count; ++i) {
    kept().providers.push_back(plugin.providers[i]);
    if (name != plugin.providers[i]->name) continue;
    kept().provider = base::full_table(*plugin.providers[i]);
    kept().provider.table = guarded_table(kept().provider.id, kept().provider.table);
    kept().providers.back() = &kept().provider;
  }
  copy.providers = kept().providers.data();
  return &copy;
}

const tn_plugin* plugin_without_kernels(const tn_plugin& plugin) {
  tn_plugin& copy = kept().plugins.emplace_back(full_plugin(plugin));
  copy.kernels_count = 0;
  copy.kernels = nullptr;
  return &copy;
}

void share_memory(bool on) { shares = on; }

std::string guard_fault() {
  const std::lock_guard<std::mutex> lock(fault_lock);
  return std::exchange(first_fault, "");
}

int64_t guarded_runs() { return runs; }
int64_t guarded_draws() { return draws; }

}  // namespace tenon::check
