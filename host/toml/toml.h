// toml++, included in one way everywhere. Version 3.3 asserts conditions that untrusted text can break ("[[["); with
// NDEBUG it lets the compiler assume them instead. The parser itself reports such text properly. So assertions are
// turned off here, and NDEBUG is not defined, so that they do not become assumptions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
