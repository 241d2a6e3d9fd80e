// Scans of a job: [[scan]] lists layers that run at each step of sequences. docs/recurrence.md describes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "host/cli/job/job.h"
#include "host/cli/job/toml_tree.h"

namespace tenon::cli {

// Appends the layers of each [[scan]] to job.layers, after those of [[layer]]: the layers inside, where values enter
// it, and the one that stands for it. names: those that are taken, and where; the new ones are added.
void read_scans(Section& top, Job& job, std::map<std::string, Place>& names);

}  // namespace tenon::cli
