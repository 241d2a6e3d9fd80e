// Layers and an updater of the kit itself, which hosts of checks get as components of the application.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

namespace tenon::check {

// "check.copy": output = input, as a value of its own. "check.input": rows of a parameter that stand for an input, so
// that it has a gradient of its own. "check.rows": rows of a parameter, by fed ids; with the
// attribute `sparse` its gradient may be row-sparse. "check.scores": products of vectors and rows of a parameter, whose
// gradient is row-sparse. "check.primitive": one of device_statements.h. "check.descent": an updater with a state for
// each element and one for each row. The table lives as long as the process.
[[nodiscard]] const tn_plugin& parts();

}  // namespace tenon::check
