// The results of a training, as the pod of its launcher gives them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "cluster/yaml.h"

namespace tenon::cluster {

// Reads what `tenon-launch --give` writes: two lines of JSON, of the image and of the results, files, and the digest of
// all that. Files get their names once the digest is right.
class Results {
 public:
  // path_of: where a file of this kind ("save") goes; empty: nowhere.
  explicit Results(std::function<std::optional<std::string>(const std::string& what)> path_of);
  ~Results();
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  // Throws cli::Failure(kIo): a file cannot be written, or what comes is damaged.
  void take(std::string_view bytes);
  // What the image has, as launch::image_here() has it; null as long as nothing has come.
  [[nodiscard]] const json& image() const { return image_; }
  // Whether all has come, and files have their names.
  [[nodiscard]] bool are_whole() const { return whole_; }
  // The exit code of the training; empty as long as nothing has come.
  [[nodiscard]] std::optional<int> exit_code() const { return exit_; }
  // The files that were written.
  [[nodiscard]] const std::vector<std::string>& written() const { return written_; }

 private:
  void take_head(const std::string& line);
  void finish();

  const std::function<std::optional<std::string>(const std::string&)> path_of_;
  crypto_generichash_state state_;
  std::string head_, digest_;
  json image_;
  std::optional<int> exit_;
  struct File {
    std::optional<std::string> path;
    std::string part;  // the path of its beginning; empty: it has not begun
    uint64_t left = 0;
  };
  void begin(File& file);
  std::vector<File> files_;
  size_t file_ = 0;  // that comes
  base::Descriptor out_;
  std::vector<std::string> written_;
  bool whole_ = false;
};

}  // namespace tenon::cluster
