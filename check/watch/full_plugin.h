// Copies of a plugin's descriptor, some tables of which a check replaces. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/plugin.h>

#include "base/full_table.h"

namespace tenon::check {

// A descriptor whose lists are to be replaced by others of copies. It has no requirements of components, which name the
// tables that were copied.
inline tn_plugin full_plugin(const tn_plugin& inner) {
  tn_plugin result = base::full_table(inner);
  result.requirements_count = 0;
  result.requirements = nullptr;
  return result;
}

}  // namespace tenon::check
