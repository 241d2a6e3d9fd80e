// The declarations of nlohmann's JSON in Tenon's namespace. SPDX-License-Identifier: Apache-2.0
#pragma once

#include_next <nlohmann/json_fwd.hpp>

#include "own_namespace.hpp"
