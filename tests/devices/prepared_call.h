// A prepared call of a primitive, with operands in memory of the host that the caller owns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/devices/device_under_test.h"
#include "tests/devices/guarded.h"
#include "tests/support/symbols.h"

namespace tenon_tests {

// What a device sees of memory of the host: that memory itself, or copies in its own, with the guards.
class Staging {
 public:
  explicit Staging(DeviceUnderTest& device) : device_(device) {}
  ~Staging() {
    for (const auto& [memory, copy] : copies_) device_.type()->release(device_.device(), copy.on_device, copy.bytes);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Returns the device's address of memory of the host; the first time, copies it there.
  template <typename T>
  T* of(T* memory, size_t bytes) {
    return device_.host_memory() ? memory : static_cast<T*>(staged(memory, bytes));
  }
  uint8_t* of(Guarded& memory) { return of(memory.whole(), memory.whole_size()) + (memory.data() - memory.whole()); }

  // Waits for the device, copies everything back, and returns what the device reports.
  tn_status finish() {
    if (device_.host_memory()) return TN_OK;
    const tn_status status = wait();
    for (const auto& [memory, copy] : copies_)
      if (!copy.is_const) move(TN_COPY_TO_HOST, const_cast<void*>(memory), copy.on_device, copy.bytes);
    EXPECT_EQ(wait(), TN_OK) << device_.message;
    return status;
  }

 private:
  struct Copy {
    void* on_device;
    size_t bytes;
    bool is_const;
  };

  template <typename T>
  T* staged(T* memory, size_t bytes) {
    const auto [at, is_new] = copies_.try_emplace(memory, Copy{nullptr, bytes, std::is_const_v<T>});
    Copy& copy = at->second;
    if (is_new) {
      copy.on_device = device_.type()->allocate(device_.device(), device_.errors(), bytes);
      if (copy.on_device == nullptr) throw std::runtime_error(device_.message);
      move(TN_COPY_TO_DEVICE, copy.on_device, memory, bytes);
    }
    return static_cast<T*>(copy.on_device);
  }
  void move(int32_t kind, void* to, const void* from, size_t bytes) {
    const tn_copy copy = {sizeof copy, kind, nullptr, to, from, bytes};
    EXPECT_EQ(device_.type()->copy(device_.device(), device_.errors(), &copy), TN_OK) << device_.message;
  }
  tn_status wait() { return device_.type()->stream_wait(device_.device(), device_.errors(), nullptr); }

  DeviceUnderTest& device_;
  std::map<const void*, Copy> copies_;
};

// The parts of a TN_ROW_SPARSE operand beside its values.
struct RowsPart {
  int64_t capacity;
  int64_t* count;
  Guarded* ids;  // int64 [capacity]
};

class PreparedCall {
 public:
  explicit PreparedCall(DeviceUnderTest& device) : device_(device) {}
  ~PreparedCall() {
    if (prepared.destroy != nullptr) prepared.destroy(prepared.binding);
  }
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;

  // Runs the call and waits for it; returns the status of either. inputs: null for an absent operand. An output may be
  // null if its request is NONE. sizes: of symbols, as symbol_values takes them.
  tn_status run(const std::vector<Guarded*>& inputs, const std::vector<Guarded*>& outputs,
                const std::vector<uint8_t>& requests, const std::vector<int64_t>& sizes, int32_t workers,
                uint64_t seed = 1) {
    const std::vector<int64_t> symbols = symbol_values(sizes);
    RandomPool pool(workers, seed);
    Guarded workspace(workspace_shift + prepared.workspace_bytes, 0x7f);
    Staging staging(device_);
    std::vector<tn_tensor> tensors(inputs.size() + outputs.size());
    std::vector<tn_row_sparse> parts(tensors.size());
    std::vector<const tn_tensor*> in;
    std::vector<tn_tensor*> out;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const bool is_input = i < inputs.size();
      Guarded* const memory = is_input ? inputs[i] : outputs[i - inputs.size()];
      tensors[i].size = sizeof(tn_tensor);
      if (memory != nullptr) tensors[i].dl.data = staging.of(*memory);
      if (const auto found = rows.find(memory); found != rows.end()) {
        const RowsPart& part = found->second;
        parts[i] = {sizeof(tn_row_sparse), 0, part.capacity, staging.of(part.count, sizeof *part.count),
                    reinterpret_cast<int64_t*>(staging.of(*part.ids))};
        tensors[i].storage = TN_ROW_SPARSE;
        tensors[i].part = &parts[i];
      }
      if (is_input) in.push_back(memory == nullptr ? nullptr : &tensors[i]);
      if (!is_input) out.push_back(requests[i - inputs.size()] == TN_REQUEST_NONE ? nullptr : &tensors[i]);
    }
    const tn_execution execution = {sizeof(tn_execution),
                                    0,
                                    device_.device(),
                                    nullptr,
                                    staging.of(symbols.data(), symbols.size() * sizeof symbols[0]),
                                    staging.of(&kTestStep, sizeof kTestStep),
                                    pool.parallel(),
                                    device_.errors(),
                                    symbols.data()};
    const tn_call call = {sizeof(tn_call),
                          static_cast<uint32_t>(in.size()),
                          static_cast<uint32_t>(out.size()),
                          0,
                          in.data(),
                          out.data(),
                          requests.data(),
                          staging.of(workspace) + workspace_shift,
                          0};
    const tn_status status = prepared.run(prepared.binding, &execution, &call);
    const tn_status late = staging.finish();
    EXPECT_TRUE(workspace.intact()) << "the call wrote outside its workspace";
    return status != TN_OK ? status : late;
  }

  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  std::map<const Guarded*, RowsPart> rows;  // operands that are TN_ROW_SPARSE, by their values
  size_t workspace_shift = 0;  // a multiple of 64: a machine's calls share a block, so theirs begin anywhere in it

 private:
  DeviceUnderTest& device_;
};

}  // namespace tenon_tests
