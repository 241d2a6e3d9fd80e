// Shared by all verbs: arguments, exit codes, and the exception that carries an exit code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

#include "base/text.h"

namespace tenon::cli {

// 64 to 78: the same command will fail again. 128 and above: it may succeed.
enum Exit : int {
  kDone = 0,
  kUsage = 64,
  kBadData = 65,
  kNotFound = 66,
  kInternal = 70,
  kSystem = 71,  // out of memory
  kIo = 74,
  kRefused = 77,  // a plugin was not admitted
  kBadConfig = 78,
  kSignalled = 128  // plus the signal's number: 130 for Ctrl-C
};

// Returns `text` with control characters and bytes that are not UTF-8 escaped, as "\\n", "\\u001b" and "\\x9b": texts
// from files must not control the terminal or look like lines of the program.
[[nodiscard]] std::string plain(const std::string& text);
// The same for each line of a text, which ends with a line end.
[[nodiscard]] std::string plain_lines(const std::string& text);
// Returns a message without its middle if it is very long: it may quote a name of a megabyte, and its reason is at the
// end.
[[nodiscard]] inline std::string shortened(const std::string& message) { return base::shortened(message, 3000); }

// Ends the program with a message for a person and an exit code.
class Failure : public std::runtime_error {
 public:
  Failure(int exit, const std::string& message) : std::runtime_error(plain(message)), exit_(exit) {}
  [[nodiscard]] int exit() const noexcept { return exit_; }

 private:
  int exit_;
};

[[nodiscard]] int exit_code(tn_status status) noexcept;

// How an exception ends the program.
struct Ending {
  int exit;
  std::string message;
};
[[nodiscard]] Ending ending_of(const std::exception_ptr& thrown);

using Arguments = std::vector<std::string>;  // those after the verb

}  // namespace tenon::cli
