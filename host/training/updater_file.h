// The state of one updater as a file: a checkpoint (checkpoint_file.h) without the place of a training, for loops that
// an application writes itself. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "core/system.h"
#include "core/topology.h"
#include "host/training/updater.h"

namespace tenon::host {

using namespace core;

// Writes states, step count and learning rate of an updater for a set, and the number of updates of the set. The
// topology, which may be empty, and its parameters are stored too: the file is a model then.
void save_updater(FileSystem& files, const std::filesystem::path& path, Updater& updater,
                  const std::shared_ptr<ParameterSet>& set, const Topology& topology);

// Reads what save_updater wrote, or the updater of a training's checkpoint. Parameters stay as they are. Throws
// TN_INVALID listing all differences if the file is of another updater, or its states have other names or shapes;
// TN_BAD_DATA if it is damaged or no checkpoint. Changes nothing then.
void load_updater(FileSystem& files, const std::filesystem::path& path, Updater& updater,
                  const std::shared_ptr<ParameterSet>& set);

}  // namespace tenon::host
