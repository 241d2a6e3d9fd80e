// What of a processor decides which kernels compute, and so their bits. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace tenon::base {

// Returns the vendor and the vector instructions of the first processor, as the kernel lists them, in alphabetical
// order: "AuthenticAMD avx avx2 fma sse sse2". Empty if the file cannot be read.
[[nodiscard]] std::string processor_text(const std::filesystem::path& file = "/proc/cpuinfo");

}  // namespace tenon::base
