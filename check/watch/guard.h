// Native kernels, and primitives of devices and providers, on operands between pages that cannot be accessed, and
// layers without their kernels. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <string>

namespace tenon::check {

// A copy of the descriptor whose kernels run the given ones on copies of their operands and workspace. Each copy ends
// at a page that cannot be accessed; inputs cannot be written; memory that was not written holds NaN. Valid until the
// process ends.
[[nodiscard]] const tn_plugin* guarded_plugin(const tn_plugin& plugin);
// A copy whose device of this kind, or provider of this name, does the same with the operands of primitives; not with
// those of row-sparse gradients. Ends the use of an earlier one.
[[nodiscard]] const tn_plugin* guarded_device(const tn_plugin& plugin, const std::string& kind);
[[nodiscard]] const tn_plugin* guarded_provider(const tn_plugin& plugin, const std::string& name);
// A copy of the descriptor without native kernels.
[[nodiscard]] const tn_plugin* plugin_without_kernels(const tn_plugin& plugin);

// While on, each guarded call runs a second time, and each result that may have the memory of an operand, by a kernel's
// query or the contract of a table, has it then: both runs must give the same.
void share_memory(bool on);

// What guarded calls did wrong since the last call without crashing, "" if nothing.
[[nodiscard]] std::string guard_fault();
// The number of guarded runs so far.
[[nodiscard]] int64_t guarded_runs();
// The number of draws that guarded kernels have asked for so far.
[[nodiscard]] int64_t guarded_draws();

}  // namespace tenon::check
