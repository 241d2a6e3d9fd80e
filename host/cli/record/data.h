// The files that a training reads, as its job names them, and their digests. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
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

// Returns a path of a job with `to` in place of `from`, where it is `from` or lies below it; else the path.
[[nodiscard]] std::string replaced_path(const std::string& path, const std::string& from, const std::string& to);
// Gives the readers and [init] the path `to` in place of the path `from` of the job, and what lies below it.
void replace_paths(Job& job, const std::string& from, const std::string& to);

// Returns {bytes, sha256, block_bytes, blocks}: SHA-256 of all bytes, and XXH3 with 128 bits of each block, so many
// that a change is located. Throws Failure naming `path`.
[[nodiscard]] nlohmann::json digest_of_file(const std::string& file, const std::string& path);

}  // namespace tenon::cli
