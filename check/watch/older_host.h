// A plugin as the oldest host on which it says that it runs would call it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include <string>

namespace tenon::check {

// A copy of the descriptor in whose layer type of this name plan and lower get tables that end where those of the
// version `required` end. Functions behind the end report a fault, as do newer numbers that the updater type of this
// name passes to its recorder. Valid until the process ends. Once in a process.
[[nodiscard]] const tn_plugin* plugin_in_older_host(const tn_plugin& plugin, const std::string& type);
// What plan, lower and record did that such a host does not know, since the last call; "" if nothing.
[[nodiscard]] std::string older_host_fault();

// The context of a run as a host of this version would pass it to a call with these traits.
[[nodiscard]] tn_execution older_execution(const tn_execution& execution, uint16_t required, uint32_t traits);
// What the traits of a call say that hosts of this version do not know, "" if nothing.
[[nodiscard]] std::string newer_traits(uint32_t traits, uint16_t required);

}  // namespace tenon::check
