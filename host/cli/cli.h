// What all verbs share: the verb table's row, exit codes, and the exception that carries one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon::cli {

// 64 to 78: running it again will not help. 128 and above: it may.
enum Exit : int {
  kDone = 0,
  kUsage = 64,
  kBadData = 65,
  kNotFound = 66,
  kInternal = 70,
  kSystem = 71,  // no memory
  kIo = 74,
  kRefused = 77,  // a plugin was not admitted
  kBadConfig = 78,
  kSignalled = 128  // plus the signal's number: 130 for Ctrl-C
};

// `text` with its control characters spelled, as "\\n" and "\\u001b": what comes from files and names must not drive a
// terminal, nor look like lines of the program.
[[nodiscard]] std::string plain(const std::string& text);
// A message without its middle, if it is very long: a name of a megabyte helps nobody, and the reason is at the end.
[[nodiscard]] std::string shortened(const std::string& message, size_t most = 3000);

// Ends the program with a message for a person and an exit code.
class Failure : public std::runtime_error {
 public:
  Failure(int exit, const std::string& message) : std::runtime_error(plain(message)), exit_(exit) {}
  [[nodiscard]] int exit() const noexcept { return exit_; }

 private:
  int exit_;
};

[[nodiscard]] int exit_code(tn_status status) noexcept;

using Arguments = std::vector<std::string>;  // what follows the verb

struct Verb {
  const char* name;  // one or two words
  int (*run)(const Arguments& arguments);
  const char* help;  // one line
};

int run_train(const Arguments& arguments);
int run_test(const Arguments& arguments);
int run_infer(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_plugins_list(const Arguments& arguments);
int run_plugins_info(const Arguments& arguments);
int run_model_show(const Arguments& arguments);
int run_version(const Arguments& arguments);

}  // namespace tenon::cli
