// Where a model is saved, before it is trained. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon::cli {

// Throws Failure if a model cannot be saved under this name. Called before a training, so that a bad path fails early.
void check_save_path(const std::string& path);

}  // namespace tenon::cli
