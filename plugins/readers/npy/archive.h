// The members of a .npz file, which is a ZIP archive of .npy files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "source.h"

namespace tenon::npy {

struct Member {
  std::string name;      // without ".npy"
  files::Block content;  // empty if it is not read
  uint64_t bytes = 0;
};

// Lists all .npy members, or those of `names` in that order. Inflates those that are `wanted` and verifies their
// checksums; the others may hold anything. Throws tn::Failure, also if they exceed `limits` together.
std::vector<Member> read_archive(const std::string& path, const std::vector<std::string>& names,
                                 const std::function<bool(const std::string& name, size_t number)>& wanted,
                                 const files::SourceLimits& limits, const tn_memory* memory,
                                 const volatile int32_t* cancel);

}  // namespace tenon::npy
