// Runs the checks of one component in child processes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <tenon/check.hpp>
#include <vector>

#include "check/bench/subject.h"
#include "check/checks/check_list.h"

namespace tenon::check {

// Runs the checks, each at most so many seconds, in as many children as it takes: after the death of one the next
// begins with the check after that. Calls `done` with each result, in this process.
void run_checks(int seconds, const Subject& subject, const std::vector<Check>& checks,
                const std::function<void(const Result&)>& done);

}  // namespace tenon::check
