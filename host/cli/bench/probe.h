// What this machine can do, measured beside a job. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon::cli {

// Operations per second of fused multiply-adds of fp32 (two each) in registers, by `threads` threads together; the best
// of several tries.
[[nodiscard]] double peak_operations(int threads);

// The same of products of bfloat16 that are summed in fp32, by the instructions for them that the processor has: tiles,
// pairs, or none, which gives the rate of fp32.
[[nodiscard]] double peak_bf16_operations(int threads);

// Bytes per second of a loop that reads four arrays and writes three, as an update by Adam does. bytes: of the four
// arrays together, at least 4 KiB; arrays that fit into a cache are faster. The best of several tries.
[[nodiscard]] double peak_bandwidth(int threads, int64_t bytes);

}  // namespace tenon::cli
