// The states of updaters, as they travel between the processes of the bounded mode. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "core/parameter_set.h"
#include "host/machine/tables/messages.h"
#include "host/training/updater_groups.h"

namespace tenon::host {

using namespace core;

// Of parameters that are no tables: all processes have equal updaters, so that the sizes are known.
[[nodiscard]] Message states_of(const UpdaterGroups& updater, const std::shared_ptr<ParameterSet>& set);
void set_states(const UpdaterGroups& updater, const std::shared_ptr<ParameterSet>& set, MessageReader& from);

}  // namespace tenon::host
