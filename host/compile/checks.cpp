// SPDX-License-Identifier: Apache-2.0
#include "host/compile/checks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/alignment.h"
#include "core/array_view.h"
#include "core/error.h"

namespace tenon::host {

namespace {

constexpr int64_t kGuardBytes = 256;  // before and behind each block
// What the memory holds, in words of little-endian bytes. As float32 and as float64 both are quiet NaNs, whose bits
// arithmetic passes on but for the sign: a result with them was computed from this memory.
// Outside of inputs, outputs and workspace there are different words: a loop that is too long copies what lies behind
// an input to behind an output.
constexpr uint32_t kInputGuard = 0xFFFDFDFD, kOutputGuard = 0x7FFCFCFC, kWorkspaceGuard = 0x7FFAFAFA;
constexpr uint32_t kUnwritten = 0xFFFBFBFB;  // inside, before the first write

// Returns byte `at` of memory that repeats the word, counted from the beginning of an operand.
std::byte byte_of(uint32_t word, int64_t at) {
  return static_cast<std::byte>(word >> (8 * static_cast<uint32_t>(at & 3)) & 0xFFU);
}

// Returns the first element of 4 or 8 bytes that has the bits of the word, or but for the sign; -1 if there is none.
int64_t element_of(uint32_t word, const std::byte* data, uint64_t bytes, size_t element, bool any_sign) {
  const uint64_t wanted = element == 8 ? uint64_t{word} << 32 | word : word;
  const uint64_t sign = any_sign ? uint64_t{1} << (8 * element - 1) : 0;
  for (uint64_t at = 0; at + element <= bytes; at += element) {
    uint64_t found = 0;
    std::memcpy(&found, data + at, element);
    if ((found | sign) == (wanted | sign)) return static_cast<int64_t>(at / element);
  }
  return -1;
}

// A copy of memory between guard lines. Begins at a cache line.
class GuardedBlock {
 public:
  GuardedBlock(uint64_t bytes, uint32_t guard)
      : guard_(guard),
        bytes_(bytes),
        memory_(std::make_unique<std::byte[]>(bytes + 2 * static_cast<uint64_t>(kGuardBytes) + kCacheLine)) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.get()) + kGuardBytes;
    data_ = memory_.get() + kGuardBytes + (kCacheLine - address % kCacheLine) % kCacheLine;
    const auto size = static_cast<int64_t>(bytes);
    for (int64_t i = -kGuardBytes; i < size + kGuardBytes; ++i)
      data_[i] = byte_of(i < 0 || i >= size ? guard_ : kUnwritten, i);
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] uint64_t size() const { return bytes_; }
  // Describes the guard line that was overwritten, "" if none was.
  [[nodiscard]] std::string overrun() const {
    const auto written = [&](int64_t at) { return data_[at] != byte_of(guard_, at); };
    const auto end = static_cast<int64_t>(bytes_);
    int64_t last = end + kGuardBytes;
    while (last > end && !written(last - 1)) --last;
    if (last > end) return text(last - end, " bytes behind ");
    int64_t first = -kGuardBytes;
    while (first < 0 && !written(first)) ++first;
    return first == 0 ? "" : text(-first, " bytes before ");
  }

 private:
  uint32_t guard_;
  uint64_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* data_ = nullptr;
};

// Returns the name of number `i` of the inputs or outputs of a call, by the order of tenon/kernel.h.
std::string operand_name(const NativeOperands& of, bool backward, bool output, size_t i) {
  struct Class {
    const char* name;
    size_t count;
  };
  std::vector<Class> classes;
  if (!backward && !output)
    classes = {
        {"input", of.inputs}, {"parameter", of.parameters}, {"buffer", of.buffers}, {"carried state", of.carried}};
  else if (!backward)
    classes = {{"output", of.outputs},
               {"next value of buffer", of.buffers},
               {"next value of carried state", of.carried},
               {"offsets or count of rows", 2 * of.made_rows},
               {"saved tensor", of.saved}};
  else if (!output)
    classes = {{"input", of.inputs},
               {"parameter", of.parameters},
               {"buffer", of.buffers},
               {"carried state", of.carried},
               {"output", of.outputs},
               {"saved tensor", of.saved},
               {"gradient of output", of.outputs},
               {"gradient of next carried state", of.carried}};
  else
    classes = {{"gradient of input", of.inputs},
               {"gradient of parameter", of.parameters},
               {"gradient of carried state", of.carried}};
  for (const Class& each : classes) {
    if (i < each.count) return text(each.name, " ", i);
    i -= each.count;
  }
  return text("ids of the gradient's rows ", i);
}

// Whether the kernel must write all elements of output number `i`: of layer outputs, unless it makes the number of
// their rows, and of gradients.
bool is_written_whole(const NativeOperands& of, bool backward, size_t i) {
  return backward ? i < of.inputs + of.parameters : i < of.outputs && of.made_rows == 0;
}

