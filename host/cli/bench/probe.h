// What this machine can do, measured beside a job. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::cli {

// Operations per second of fused multiply-adds of fp32 (two each) in registers, by `threads` threads together; the best
// of several tries.
[[nodiscard]] double peak_operations(int threads);

// Bytes per second of a loop that reads four arrays and writes three, as an update by Adam does. bytes: of the four
// arrays together, at least 4 KiB; arrays that fit into a cache are faster. The best of several tries.
[[nodiscard]] double peak_bandwidth(int threads, int64_t bytes);

}  // namespace tenon::cli
