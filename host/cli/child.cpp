// SPDX-License-Identifier: Apache-2.0
#include "host/cli/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "host/cli/cli.h"
#include "host/cli/crash.h"

namespace tenon::cli {

namespace {

using nlohmann::json;

void write_all(int to, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = write(to, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno != EINTR) return;  // the parent finds the text incomplete
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
}

std::string read_all(int from) {
  std::string result;
  char part[4096];
  for (;;) {
    const ssize_t got = read(from, part, sizeof part);
    if (got > 0) result.append(part, static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return result;
  }
}

// Sends SIGALRM to this process in so many seconds.
void alarm_in(unsigned seconds, void (*late)(int)) {
  std::signal(SIGALRM, late);
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(seconds);
}

[[noreturn]] void fail_system(const char* what) {
  throw Failure(kIo, std::string(what) + ": " + std::generic_category().message(errno));
}

// What a verb printed and how it ended, as JSON.
std::string answer_of(const std::function<int()>& verb) {
  std::ostringstream out, err;
  std::cout.rdbuf(out.rdbuf());
  std::cerr.rdbuf(err.rdbuf());
  json answer;
  try {
    answer["exit"] = verb();
  } catch (...) {
    const Ending ending = ending_of(std::current_exception());
    answer["exit"] = ending.exit;
    answer["failure"] = ending.message;
  }
  answer["out"] = out.str();
  answer["err"] = err.str();
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
  return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
}

Ended run_in_child(unsigned seconds, void (*late)(int), const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) fail_system("cannot create a pipe");
  std::cout.flush();  // else the child might print it again
  std::cerr.flush();
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm_in(seconds, late);
    write_all(ends[1], work());
    _exit(0);
  }
  const int failure = errno;
  close(ends[1]);
  Ended result;
  if (child > 0) result.answer = read_all(ends[0]);
  close(ends[0]);
  errno = failure;
  if (child < 0) fail_system("cannot start a process");
  while (waitpid(child, &result.status, 0) < 0 && errno == EINTR) {
  }
  return result;
}

int run_verb_in_child(unsigned seconds, const std::function<int()>& verb) {
  const Ended ended = run_in_child(seconds, tell_late, [&] { return answer_of(verb); });
  const json answer = json::parse(ended.answer, nullptr, false);
  if (answer.is_discarded())
    throw Failure(kInternal, "the process that ran the code of plugins ended early, by " + how_it_ended(ended.status));
  std::cout << answer.at("out").get<std::string>();
  std::cerr << answer.at("err").get<std::string>();
  const int exit = answer.at("exit");
  if (answer.contains("failure")) throw Failure(exit, answer.at("failure"));
  return exit;
}

}  // namespace tenon::cli
