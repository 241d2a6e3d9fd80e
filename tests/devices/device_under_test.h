// The device that a test runs on, called as a host calls it, with a small thread pool that runs tasks in random order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <tenon/plugin.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/paths.h"

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

// Returns the descriptor of the plugin of a device: "far" is a plugin for tests, all others are Tenon's.
inline const tn_plugin* device_plugin(const std::string& kind) {
  const std::string path = (kind == "far" ? test_plugin_folder() : plugin_folder()) + "/devices/" + kind + ".so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto entry = reinterpret_cast<tn_entry>(dlsym(library, TN_ENTRY_NAME));
  if (entry == nullptr) throw std::runtime_error(path + " has no entry");
  return entry();
}

// The kind of the device under test: TENON_TEST_DEVICE of the environment, else "cpu".
inline std::string tested_kind() {
  const char* const chosen = std::getenv("TENON_TEST_DEVICE");
  return chosen == nullptr ? "cpu" : chosen;
}

// A plugin and its device 0, opened by the constructor.
class DeviceUnderTest {
 public:
  explicit DeviceUnderTest(const tn_plugin* plugin = device_plugin(tested_kind())) : plugin_(plugin) {
    const tn_device_open open = {sizeof open, 0, &services_, errors(), type()->user};
    if (type()->open(&open, &device_) != TN_OK) throw std::runtime_error(message);
    tn_device_properties properties = {};
    properties.size = sizeof properties;
    if (type()->properties(device_, errors(), &properties) != TN_OK) throw std::runtime_error(message);
    host_memory_ = properties.host_memory != 0;
  }
  ~DeviceUnderTest() { type()->close(device_); }
  DeviceUnderTest(const DeviceUnderTest&) = delete;
  DeviceUnderTest& operator=(const DeviceUnderTest&) = delete;

  [[nodiscard]] const tn_plugin* plugin() const { return plugin_; }
  [[nodiscard]] const tn_device_type* type() const { return plugin_->devices[0]; }
  [[nodiscard]] void* device() const { return device_; }
  // Whether the host may read and write the device's memory.
  [[nodiscard]] bool host_memory() const { return host_memory_; }
  // The numbers of workers with which a test runs its calls: on other devices the first alone.
  [[nodiscard]] std::vector<int32_t> workers(std::vector<int32_t> counts) const {
    if (!host_memory_) counts.resize(1);
    return counts;
  }
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
    auto& device = *static_cast<DeviceUnderTest*>(self);
    device.code = report->code;
    device.message = report->message;
    device.port = report->port == nullptr ? "" : report->port;
  }
  static void* allocate(void* self, uint64_t bytes) {
    auto& device = *static_cast<DeviceUnderTest*>(self);
    if (device.refuse_memory) return nullptr;
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    device.allocated_[memory] = bytes;
    return memory;
  }
  static void release(void* self, void* memory, uint64_t bytes) {
    auto& device = *static_cast<DeviceUnderTest*>(self);
    EXPECT_EQ(device.allocated_.at(memory), bytes);
    device.allocated_.erase(memory);
    std::free(memory);
  }
  static const void* service(void* self, const char* id) {
    return std::strcmp(id, TN_MEMORY) == 0 ? &static_cast<DeviceUnderTest*>(self)->memory_ : nullptr;
  }

  const tn_plugin* plugin_;
  void* device_ = nullptr;
  bool host_memory_ = true;
  std::map<void*, uint64_t> allocated_;
  tn_memory memory_ = {sizeof(tn_memory), 0, this, &allocate, &release};
  tn_errors errors_ = {sizeof(tn_errors), 0, this, &report};
  tn_services services_ = {sizeof(tn_services), TN_ABI_MAJOR, TN_ABI_MINOR, this, &service};
};

}  // namespace tenon_tests
