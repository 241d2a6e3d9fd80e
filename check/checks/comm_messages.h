// Checks of what a communicator carries. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/checks/comm_world.h"

namespace tenon::check {

// Each of these ranks exchanges messages of these sizes with each other one, and compares their bytes.
void exchange(Rank& rank, const std::vector<int32_t>& ranks, const std::vector<uint64_t>& sizes);
// Throws Fault unless the statuses are equal.
void expect_status(Rank& rank, tn_status got, tn_status expected, const std::string& what);

void check_messages(Context& context);
void check_order(Context& context);
void check_events(Context& context);
void check_room(Context& context);
void check_begin(Context& context);

}  // namespace tenon::check
