// The built plugin "cpu", called as a host calls it, with a small thread pool that runs tasks in random order, and
// tensors between guards. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <tenon/plugin.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/symbols.h"

namespace tenon_tests {

// Seed and step of the random numbers in the calls of the tests.
inline constexpr tn_random kTestStep = {0x9876543210abcdef, 0x100000005};

// A tn_parallel that starts new threads in each for_each and runs tasks in random order.
class RandomPool {
 public:
  RandomPool(int32_t workers, uint64_t seed)
      : random_(seed), parallel_{sizeof(tn_parallel), workers, this, &for_each, &phases} {}
  RandomPool(const RandomPool&) = delete;
  RandomPool& operator=(const RandomPool&) = delete;
  [[nodiscard]] const tn_parallel* parallel() const { return &parallel_; }

 private:
  static void for_each(void* self, int64_t count, void (*task)(void*, int64_t, int32_t), void* argument) {
    auto& pool = *static_cast<RandomPool*>(self);
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), pool.random_);
    std::atomic<size_t> next{0};
    const auto work = [&](int32_t worker) {
      for (size_t i = next++; i < order.size(); i = next++) task(argument, order[i], worker);
    };
    std::vector<std::thread> threads;
    const auto most = std::min<int64_t>(pool.parallel_.workers, count);
    for (int32_t worker = 1; worker < most; ++worker) threads.emplace_back(work, worker);
    work(0);
    for (std::thread& thread : threads) thread.join();
  }

  static void phases(void* self, int32_t count, const int64_t* sizes, void (*task)(void*, int32_t, int64_t, int32_t),
                     void* argument) {
    struct Phase {
      void (*task)(void*, int32_t, int64_t, int32_t);
      void* argument;
      int32_t phase;
    };
    for (int32_t i = 0; i < count; ++i) {
      Phase phase = {task, argument, i};
      const auto run = [](void* given, int64_t index, int32_t worker) {
        const Phase& of = *static_cast<Phase*>(given);
        of.task(of.argument, of.phase, index, worker);
      };
      for_each(self, sizes[i], run, &phase);
    }
  }

  std::mt19937_64 random_;
  tn_parallel parallel_;
};

// Bytes between two guards; intact() returns whether the guards are unchanged.
class Guarded {
 public:
  explicit Guarded(size_t bytes, uint8_t value = 0xcd) : bytes_(bytes), memory_(bytes + 2 * kGuard + 64, kMark) {
    const auto start = reinterpret_cast<uintptr_t>(memory_.data()) + kGuard;
    offset_ = kGuard + (64 - start % 64) % 64;
    std::fill_n(data(), bytes, value);
  }
  Guarded(Guarded&&) = default;  // moving keeps the vector's memory where it is
  Guarded& operator=(Guarded&&) = default;
  uint8_t* data() { return memory_.data() + offset_; }
  [[nodiscard]] const uint8_t* data() const { return memory_.data() + offset_; }
  [[nodiscard]] size_t size() const { return bytes_; }
  [[nodiscard]] bool intact() const {
    const auto marked = [](uint8_t byte) { return byte == kMark; };
    return std::all_of(memory_.begin(), memory_.begin() + static_cast<ptrdiff_t>(offset_), marked) &&
           std::all_of(memory_.begin() + static_cast<ptrdiff_t>(offset_ + bytes_), memory_.end(), marked);
  }
  [[nodiscard]] std::vector<uint8_t> bytes() const { return {data(), data() + bytes_}; }

 private:
  static constexpr size_t kGuard = 128;
  static constexpr uint8_t kMark = 0xa5;
  size_t bytes_;
  size_t offset_;
  std::vector<uint8_t> memory_;
};

inline float from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const float fraction = static_cast<float>(bits & 1023);
  float size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) size = fraction == 0 ? INFINITY : NAN;
  return (bits & 0x8000) != 0 ? -size : size;
}

