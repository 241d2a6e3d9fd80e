// The files that a training reads, as its job names them, and their digests. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "host/cli/job/job.h"

namespace tenon::cli {

struct DataFile {
  std::string key;   // "reader.train.files"
  std::string path;  // as the job says, with what a pattern or a folder stands for
  std::string file;  // where it is read
};

struct JobData {
  std::vector<DataFile> files;
  std::vector<std::string> unknown;  // a sentence for each source whose files the job does not say
};

// Returns the files of the readers and of [init]: those of the attributes that say where data is, and every regular
// file that another text of a reader names. Throws nothing for files that are missing: they are listed.
[[nodiscard]] JobData data_of(const Job& job);

// Pairs {from, to} of paths. The first pair whose `from` a path is or lies below replaces it; no second one follows.
using PathPairs = std::vector<std::pair<std::string, std::string>>;
// Returns the path that stands for a path of a job.
[[nodiscard]] std::string replaced_path(const std::string& path, const PathPairs& pairs);
// Replaces the paths of the readers and of [init].
void replace_paths(Job& job, const PathPairs& pairs);

}  // namespace tenon::cli
