// Strict reading of TOML, for job files and plugin sets. Knows neither the library nor the program: a Speaker turns a
// message into the exception of the one that reads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "host/toml/node.h"

namespace tenon::toml_file {

// How the reader of a file reports mistakes.
class Speaker {
 public:
  Speaker() = default;
  virtual ~Speaker() = default;
  Speaker(const Speaker&) = delete;
  Speaker& operator=(const Speaker&) = delete;

  // Throws the reader's exception for a wrong file.
  [[noreturn]] void fail(const std::string& message) const { std::rethrow_exception(failure(message)); }
  [[nodiscard]] virtual std::exception_ptr failure(const std::string& message) const = 0;
};

// Calls speaker.fail with file and line if the text is not TOML. A path that begins with "--set " is an argument of the
// command line: places in it have no line.
[[nodiscard]] Node parse(std::string_view text, const std::string& path, const Speaker& speaker);

// For messages: "the integer 5", "a list" ...
[[nodiscard]] std::string kind_of(const Node& node);

}  // namespace tenon::toml_file
