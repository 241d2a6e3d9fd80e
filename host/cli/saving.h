// Where a model goes: what can be known of the place beforehand, and what is done when it turns out bad in the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "host/cli/cli.h"

namespace tenon::cli {

// Throws Failure where a model cannot be saved under this name: better known before a training than after it.
void check_save_path(const std::string& path);

// Saves a model that could not be saved as `path` into a new folder in that for temporary files; gives its name there.
// Throws Failure, which tells of both, where that fails as well.
[[nodiscard]] std::string save_elsewhere(const Parameters& parameters, const Layers& outputs, const std::string& path,
                                         const Error& error);

}  // namespace tenon::cli
