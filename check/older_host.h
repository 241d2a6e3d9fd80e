// A plugin as the oldest host on which it says that it runs would call it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <string>

namespace tenon::check {

// A copy of the descriptor in whose layer type of this name plan and lower get tables that end where those of the
// version `required` end. Functions behind the end report a fault. Valid until the process ends. Once in a process.
[[nodiscard]] const tn_plugin* plugin_in_older_host(const tn_plugin& plugin, const std::string& type);
// What plan and lower called behind the end since the last call, "" if nothing.
[[nodiscard]] std::string older_host_fault();

// The context of a run as a host of this version would pass it to a call with these traits.
[[nodiscard]] tn_execution older_execution(const tn_execution& execution, uint16_t required, uint32_t traits);

}  // namespace tenon::check
