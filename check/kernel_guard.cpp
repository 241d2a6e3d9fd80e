// SPDX-License-Identifier: Apache-2.0
#include "check/kernel_guard.h"

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

namespace tenon::check {

namespace {

// Of the process, which checks one plugin: a kernel's functions have no argument that leads to the kit.
std::mutex fault_lock;
std::string first_fault;
std::atomic<int64_t> runs;

void blame(const std::string& fault) {
  const std::lock_guard<std::mutex> lock(fault_lock);
  if (first_fault.empty()) first_fault = fault;
}

constexpr unsigned char kPoison = 0xFF;  // as float32 and float64 a NaN
constexpr uint64_t kAlignment = 64;

// Memory that ends at a page without access, or up to 63 bytes before it, for the alignment.
class Block {
 public:
  explicit Block(uint64_t bytes) : bytes_(bytes) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
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
  ~Block() { munmap(base_, mapped_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

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

struct GuardedKernel {
  const tn_kernel* given;
  tn_kernel table;
};

struct GuardedBinding {
  tn_prepared given;
};

// The site as the given kernel expects it.
tn_kernel_site site_of(const tn_kernel_site* site) {
  tn_kernel_site result = *site;
  result.user = static_cast<const GuardedKernel*>(site->user)->given->user;
  return result;
}
const tn_kernel& given_of(const tn_kernel_site* site) { return *static_cast<const GuardedKernel*>(site->user)->given; }

tn_status supports(const tn_kernel_site* site, int32_t* score) {
  const tn_kernel_site with = site_of(site);
  return given_of(site).supports == nullptr ? TN_OK : given_of(site).supports(&with, score);
}
tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  const tn_kernel_site with = site_of(site);
  return given_of(site).query == nullptr ? TN_OK : given_of(site).query(&with, needs);
}

uint64_t bytes_of(const tn_tensor& tensor) {
  return tn_dtype_storage(TN_DTYPE(tensor.dl.dtype.code, tensor.dl.dtype.bits),
                          static_cast<uint64_t>(tn_elements(&tensor)));
}

// The copies of the operands of one run.
class Operands {
 public:
  Operands(const tn_call& call, uint64_t workspace) : call_(call), workspace_(workspace) {
    for (uint32_t i = 0; i < call.inputs_count; ++i) {
      inputs_.push_back(call.inputs[i] == nullptr ? nullptr : copy(*call.inputs[i], true));
      if (inputs_.back() != nullptr) blocks_.back()->protect();
    }
    first_output_ = blocks_.size();
    for (uint32_t i = 0; i < call.outputs_count; ++i)
      outputs_.push_back(call.outputs[i] == nullptr ? nullptr
                                                    : copy(*call.outputs[i], call.requests[i] == TN_REQUEST_ADD));
    call_.inputs = inputs_.data();
    call_.outputs = outputs_.data();
    call_.workspace = workspace == 0 ? nullptr : workspace_.data();
  }
  [[nodiscard]] const tn_call* call() const { return &call_; }
  void finish(const tn_call& given) const {
    if (workspace_.overrun()) blame("a kernel writes outside of its workspace");
    size_t block = first_output_;
    for (uint32_t i = 0; i < given.outputs_count; ++i) {
      if (given.outputs[i] == nullptr) continue;
      const Block& from = *blocks_[block++];
      if (from.overrun()) blame("a kernel writes outside of operand " + std::to_string(i) + " of its results");
      if (from.bytes() > 0) std::memcpy(tn_data(given.outputs[i]), from.data(), from.bytes());
    }
  }

 private:
  tn_tensor* copy(const tn_tensor& tensor, bool with_values) {
    blocks_.push_back(std::make_unique<Block>(bytes_of(tensor)));
    if (with_values && blocks_.back()->bytes() > 0)
      std::memcpy(blocks_.back()->data(), tn_data(&tensor), blocks_.back()->bytes());
    tensors_.push_back(tensor);
    tensors_.back().dl.data = blocks_.back()->data();
    tensors_.back().dl.byte_offset = 0;
    return &tensors_.back();
  }

  tn_call call_;
  Block workspace_;
  std::deque<tn_tensor> tensors_;
  std::vector<std::unique_ptr<Block>> blocks_;
  size_t first_output_ = 0;
  std::vector<const tn_tensor*> inputs_;
  std::vector<tn_tensor*> outputs_;
};

tn_status run(void* binding, const tn_execution* execution, const tn_call* call) try {
  const tn_prepared& given = static_cast<GuardedBinding*>(binding)->given;
  const Operands operands(*call, given.workspace_bytes);
  const tn_status status = given.run(given.binding, execution, operands.call());
  operands.finish(*call);
  ++runs;
  return status;
} catch (const std::bad_alloc&) {
  return tn_fail(execution->errors, TN_OUT_OF_MEMORY, nullptr, "no memory for guarded operands");
}

void destroy(void* binding) {
  const std::unique_ptr<GuardedBinding> owned(static_cast<GuardedBinding*>(binding));
  if (owned->given.destroy != nullptr) owned->given.destroy(owned->given.binding);
}

tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const tn_kernel_site with = site_of(site);
  auto made = std::make_unique<GuardedBinding>();
  made->given.size = sizeof(tn_prepared);
  const tn_status status = given_of(site).prepare(&with, direction, &made->given);
  if (status != TN_OK) return status;
  prepared->traits = made->given.traits;
  prepared->workspace_bytes = made->given.workspace_bytes;
  prepared->run = run;
  prepared->destroy = destroy;
  prepared->binding = made.release();
  return TN_OK;
}

// A table of full size: an older plugin's may end early.
template <typename Table>
Table whole(const Table& given) {
  Table result = {};
  std::memcpy(&result, &given, std::min<size_t>(given.size, sizeof result));
  result.size = sizeof result;
  return result;
}

// What the copies of descriptors consist of; kept until the process ends, as hosts need.
struct Kept {
  std::deque<tn_plugin> plugins;
  std::deque<GuardedKernel> kernels;
  std::deque<std::vector<const tn_kernel*>> lists;
};
Kept& kept() {
  static Kept result;
  return result;
}

}  // namespace

const tn_plugin* guarded_plugin(const tn_plugin& plugin) {
  tn_plugin& made = kept().plugins.emplace_back(whole(plugin));
  std::vector<const tn_kernel*>& list = kept().lists.emplace_back();
  for (uint32_t i = 0; i < made.kernels_count; ++i) {
    GuardedKernel& kernel = kept().kernels.emplace_back(GuardedKernel{plugin.kernels[i], whole(*plugin.kernels[i])});
    if (kernel.table.fusion == nullptr) {
      kernel.table.supports = supports;
      kernel.table.query = query;
      kernel.table.prepare = prepare;
      kernel.table.user = &kernel;
    }
    list.push_back(&kernel.table);
  }
  made.kernels = list.data();
  return &made;
}

const tn_plugin* plugin_without_kernels(const tn_plugin& plugin) {
  tn_plugin& made = kept().plugins.emplace_back(whole(plugin));
  made.kernels_count = 0;
  made.kernels = nullptr;
  return &made;
}

std::string guard_fault() {
  const std::lock_guard<std::mutex> lock(fault_lock);
  return std::exchange(first_fault, "");
}

int64_t guarded_runs() { return runs; }

}  // namespace tenon::check
