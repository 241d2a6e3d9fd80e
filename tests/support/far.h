// Hosts with the device "far", and models that run on it and on "cpu" with equal bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <random>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

// A host with all plugins but the providers of other libraries, whose convolutions have other bits than the device's.
class FarHost {
 public:
  explicit FarHost(int threads = 2, bool check_finite = false) : host_(made(threads, check_finite)) {}
  [[nodiscard]] const Host& operator*() const { return host_; }
  [[nodiscard]] const Host* operator->() const { return &host_; }

 private:
  [[nodiscard]] Host made(int threads, bool check_finite) const {
    const std::string cpu = "/devices/cpu.so";
    std::filesystem::copy_file(plugin_folder() + cpu, folder_.file("cpu.so"));
    HostOptions options;
    options.threads = threads;
    options.check_finite = check_finite;
    for (const char* kind : {"/layers", "/updaters", "/readers"})
      options.plugin_paths.push_back(plugin_folder() + kind);
    options.plugin_paths.push_back(folder_.path().string());
    options.plugin_paths.push_back(test_plugin_folder() + "/devices");
    return Host(options);
  }

  TemporaryFolder folder_;
  Host host_;
};

inline std::vector<float> drawn(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int64_t>(random() % 4096) - 2048) / 1024;
  return values;
}

inline std::vector<uint8_t> bytes_of(const Array& array) {
  const auto* const data = static_cast<const uint8_t*>(array.data);
  return {data, data + static_cast<size_t>(array.count()) * tn_dtype_bytes(array.dtype)};
}

}  // namespace tenon_tests
