// Calls a verb in this process, in a folder with a small job, and keeps its output. Tests of main.cpp, of signals that
// end a process and of real terminals run the program itself: program.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "host/cli/cli.h"
#include "host/cli/verbs/verbs.h"
#include "tests/host/cli/program.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

// Keeps the written text; sends this process `signal` once, when the text contains `when`.
class Kept : public std::stringbuf {
 public:
  std::string when;
  int signal = 0;
  bool refuses = false;  // fails every write, like a full disk

 protected:
  std::streamsize xsputn(const char* text, std::streamsize length) override {
    if (refuses) return 0;
    const std::streamsize result = std::stringbuf::xsputn(text, length);
    if (signal != 0 && str().find(when) != std::string::npos) {
      const int sent = signal;
      signal = 0;
      std::raise(sent);
    }
    return result;
  }
  int_type overflow(int_type c) override { return refuses ? traits_type::eof() : std::stringbuf::overflow(c); }
};

// Redirects a standard stream to `to`, for the lifetime of the object.
class Redirected {
 public:
  Redirected(std::ostream& stream, std::streambuf& to) : stream_(stream), before_(stream.rdbuf(&to)) {}
  ~Redirected() {
    stream_.rdbuf(before_);
    stream_.clear();
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  std::ostream& stream_;
  std::streambuf* before_;
};

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> result;
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

using Call = int (*)(const Arguments& arguments);

class CallTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(path("."));
    setenv("TERM", "dumb", 1);  // disables the progress bar
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  // Returns the output and exit code that the program would have; messages lack the prefix that main adds.
  static Outcome call(Call verb, const Arguments& arguments, Kept&& out = {}) {
    std::ostringstream error;
    Outcome outcome;
    {
      const Redirected to_out(std::cout, out), to_error(std::cerr, *error.rdbuf());
      try {
        outcome.exit = verb(arguments);
      } catch (const Failure& failure) {
        outcome.exit = failure.exit();
        error << failure.what();
      } catch (const Error& failure) {
        outcome.exit = exit_code(failure.code());
        error << failure.what();
      }
    }
    outcome.out = out.str();
    outcome.error = error.str();
    return outcome;
  }
  // Calls a verb that must succeed.
  static Outcome done(Call verb, const Arguments& arguments) {
    Outcome outcome = call(verb, arguments);
    EXPECT_EQ(outcome.exit, kDone) << outcome.error;
    return outcome;
  }
  // Calls a verb that must fail with code `exit` and print no result; returns its message.
  static std::string failure(int exit, Call verb, const Arguments& arguments) {
    const Outcome outcome = call(verb, arguments);
    EXPECT_EQ(outcome.exit, exit) << outcome.error;
    EXPECT_EQ(outcome.out, "");
    return outcome.error;
  }
  // Calls a verb; sends `signal` when its output contains `when`.
  static Outcome interrupted(Call verb, const Arguments& arguments, int signal, const std::string& when) {
    Kept out;
    out.when = when;
    out.signal = signal;
    return call(verb, arguments, std::move(out));
  }
  static std::vector<nlohmann::json> parsed(const std::string& out) {
    std::vector<nlohmann::json> result;
    for (const std::string& line : lines_of(out)) result.push_back(nlohmann::json::parse(line));
    return result;
  }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }

 private:
  std::filesystem::path before_;
};

}  // namespace tenon_tests
