// Strict reading of TOML, for job files and plugin sets. Knows neither the library nor the program: a Speaker turns a
// message into the exception of the one that reads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "host/toml/node.h"

namespace tenon::toml_file {

// How the reader of a file reports mistakes: returns its exception with a message.
using Speaker = std::exception_ptr (*)(const std::string& message);
[[noreturn]] inline void fail(Speaker speaker, const std::string& message) { std::rethrow_exception(speaker(message)); }

// Fails with file and line if the text is not TOML. A path that begins with "--set " is an argument of the
// command line: places in it have no line.
[[nodiscard]] Node parse(std::string_view text, const std::string& path, Speaker speaker);

// For messages: "the integer 5", "a list" ...
[[nodiscard]] std::string kind_of(const Node& node);

}  // namespace tenon::toml_file
