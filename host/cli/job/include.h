// The files of a job: its own and those that [include] names. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/toml/node.h"

namespace tenon::cli {

using toml_file::Node;
using toml_file::Place;

constexpr size_t kLargestJob = 4 << 20;  // bytes of all files of a job; far more than any job has

// name: the path in messages. Throws Failure: kNotFound or kIo for the file itself, kBadConfig for a file that is
// larger than kLargestJob.
[[nodiscard]] std::string read_job_file(const std::string& path, const std::string& name);

// A file of a job: its path as messages name it, and what is in it.
struct JobFile {
  std::string path, text;

  bool operator==(const JobFile& other) const = default;
};

// Parses the job file `path` of this text, and joins it with all files that it includes; see docs/formats.md. The
// result has no key "include". files: gets all files, the job first. included: as of parse_job. Throws Failure with the
// place of the [include] at fault.
[[nodiscard]] Node parse_with_includes(std::string_view text, const std::string& path, std::vector<JobFile>* files,
                                       const std::vector<JobFile>* included = nullptr);

}  // namespace tenon::cli
