// The members of a .npz file, which is a ZIP archive of .npy files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "source.h"

namespace tenon::npy {

struct Member {
  std::string name;  // without ".npy"
  files::Block content;
  uint64_t bytes = 0;
};

// Reads all .npy members, or those of `names` in that order, inflates them and verifies their checksums. Throws
// tn::Failure, also if they exceed `limits` together.
std::vector<Member> read_archive(const std::string& path, const std::vector<std::string>& names,
                                 const files::SourceLimits& limits, const tn_memory* memory,
                                 const volatile int32_t* cancel);

}  // namespace tenon::npy