// The copies of the tensors of one call.
class GuardedOperands : base::NotCopied {
 public:
  // shared[output]: number of the input whose copy is that of the output, too, or -1; a shorter list: -1 of the rest.
  GuardedOperands(const tn_call& call, uint64_t workspace_bytes, const std::vector<int32_t>& shared = {})
      : given_(call), workspace_(workspace_bytes, kWorkspaceGuard) {
    for (uint32_t i = 0; i < call.inputs_count; ++i) add(call.inputs[i], kInputGuard, true);
    for (uint32_t i = 0; i < call.outputs_count; ++i) {
      add(call.outputs[i], kOutputGuard, call.requests[i] == TN_REQUEST_ADD);
      if (i < shared.size() && shared[i] >= 0) share(static_cast<size_t>(shared[i]));
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      tn_tensor* const tensor = blocks_[i] == nullptr ? nullptr : &tensors_[i];
      if (i < call.inputs_count)
        inputs_.push_back(tensor);
      else
        outputs_.push_back(tensor);
    }
    call_ = call;
    call_.inputs = inputs_.data();
    call_.outputs = outputs_.data();
    call_.workspace = workspace_.data();
  }

  [[nodiscard]] const tn_call& call() const { return call_; }

  // Describes what the kernel did wrong, "" if nothing.
  [[nodiscard]] std::string fault(const NativeOperands& of, bool backward) const {
    if (const std::string overrun = workspace_.overrun(); !overrun.empty())
      return text("wrote ", overrun, "its workspace of ", workspace_.size(), " bytes");
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (blocks_[i] == nullptr) continue;
      const bool output = i >= given_.inputs_count;
      const size_t number = output ? i - given_.inputs_count : i;
      const std::string name = operand_name(of, backward, output, number);
      if (const std::string overrun = blocks_[i]->overrun(); !overrun.empty())
        return text("wrote ", overrun, name, " of ", blocks_[i]->size(), " bytes");
      if (!output && changed(i)) return text("changed ", name);
      if (output && given_.requests[number] == TN_REQUEST_WRITE && is_written_whole(of, backward, number))
        if (const int64_t element = holds(kUnwritten, i); element >= 0)
          return text("did not write element ", element, " of ", name);
      if (!output || !is_float(i)) continue;
      for (const uint32_t guard : {kInputGuard, kOutputGuard, kWorkspaceGuard})
        if (const int64_t element = holds(guard, i); element >= 0)
          return text("computed element ", element, " of ", name, " from memory outside of its operands");
    }
    return "";
  }

  // Returns the number of the first output that has other bytes in `other`, -1 if there is none.
  [[nodiscard]] int64_t differs(const GuardedOperands& other) const {
    for (size_t i = given_.inputs_count; i < tensors_.size(); ++i)
      if (blocks_[i] != nullptr && blocks_[i]->size() > 0 &&
          std::memcmp(blocks_[i]->data(), other.blocks_[i]->data(), blocks_[i]->size()) != 0)
        return static_cast<int64_t>(i - given_.inputs_count);
    return -1;
  }

  void copy_back() const {
    for (size_t i = given_.inputs_count; i < tensors_.size(); ++i)
      if (blocks_[i] != nullptr && blocks_[i]->size() > 0)
        std::memcpy(original(i), blocks_[i]->data(), blocks_[i]->size());
  }

 private:
  void add(const tn_tensor* tensor, uint32_t guard, bool copied) {
    tensors_.push_back(tensor == nullptr ? tn_tensor{} : *tensor);
    blocks_.push_back(nullptr);
    if (tensor == nullptr) return;
    blocks_.back() = std::make_shared<GuardedBlock>(bytes_of(*tensor), guard);
    if (copied && blocks_.back()->size() > 0)
      std::memcpy(blocks_.back()->data(), tn_data(tensor), blocks_.back()->size());
    tensors_.back().dl.data = blocks_.back()->data();
    tensors_.back().dl.byte_offset = 0;
  }
  // Puts the last tensor into the copy of input `i`.
  void share(size_t i) {
    blocks_.back() = blocks_[i];
    tensors_.back().dl.data = blocks_[i]->data();
  }
  [[nodiscard]] uint8_t* original(size_t i) const {
    return tn_data(i < given_.inputs_count ? given_.inputs[i] : given_.outputs[i - given_.inputs_count]);
  }
  [[nodiscard]] bool changed(size_t i) const {
    return blocks_[i]->size() > 0 && std::memcmp(original(i), blocks_[i]->data(), blocks_[i]->size()) != 0;
  }
  [[nodiscard]] bool is_float(size_t i) const { return tensors_[i].dl.dtype.code == kDLFloat; }
  // Returns the first element that has the bits of the memory, -1 if there is none.
  [[nodiscard]] int64_t holds(uint32_t word, size_t i) const {
    const size_t bytes = tensors_[i].dl.dtype.bits / 8U;
    if (bytes != 4 && bytes != 8) return -1;
    return element_of(word, blocks_[i]->data(), blocks_[i]->size(), bytes, is_float(i));
  }

  const tn_call& given_;
  std::vector<tn_tensor> tensors_;  // of the inputs, then of the outputs
  std::vector<std::shared_ptr<GuardedBlock>> blocks_;
  GuardedBlock workspace_;
  std::vector<const tn_tensor*> inputs_;
  std::vector<tn_tensor*> outputs_;
  tn_call call_ = {};
};

