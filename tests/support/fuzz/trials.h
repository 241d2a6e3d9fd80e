// Runs a parser on damaged input, from seeds: what each trial may take and how it may end, and where its input lies if
// it does not. TENON_FILES=100000 sets the number of trials of each test, TENON_FIRST_SEED=7 the first seed,
// TENON_FILE_SEED=17 runs one alone. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "base/utf8.h"
#include "tests/support/fuzz/mutations.h"
#include "tests/support/sanitized.h"

namespace tenon_tests {

// How a trial ended: the parser took the input, or refused it as it should; else `fault` says what is wrong.
struct Ending {
  bool accepted = false;
  std::string fault;
};

// The ending of a trial whose input was refused: with a code among `codes`, and a message for people.
inline Ending refused(const std::string& message, int code, std::initializer_list<int> codes) {
  if (std::find(codes.begin(), codes.end(), code) == codes.end())
    return {false, "refused with code " + std::to_string(code) + ": " + message};
  if (message.empty()) return {false, "refused without a message"};
  if (!tenon::base::is_utf8(message)) return {false, "the message is not UTF-8: " + message};
  return {};
}
template <typename Error>
Ending refused(const Error& error, std::initializer_list<int> codes) {
  return refused(error.what(), static_cast<int>(error.code()), codes);
}

// What a handler of signals needs to know of the trial that runs.
struct RunningTrial {
  char note[400];
  char path[300];
  const char* bytes;
  size_t size;
};
inline RunningTrial running_trial = {};

// Writes the input of the trial that runs, and says where it is. Safe in a handler of signals.
inline void tell_trial() {
  const int file = open(running_trial.path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  [[maybe_unused]] ssize_t written = write(file, running_trial.bytes, running_trial.size);
  close(file);
  written = write(STDERR_FILENO, running_trial.note, std::strlen(running_trial.note));
}
inline void end_trial(int signal) {
  tell_trial();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

inline uint64_t trial_setting(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Trials {
 public:
  // kind: a word for messages and names of files. count: of trials where no variable says another.
  Trials(std::string kind, uint64_t count)
      : kind_(std::move(kind)),
        only_(trial_setting("TENON_FILE_SEED", 0)),
        first_(only_ > 0 ? only_ : trial_setting("TENON_FIRST_SEED", 1)),
        count_(only_ > 0 ? 1 : trial_setting("TENON_FILES", sanitized() ? count / 10 : count)) {
    watch();
  }
  ~Trials() {
    alarm(0);
    const itimerval none = {};
    setitimer(ITIMER_PROF, &none, nullptr);
    if (bounded_) setrlimit(RLIMIT_AS, &before_);
  }
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;

  // Runs them all: make(draw) returns an input, check(input, draw) how it ended. Of those that `may_pass` in 1000 must
  // be accepted, or the inputs are too wild to reach anything behind the first check.
  template <typename Make, typename Check>
  void run(const Make& make, const Check& check, uint64_t least_accepted_of_1000) {
    uint64_t accepted = 0, faults = 0;
    for (uint64_t seed = first_; seed < first_ + count_ && faults < 5; ++seed) {
      Draw draw(seed);
      const std::string input = make(draw);
      const Ending ending = watched(seed, input, [&] { return check(input, draw); });
      accepted += ending.accepted ? 1 : 0;
      if (ending.fault.empty()) continue;
      ++faults;
      tell_file(input);
      ADD_FAILURE() << running_trial.note << ending.fault;
    }
    if (only_ == 0) {
      EXPECT_GE(accepted * 1000, count_ * least_accepted_of_1000) << kind_;
      EXPECT_LT(accepted, count_) << kind_;
    }
    std::printf("%s: %llu of %llu accepted\n", kind_.c_str(), static_cast<unsigned long long>(accepted),
                static_cast<unsigned long long>(count_));
  }

 private:
  static double used() {  // seconds of the processor
    timespec now = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  // Lets a crash or an endless trial say which it is, and bounds the memory that a trial may ask for.
  void watch() {
    using Hook = void (*)(void (*)());
    const auto hook = reinterpret_cast<Hook>(dlsym(RTLD_DEFAULT, "__sanitizer_set_death_callback"));
    if (hook != nullptr) hook(tell_trial);
    static char stack[1 << 16];  // for a crash by deep recursion
    const stack_t own = {stack, 0, sizeof stack};
    sigaltstack(&own, nullptr);
    struct sigaction action = {};
    action.sa_handler = end_trial;
    action.sa_flags = SA_ONSTACK;
    for (const int signal : {SIGPROF, SIGALRM}) sigaction(signal, &action, nullptr);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
      if (hook == nullptr) sigaction(signal, &action, nullptr);
    if (sanitized() || getrlimit(RLIMIT_AS, &before_) != 0) return;
    std::ifstream pages("/proc/self/statm");
    rlim_t size = 0;
    pages >> size;
    rlimit bound = before_;
    bound.rlim_cur = size * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{1} << 30);
    bounded_ = setrlimit(RLIMIT_AS, &bound) == 0;
  }

  void tell_file(const std::string& input) const { std::ofstream(running_trial.path, std::ios::binary) << input; }

  template <typename Work>
  Ending watched(uint64_t seed, const std::string& input, const Work& work) {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("tenon-fuzz-" + kind_ + "-" + std::to_string(seed))).string();
    std::snprintf(running_trial.path, sizeof running_trial.path, "%s", path.c_str());
    std::snprintf(running_trial.note, sizeof running_trial.note, "%s, TENON_FILE_SEED=%llu, input in %s\n",
                  kind_.c_str(), static_cast<unsigned long long>(seed), path.c_str());
    running_trial.bytes = input.data();
    running_trial.size = input.size();
    const int seconds = sanitized() ? 60 : 5;
    const itimerval most = {{}, {4 * seconds, 0}};
    setitimer(ITIMER_PROF, &most, nullptr);
    alarm(600);
    const double begin = used();
    Ending ending;
    try {
      ending = work();
    } catch (const std::exception& error) {
      ending.fault = std::string("foreign exception: ") + error.what();
    } catch (...) {
      ending.fault = "foreign exception";
    }
    const double time = used() - begin;
    if (ending.fault.empty() && time > seconds) ending.fault = "it took " + std::to_string(time) + " s";
    return ending;
  }

  const std::string kind_;
  const uint64_t only_, first_, count_;
  rlimit before_ = {};
  bool bounded_ = false;
};

}  // namespace tenon_tests