// Convert an element of any type to a double and back. write_element needs a number that the type can hold.
inline double read_element(tn_dtype dtype, const uint8_t* at) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
    case TN_I8:
      return as(int8_t{});
    case TN_I16:
      return as(int16_t{});
    case TN_I32:
      return as(int32_t{});
    case TN_I64:
      return as(int64_t{});
    case TN_U8:
      return as(uint8_t{});
    case TN_U16:
      return as(uint16_t{});
    case TN_U32:
      return as(uint32_t{});
    case TN_F32:
      return as(float{});
    case TN_F64:
      return as(double{});
    case TN_BOOL:
      return *at;
    case TN_F16: {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      return from_half(bits);
    }
    case TN_BF16: {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      const uint32_t wide = static_cast<uint32_t>(bits) << 16;
      float value;
      std::memcpy(&value, &wide, 4);
      return value;
    }
    default:
      throw std::invalid_argument("no such element type");
  }
}

inline void write_element(tn_dtype dtype, uint8_t* at, double number) {
  const auto as = [&]<class T>(T value) {
    value = static_cast<T>(number);
    std::memcpy(at, &value, sizeof value);
  };
  switch (dtype) {
    case TN_I8:
      return as(int8_t{});
    case TN_I16:
      return as(int16_t{});
    case TN_I32:
      return as(int32_t{});
    case TN_I64:
      return as(int64_t{});
    case TN_U8:
      return as(uint8_t{});
    case TN_U16:
      return as(uint16_t{});
    case TN_U32:
      return as(uint32_t{});
    case TN_F32:
      return as(float{});
    case TN_F64:
      return as(double{});
    case TN_BOOL:
      *at = number != 0 ? 1 : 0;
      return;
    case TN_F16: {  // normal numbers that a half can hold
      int exponent = 0;
      const double fraction = std::frexp(std::fabs(number), &exponent);
      const int bits = number == 0 ? 0 : (exponent + 14) << 10 | static_cast<int>(fraction * 2048 - 1024);
      const auto half = static_cast<uint16_t>(bits | (number < 0 ? 0x8000 : 0));
      std::memcpy(at, &half, 2);
      return;
    }
    case TN_BF16: {
      const auto value = static_cast<float>(number);
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      const auto upper = static_cast<uint16_t>(bits >> 16);
      std::memcpy(at, &upper, 2);
      return;
    }
    default:
      throw std::invalid_argument("no such element type");
  }
}

inline std::vector<double> read_all(tn_dtype dtype, const Guarded& memory) {
  std::vector<double> numbers;
  for (size_t at = 0; at < memory.size(); at += tn_dtype_bytes(dtype))
    numbers.push_back(read_element(dtype, memory.data() + at));
  return numbers;
}

inline Guarded write_all(tn_dtype dtype, const std::vector<double>& numbers) {
  Guarded memory(numbers.size() * tn_dtype_bytes(dtype));
  for (size_t i = 0; i < numbers.size(); ++i)
    write_element(dtype, memory.data() + i * tn_dtype_bytes(dtype), numbers[i]);
  return memory;
}

// Returns the descriptor of the built plugin.
inline const tn_plugin* built_plugin() {
  const std::string path = tenon_tests::plugin_folder() + "/devices/cpu.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto entry = reinterpret_cast<tn_entry>(dlsym(library, TN_ENTRY_NAME));
  if (entry == nullptr) throw std::runtime_error(path + " has no entry");
  return entry();
}

// The plugin and its device 0, opened by the constructor.
class CpuDevice {
 public:
  explicit CpuDevice(const tn_plugin* plugin = built_plugin()) : plugin_(plugin) {
    const tn_device_open open = {sizeof open, 0, &services_, errors(), type()->user};
    if (type()->open(&open, &device_) != TN_OK) throw std::runtime_error(message);
  }
  ~CpuDevice() { type()->close(device_); }
  CpuDevice(const CpuDevice&) = delete;
  CpuDevice& operator=(const CpuDevice&) = delete;

  [[nodiscard]] const tn_plugin* plugin() const { return plugin_; }
  [[nodiscard]] const tn_device_type* type() const { return plugin_->devices[0]; }
  [[nodiscard]] void* device() const { return device_; }
  [[nodiscard]] const tn_services* services() const { return &services_; }
  [[nodiscard]] const tn_errors* errors() const { return &errors_; }
  [[nodiscard]] const std::map<void*, uint64_t>& allocated() const { return allocated_; }
  template <class Table>
  [[nodiscard]] const Table* table(const char* id) const {
    return static_cast<const Table*>(type()->extension(type()->user, id));
  }

