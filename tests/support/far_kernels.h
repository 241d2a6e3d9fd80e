// Native kernels for the device "far", from those for "cpu". SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

namespace tenon_tests {

// Returns a plugin with a kernel for "far" for each kernel for "cpu" of `plugin`, of a layer type of the same plugin;
// null if there is none. Valid until the process ends, if `plugin` is.
const tn_plugin* far_kernels(const tn_plugin& plugin);

}  // namespace tenon_tests
