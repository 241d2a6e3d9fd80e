// SPDX-License-Identifier: Apache-2.0
#include "host/cli/program.h"

#include <csignal>
#include <exception>
#include <iostream>

#include "host/cli/crash.h"

namespace tenon::cli {

namespace {

int report(int exit, const std::string& message) {
  std::cout.flush();
  std::cerr << "tenon: " << shortened(plain(message)) << std::endl;
  return exit;
}

}  // namespace

int guarded(const std::function<int()>& run) {
  try {
    const int exit = run();
    if (!std::cout.flush()) return report(kIo, "cannot write to standard output");
    return exit;
  } catch (...) {
    const Ending ending = ending_of(std::current_exception());
    return report(ending.exit, ending.message);
  }
}

int program(int argc, char** argv, int (*run)(const Arguments& arguments)) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on file sizes then returns an error
  tell_crashes();
  const int exit = guarded([&] { return run(Arguments(argv + (argc > 0 ? 1 : 0), argv + argc)); });
  constexpr unsigned kMostSeconds = 60;
  leave_plugins(kMostSeconds);
  return exit;
}

}  // namespace tenon::cli
