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

// Seconds in which a line of a cache goes to another core and back: from the first processor that this process may use
// to the farthest of the next, as many as `threads` in all; 0 for one, or if other
// programs did not let two threads run together. The best of several tries.
[[nodiscard]] double round_trip_seconds(int threads);
// Cores that share a cache are nearer than this.
inline constexpr double kNearSeconds = 200e-9;

}  // namespace tenon::cli
