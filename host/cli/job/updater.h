// Makes the updaters of a job. Failures name the place in the job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "host/cli/job/job.h"

namespace tenon::cli {

[[nodiscard]] Updater make_updater(const Host& host, const Job& job);
[[nodiscard]] std::vector<UpdaterGroup> make_updater_groups(const Host& host, const Job& job);

}  // namespace tenon::cli
