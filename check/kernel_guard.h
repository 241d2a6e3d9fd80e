// Native kernels on operands between pages that cannot be accessed, and layers without their kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <string>

namespace tenon::check {

// A copy of the descriptor whose kernels run the given ones on copies of their operands and workspace. Each copy ends
// at a page that cannot be accessed; inputs cannot be written; memory that was not written holds NaN. Valid until the
// process ends. Kernels of a fusion pattern are left as they are.
[[nodiscard]] const tn_plugin* guarded_plugin(const tn_plugin& plugin);
// A copy of the descriptor without native kernels.
[[nodiscard]] const tn_plugin* plugin_without_kernels(const tn_plugin& plugin);

// What guarded kernels did wrong since the last call without crashing, "" if nothing.
[[nodiscard]] std::string guard_fault();
// The number of guarded runs so far.
[[nodiscard]] int64_t guarded_runs();

}  // namespace tenon::check
