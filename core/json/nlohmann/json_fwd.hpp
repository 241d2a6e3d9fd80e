// The declarations of nlohmann's JSON in Tenon's namespace. SPDX-License-Identifier: Apache-2.0
#pragma once

// The macros come before the library reads them.
// clang-format off
#include "own_namespace.hpp"

#include_next <nlohmann/json_fwd.hpp>
// clang-format on
