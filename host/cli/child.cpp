// SPDX-License-Identifier: Apache-2.0
#include "host/cli/child.h"

#include <unistd.h>

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "base/files.h"
#include "host/cli/cli.h"
#include "host/cli/crash.h"
#include "process/last_words.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

// What a verb printed and how it ended, as JSON.
std::string answer_of(const std::function<int()>& verb) {
  std::ostringstream out, err;
  std::streambuf *const to_out = std::cout.rdbuf(out.rdbuf()), *const to_err = std::cerr.rdbuf(err.rdbuf());
  json answer;
  try {
    answer["exit"] = verb();
  } catch (...) {
    const Ending ending = ending_of(std::current_exception());
    answer["exit"] = ending.exit;
    answer["failure"] = ending.message;
  }
  std::cout.rdbuf(to_out);
  std::cerr.rdbuf(to_err);
  answer["out"] = out.str();
  answer["err"] = err.str();
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

process::ChildEnd run_in_child(unsigned seconds, void (*late)(int), const std::function<std::string()>& work) try {
  return process::run_child(
      [&](int to) {
        process::alarm_in(seconds, late);
        base::write_all(to, work());
      },
      seconds);
} catch (const std::system_error& error) {
  throw Failure(kIo, error.what());
}

int run_verb_in_child(unsigned seconds, const std::function<int()>& verb) {
  const process::ChildEnd ended = run_in_child(seconds, tell_late, [&] {
    std::string answer = answer_of(verb);
    leave_plugins(0);  // else the process would end without them, and their faults would be those of a training
    return answer;
  });
  const json answer = json::parse(ended.text, nullptr, false);
  if (answer.is_discarded())
    throw Failure(kInternal, "the process that ran the code of plugins ended early, by " + ended.how());
  std::cout << answer.at("out").get<std::string>();
  std::cerr << answer.at("err").get<std::string>();
  const int exit = answer.at("exit");
  if (answer.contains("failure")) throw Failure(exit, answer.at("failure"));
  return exit;
}

}  // namespace tenon::cli
