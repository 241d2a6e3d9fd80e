// The checks of native kernels, and of what plugins do while they run. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/check_list.h"

namespace tenon::check {

[[nodiscard]] const std::vector<Check>& kernel_checks();

// Checks of layers too: what the file does in [run], its own allocations, and its kernels between guard pages.
void check_run(Context& context);
void check_own_memory(Context& context);
void check_guard_pages(Context& context);
// The oldest host that the plugin requires, with the plugin in it (older_host.h). Throws Skip if that is this version.
[[nodiscard]] Host older_host_of(const Context& context);
// Layers in the oldest host that the plugin requires.
void check_older_host(Context& context);
// Results in the memory of the operands that a kernel's query, or the contract of a table, allows.
void check_shared_operands(Context& context);

}  // namespace tenon::check
