// Counts what a plugin's file does while one of its functions with the tag [run] runs: allocations, threads, locks,
// waits, output. The places of the loaded file that hold the addresses of imported functions are redirected to the kit;
// so only calls of the file itself count, not those of the host on its behalf, nor those of shared libraries that the
// plugin uses. Spin locks and system calls by instruction are not seen. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "check/watch/loaded.h"

namespace tenon::check {

// Redirects the functions of the file, once for the process: of a child, which checks one plugin.
void watch(const Loaded& loaded);

// Forgets what was seen.
void watch_again();

// What was seen in [run] since then: "malloc (3 times)"; "" if nothing.
[[nodiscard]] std::string seen_in_run();

// The threads and processes that the file has started since then in calls of the plugin outside of [run].
[[nodiscard]] int64_t threads_seen();

// The number of allocations of the file inside of calls of the plugin since watch_again.
[[nodiscard]] int64_t allocations_seen();
// The numbers, from 0, of the first of them that have at least kLarge bytes, at most 64.
constexpr size_t kLarge = size_t{64} * 1024;
[[nodiscard]] std::vector<int64_t> large_allocations_seen();
// Refuses allocation `number`, from 0, of those that are counted from now on; -1: none.
void refuse_allocation(int64_t number);

}  // namespace tenon::check
