// Where a node has the job. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tenon::launch {

// Returns the path of the job on this machine. job: {"path": "/jobs/a.toml", "files": [{"path": ..., "text": ...}],
// "relative": "key \"save\""}; the first file is the job itself, and "relative" names what a job without its folder
// would miss, if there is something. The path is that of the job if its files are here and equal; else that of copies
// in `folder`. Throws Failure(kBadConfig) if they are here and differ, or miss what is relative.
[[nodiscard]] std::filesystem::path place_job(const nlohmann::json& job, const std::filesystem::path& folder);

}  // namespace tenon::launch
