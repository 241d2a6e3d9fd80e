// Ranks of a test that are threads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace tenon_tests {

// Runs ranks in threads.
inline void run_ranks(int32_t ranks, const std::function<void(int32_t)>& work) {
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&work, rank] {
      try {
        work(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tenon_tests
