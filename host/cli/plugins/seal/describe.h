// The manifest of a plugin, made from its descriptor in a process of its own. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "host/cli/plugins/seal/image.h"

namespace tenon::cli {

struct Described {
  std::string manifest;              // JSON
  std::vector<std::string> without;  // libraries that could not be loaded and were left out
  std::vector<std::string> doubts;   // what the descriptor says, and probably not on purpose
};

// Loads `file`, whose bytes are `image`, in a child process, calls its tenon_plugin and writes the manifest as the
// build step of tenon_add_plugin does. If the file cannot be loaded, loads a temporary copy beside it that does not
// need the libraries that cannot be loaded by their names. Throws Failure(kRefused), naming the reason but not the
// file: it cannot be loaded, it has no tenon_plugin, its descriptor is refused, its code ended the process, or did not
// return within `seconds`.
[[nodiscard]] Described describe_plugin(const std::filesystem::path& file, const Image& image, unsigned seconds = 60);

}  // namespace tenon::cli
