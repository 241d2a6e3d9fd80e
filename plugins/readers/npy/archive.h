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

// All .npy members, or those of these names, in this order, inflated and with their checksums found right. Throws
// tn::Failure, also when they have more together than `limits` allow.
std::vector<Member> read_archive(const std::string& path, const std::vector<std::string>& names,
                                 const files::SourceLimits& limits, const tn_memory* memory,
                                 const volatile int32_t* cancel);

}  // namespace tenon::npy
