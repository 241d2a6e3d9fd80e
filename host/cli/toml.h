// toml++, included in one way everywhere. Version 3.3 states as an assertion, and in release builds as a promise to
// the compiler, what hostile text can break ("[[["); the parser itself goes on to report such text properly. So its
// assertions are turned off without NDEBUG, which would turn them into those promises.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