// The pairs of NativeCall::in_place that memory can have in this call.
std::vector<int32_t> pairs_of(const tn_call& call, const NativeCall& native, bool backward) {
  std::vector<int32_t> pairs;
  for (size_t i = 0; i < native.in_place.size() && i < call.outputs_count; ++i) {
    const int32_t from = native.in_place[i];
    const tn_tensor* const input = from < 0 ? nullptr : call.inputs[from];
    const bool fits = input != nullptr && call.outputs[i] != nullptr && call.requests[i] == TN_REQUEST_WRITE &&
                      bytes_of(*input) == bytes_of(*call.outputs[i]) &&
                      is_written_whole(native.operands, backward, i) &&
                      std::find(pairs.begin(), pairs.end(), from) == pairs.end();
    pairs.push_back(fits ? from : -1);
  }
  return pairs;
}

// Runs the call again with each output of `pairs` in the memory of its input. Throws TN_PLUGIN_FAULT if that changes
// what it computes.
tn_status run_shared(const Prepared& prepared, const NativeOperands& of, bool backward, const tn_execution& execution,
                     const tn_call& call, const GuardedOperands& apart, const std::vector<int32_t>& pairs) {
  const GuardedOperands shared(call, prepared->workspace_bytes, pairs);
  const tn_status status = prepared.run(execution, shared.call());
  if (status != TN_OK) return status;
  const int64_t output = apart.differs(shared);
  if (output < 0) return status;
  std::string allowed;
  for (size_t i = 0; i < pairs.size(); ++i)
    if (pairs[i] >= 0)
      allowed += text(allowed.empty() ? "" : " and ", operand_name(of, backward, true, i), " in the memory of ",
                      operand_name(of, backward, false, static_cast<size_t>(pairs[i])));
  fail(TN_PLUGIN_FAULT, ComponentName{prepared.who()},
       text("computes another ", operand_name(of, backward, true, static_cast<size_t>(output)), " with ", allowed,
            ", which its query allows"));
}

}  // namespace

tn_status run_checked(const Prepared& prepared, const NativeCall& native, bool backward, const tn_execution& execution,
                      const tn_call& call) {
  const GuardedOperands operands(call, prepared->workspace_bytes);
  tn_status status = prepared.run(execution, operands.call());
  if (status != TN_OK) return status;
  if (const std::string fault = operands.fault(native.operands, backward); !fault.empty())
    fail(TN_PLUGIN_FAULT, ComponentName{prepared.who()}, fault);
  const std::vector<int32_t> pairs = pairs_of(call, native, backward);
  if ((prepared->traits & TN_TRAIT_NONDETERMINISTIC) == 0 &&
      std::any_of(pairs.begin(), pairs.end(), [](int32_t from) { return from >= 0; }))
    status = run_shared(prepared, native.operands, backward, execution, call, operands, pairs);
  if (status == TN_OK) operands.copy_back();
  return status;
}

std::string first_not_finite(const tn_tensor& tensor) {
  const tn_dtype dtype = TN_DTYPE(tensor.dl.dtype.code, tensor.dl.dtype.bits);
  if (tensor.storage == TN_ROW_SPARSE || (dtype != TN_F32 && dtype != TN_F64)) return "";
  const uint8_t* const data = tn_data(&tensor);
  const int64_t element = find_not_finite(dtype, data, tn_elements(&tensor));
  if (element < 0) return "";
  const double value = dtype == TN_F32 ? static_cast<double>(reinterpret_cast<const float*>(data)[element])
                                       : reinterpret_cast<const double*>(data)[element];
  std::string place;
  int64_t rest = element;
  for (int32_t i = tensor.dl.ndim; i-- > 0;) {
    place = text(rest % tensor.dl.shape[i], place.empty() ? "" : ", ", place);
    rest /= tensor.dl.shape[i];
  }
  return text(value, " at [", place, "]");
}

std::string first_not_finite(const tn_tensor& tensor, HostAccess& access) {
  if (access.is_direct() || tensor.storage == TN_ROW_SPARSE) return first_not_finite(tensor);
  const tn_dtype dtype = TN_DTYPE(tensor.dl.dtype.code, tensor.dl.dtype.bits);
  const Buffer numbers(access.allocator(), tn_dtype_storage(dtype, static_cast<uint64_t>(tn_elements(&tensor))));
  access.read(numbers.data(), tn_data(&tensor), numbers.size());
  tn_tensor copied = tensor;
  copied.dl.data = numbers.data();
  copied.dl.byte_offset = 0;
  return first_not_finite(copied);
}

}  // namespace tenon::host
