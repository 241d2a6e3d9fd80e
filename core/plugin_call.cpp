// SPDX-License-Identifier: Apache-2.0
#include "core/plugin_call.h"

namespace tenon::core::detail {

__thread const PluginCall* innermost_call = nullptr;

}  // namespace tenon::core::detail
