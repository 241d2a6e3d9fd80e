// Saving models: a check of the path before the training, and another place if saving fails after it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "host/cli/cli.h"

namespace tenon::cli {

// Throws Failure if a model cannot be saved under this name. Called before a training, so that a bad path fails early.
void check_save_path(const std::string& path);

// Saves a model that could not be saved as `path` into a new folder in the folder for temporary files, and returns its
// path. If that fails as well, throws Failure with both reasons.
[[nodiscard]] std::string save_elsewhere(const Parameters& parameters, const Layers& outputs, const std::string& path,
                                         const Error& error);

}  // namespace tenon::cli
