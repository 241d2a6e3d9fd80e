// How many cores a process may use. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tenon::base {

struct UsableCores {
  int32_t count = 1;
  std::string reason;  // "the affinity of the process has 16 cores"
};

[[nodiscard]] int32_t cores_of_affinity();

// The cores of the affinity of this process, or fewer if the CPU quota of its control group, or of one around that, is
// smaller: rounded up, at least one. Control groups of both versions are read. root: the folder in which /proc and the
// mounted control groups are.
[[nodiscard]] UsableCores usable_cores(const std::filesystem::path& root = "/", int32_t affine = cores_of_affinity());

}  // namespace tenon::base
