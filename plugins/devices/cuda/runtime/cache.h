// Compiled kernels on disk, so that a process does not compile what an earlier one did.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::cuda {

// The folder of the user's cache: $XDG_CACHE_HOME/tenon/cuda, else $HOME/.cache/tenon/cuda; empty if neither is set.
[[nodiscard]] std::string cache_folder();

// A folder of files, each with one image and the text that it was compiled from. Processes may share it: a file is
// written under another name and then renamed, so whoever opens one sees all of it. A file that is damaged, or of
// another key with the same name, counts as absent. Every failure of the file system means that the image is compiled
// again, so nothing is reported.
class Cache {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;

  // An empty folder: no cache.
  explicit Cache(std::string folder, uint64_t most_bytes = kMostBytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // The image of a key: all that it depends on, such as source and options.
  [[nodiscard]] std::optional<std::string> find(const std::string& key) const;
  // Keeps an image. Then deletes the files that were not used for the longest time until the others have at most
  // three quarters of most_bytes, if they had more than most_bytes.
  void keep(const std::string& key, const std::string& image) const;

 private:
  [[nodiscard]] std::string path_of(const std::string& key) const;
  void trim() const;

  std::string folder_;
  uint64_t most_bytes_;
};

}  // namespace tenon::cuda
