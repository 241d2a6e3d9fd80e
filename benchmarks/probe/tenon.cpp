// The machine's own limits, measured in every round beside the programs. SPDX-License-Identifier: Apache-2.0
//
//   bench_probe THREADS
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "host/cli/bench/probe.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: bench_probe THREADS\n"), 64;
  constexpr int64_t kBytes = 256'000'000;  // far above any cache
  const int threads = std::max(1, std::atoi(argv[1]));
  std::printf("{\"flops\": %.6g, \"bf16_flops\": %.6g, \"bandwidth\": %.6g, \"round_trip\": %.3g}\n",
              tenon::cli::peak_operations(threads), tenon::cli::peak_bf16_operations(threads),
              tenon::cli::peak_bandwidth(threads, kBytes), tenon::cli::round_trip_seconds(threads));
  return 0;
}
