// The files that a training writes as its results. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/cli/verbs/train_arguments.h"

namespace tenon::launch {

class ResultFiles {
 public:
  // Adds a file. what: "save", the model; "partial"; "average". An empty path is none.
  void add(const char* what, const std::string& path);
  // Adds those of a job. Throws Failure as load().
  void add_of(const cli::TrainCommand& command);
  // Returns those that have been written since they were added: [{"what", "path", "bytes"}].
  [[nodiscard]] nlohmann::json written() const;

 private:
  struct File {
    const char* what;
    std::filesystem::path path;
    std::optional<std::filesystem::file_time_type> time;  // empty: there was none
  };
  std::vector<File> files_;
};

}  // namespace tenon::launch