  // The last report.
  std::string message, port;
  tn_status code = TN_OK;
  bool refuse_memory = false;

 private:
  static void report(void* self, const tn_error_report* report) {
    auto& device = *static_cast<CpuDevice*>(self);
    device.code = report->code;
    device.message = report->message;
    device.port = report->port == nullptr ? "" : report->port;
  }
  static void* allocate(void* self, uint64_t bytes) {
    auto& device = *static_cast<CpuDevice*>(self);
    if (device.refuse_memory) return nullptr;
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    device.allocated_[memory] = bytes;
    return memory;
  }
  static void release(void* self, void* memory, uint64_t bytes) {
    auto& device = *static_cast<CpuDevice*>(self);
    EXPECT_EQ(device.allocated_.at(memory), bytes);
    device.allocated_.erase(memory);
    std::free(memory);
  }
  static const void* service(void* self, const char* id) {
    return std::strcmp(id, TN_MEMORY) == 0 ? &static_cast<CpuDevice*>(self)->memory_ : nullptr;
  }

  const tn_plugin* plugin_;
  void* device_ = nullptr;
  std::map<void*, uint64_t> allocated_;
  tn_memory memory_ = {sizeof(tn_memory), 0, this, &allocate, &release};
  tn_errors errors_ = {sizeof(tn_errors), 0, this, &report};
  tn_services services_ = {sizeof(tn_services), TN_ABI_MAJOR, TN_ABI_MINOR, this, &service};
};

// A prepared call with operands that the caller owns. `outputs` may be null if the request is NONE.
class PreparedCall {
 public:
  explicit PreparedCall(CpuDevice& device) : device_(device) {}
  ~PreparedCall() {
    if (prepared.destroy != nullptr) prepared.destroy(prepared.binding);
  }
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;

  // sizes: of symbols, as symbol_values takes them.
  tn_status run(const std::vector<void*>& inputs, const std::vector<void*>& outputs,
                const std::vector<uint8_t>& requests, const std::vector<int64_t>& sizes, int32_t workers,
                uint64_t seed = 1) {
    const std::vector<int64_t> symbols = symbol_values(sizes);
    RandomPool pool(workers, seed);
    Guarded workspace(prepared.workspace_bytes, 0x7f);
    std::vector<tn_tensor> tensors(inputs.size() + outputs.size());
    std::vector<const tn_tensor*> in;
    std::vector<tn_tensor*> out;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const bool is_input = i < inputs.size();
      tensors[i].size = sizeof(tn_tensor);
      tensors[i].dl.data = is_input ? inputs[i] : outputs[i - inputs.size()];
      if (const auto found = rows.find(tensors[i].dl.data); found != rows.end()) {
        tensors[i].storage = TN_ROW_SPARSE;
        tensors[i].part = found->second;
      }
      if (is_input) in.push_back(inputs[i] == nullptr ? nullptr : &tensors[i]);  // null: an absent operand
      if (!is_input) out.push_back(requests[i - inputs.size()] == TN_REQUEST_NONE ? nullptr : &tensors[i]);
    }
    const tn_execution execution = {sizeof(tn_execution), 0,          device_.device(), nullptr,
                                    symbols.data(),       &kTestStep, pool.parallel(),  device_.errors()};
    const tn_call call = {sizeof(tn_call),
                          static_cast<uint32_t>(in.size()),
                          static_cast<uint32_t>(out.size()),
                          0,
                          in.data(),
                          out.data(),
                          requests.data(),
                          workspace.data(),
                          0};
    const tn_status status = prepared.run(prepared.binding, &execution, &call);
    EXPECT_TRUE(workspace.intact()) << "the call wrote outside its workspace";
    return status;
  }

  tn_prepared prepared = {sizeof(tn_prepared), 0, nullptr, 0, nullptr, nullptr};
  std::map<const void*, const tn_row_sparse*> rows;  // operands that are TN_ROW_SPARSE, by where their values lie

 private:
  CpuDevice& device_;
};

}  // namespace tenon_tests
