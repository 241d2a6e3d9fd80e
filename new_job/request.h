// What the user asks for. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon::new_job {

struct Request {
  std::vector<std::string> data;  // files of a table, or one folder of pictures; relative to the working directory
  std::string target;             // a column of a table; "": not given
  std::string task;               // "classification" or "regression"; "": as the target looks
  std::vector<std::string> left_out;
  double hold_out = 0.2;
  int64_t seed = 1;
  std::filesystem::path output;  // of the job; "-": standard output

  // Returns the path of a file as the job states it: relative to the folder of the job.
  [[nodiscard]] std::string path_in_job(const std::string& path) const;
  // Returns the name of the job without folder and ending, such as "iris".
  [[nodiscard]] std::string name() const;
};

// A job, and what the program prints of it.
struct Written {
  std::string text;
  std::string summary;  // one line
};

}  // namespace tenon::new_job
