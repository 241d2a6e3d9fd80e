// The descriptor of a plugin that a test fills with components, for tn_host_add_plugin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

namespace tenon_tests {

// Returns a descriptor without components. id: a string literal in reverse domain form.
inline tn_plugin bare_plugin(const char* id) {
  tn_plugin plugin = {};
  plugin.size = sizeof plugin;
  plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
  plugin.id = id;
  plugin.version = "1.0.0";
  plugin.doc = "components of a test";
  plugin.license = "Apache-2.0";
  plugin.isa = "";
  return plugin;
}

}  // namespace tenon_tests
