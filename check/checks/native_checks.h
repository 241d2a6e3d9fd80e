// Checks of what the code of plugins does while it runs: for layers, kernels, devices and updaters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/bench/layer_bench.h"
#include "check/checks/check_list.h"

namespace tenon::check {

// A host without the plugin's file, with this descriptor in its place; a bench in it.
[[nodiscard]] Host host_of(const Context& context, const tn_plugin* plugin);
[[nodiscard]] Bench bench_in(const Host& host, const Context& context, const LayerCase& layer_case);
// A copy of the descriptor in which the operands of what is under check are guarded (guard.h).
[[nodiscard]] const tn_plugin* guarded_of(const Subject& subject, const tn_plugin& plugin);

// What the file does in [run], its own allocations, and its kernels between guard pages.
void check_run(Context& context);
void check_own_memory(Context& context);
void check_guard_pages(Context& context);
// Results in the memory of the operands that a kernel's query, or the contract of a table, allows.
void check_shared_operands(Context& context);

}  // namespace tenon::check
