// SPDX-License-Identifier: Apache-2.0
#include "core/plugin_call.h"

#include <atomic>
#include <utility>

namespace tenon::core {

namespace {

// The model of access needs no call of the loader, which would not be safe in a signal handler.
__attribute__((tls_model("initial-exec"))) thread_local const PluginCall* current = nullptr;

}  // namespace

const PluginCall* current_plugin_call() noexcept { return current; }

PluginCallMark::PluginCallMark(const PluginCall* call) noexcept : before_(std::exchange(current, call)) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

PluginCallMark::~PluginCallMark() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current = before_;
}

}  // namespace tenon::core
