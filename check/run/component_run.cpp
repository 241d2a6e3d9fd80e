// SPDX-License-Identifier: Apache-2.0
#include "check/run/component_run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/files.h"
#include "check/watch/other_host.h"
#include "process/child.h"
#include "process/exit_handlers.h"
#include "process/last_words.h"

namespace tenon::check {

using namespace process;

namespace {

// The child writes a line of JSON before each check, {begin}, and one after it, the result. If it dies, the handler of
// its last signal writes a line that is not JSON: the call of a plugin that it was in.
class Writer {
 public:
  explicit Writer(int to) : to_(to) {}
  void write(const json& line) const {
    if (getpid() != owner_) _exit(0);  // a copy of the process that the plugin has made
    base::write_all(to_, line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  }

 private:
  int to_;
  pid_t owner_ = getpid();
};

// The descriptor that a handler of signals writes to. A handler has no argument, so this is a static variable: of a
// child process, which is made for one component and ends with it.
volatile sig_atomic_t last_words_to = -1;

void write_call() {
  char text[900] = "call: ";
  const size_t begin = std::strlen(text);
  if (const char* const plugin = exiting()) {
    std::strncat(text, "the exit handlers of plugin ", sizeof text - begin - 2);
    std::strncat(text, plugin, sizeof text - std::strlen(text) - 2);
  } else if (tn_plugin_call(text + begin, sizeof text - begin - 1) == 0) {
    if (!is_behind_lent(crash_address())) return;
    std::strncat(text, "a function that the kit itself calls", sizeof text - begin - 2);
  }
  tell_lent(crash_address(), text, sizeof text - 1);
  const size_t length = std::strlen(text);
  text[length] = '\n';
  if (write(static_cast<int>(last_words_to), text, length + 1) < 0) return;
}

void write_last_words(int signal) {
  write_call();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

// A plugin has called exit.
void write_exit() {
  write_call();
  _exit(1);
}

json result_of(const Check& check, Context& context) {
  const int64_t before = context.comparisons();
  const auto result = [&](const char* outcome, const std::string& message) {
    return json{{"check", check.name},
                {"outcome", outcome},
                {"message", message},
                {"comparisons", context.comparisons() - before}};
  };
  try {
    check.run(context);
    return result("passed", "");
  } catch (const Skip& skip) {
    return result("skipped", skip.what());
  } catch (const std::exception& fault) {
    return result("failed", fault.what());
  } catch (...) {
    return result("failed", "an exception of unknown type");
  }
}

Outcome outcome_of(const std::string& name) {
  return name == "passed" ? Outcome::kPassed : name == "skipped" ? Outcome::kSkipped : Outcome::kFailed;
}

// Runs the checks of one component, in as many children as it takes: after the death of one the next begins with the
// check after that.
class ComponentRun {
 public:
  ComponentRun(int seconds, const Subject& subject, std::vector<Check> checks,
               const std::function<void(const Result&)>& done)
      : seconds_(static_cast<unsigned>(seconds)), subject_(subject), checks_(std::move(checks)), done_(done) {}

  void run() {
    constexpr int kMostDeaths = 3;
    for (int deaths = 0; next_ < checks_.size() && deaths < kMostDeaths; ++deaths) run_some(deaths > 0);
    for (; next_ < checks_.size(); ++next_)
      give(Outcome::kSkipped, "not run, since the plugin has ended three processes", 0);
  }

 private:
  void run_some(bool after_death) {
    const ChildEnd end = run_child([&](int to) { work(to, after_death); }, seconds_, seconds_ + 5);
    std::string call;
    bool begun = false, left = false;
    for (size_t at = 0; at < end.text.size();) {
      const size_t stop = std::min(end.text.find('\n', at), end.text.size());
      const std::string line = end.text.substr(at, stop - at);
      at = stop + 1;
      const json read = json::parse(line, nullptr, false);
      if (line.rfind("call: ", 0) == 0) call = line.substr(6);
      if (!read.is_object()) continue;
      left = read.contains("left");
      if (left) break;
      begun = read.contains("begin");
      if (begun) continue;
      std::string message = read.at("message");
      if (read.at("outcome") == "failed" && !call.empty()) message += ", in " + call;  // of a process of the check
      call.clear();
      give(outcome_of(read.at("outcome")), message, read.at("comparisons"));
      ++next_;
    }
    if (left) return;
    const bool silent = WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0;
    std::string why = silent ? "it ended the report: it closed descriptors that are not its own, or called _exit"
                      : end.timed_out ? "it did not end within " + std::to_string(seconds_) + " seconds"
                                      : "it ended the process by " + end.how();
    if (!call.empty()) why += ", in " + call;
    if (next_ >= checks_.size()) {
      give(Outcome::kFailed, why, 0);
      return;
    }
    if (!begun) why += ", before the check began";
    give(Outcome::kFailed, why, 0);
    ++next_;
  }
  void work(int to, bool after_death) const {
    last_words_to = to;
    watch_end(write_last_words, write_exit);
    setenv("TMPDIR", subject_.scratch.c_str(), 1);
    const Writer writer(to);
    run_all(writer, after_death);
    alarm_in(seconds_, write_last_words);
    run_exit_handlers([](const char*) { write_call(); });
    writer.write({{"left", true}});
  }
  void run_all(const Writer& writer, bool after_death) const {
    Context context(subject_, after_death);
    for (size_t i = next_; i < checks_.size(); ++i) {
      alarm_in(seconds_, write_last_words);
      writer.write({{"begin", checks_[i].name}});
      writer.write(result_of(checks_[i], context));
    }
  }
  void give(Outcome outcome, const std::string& message, int64_t comparisons) const {
    done_({subject_.kind, subject_.shown.empty() ? subject_.type : subject_.shown,
           next_ < checks_.size() ? checks_[next_].name : "exit handlers", outcome, message, comparisons});
  }

  unsigned seconds_;
  const Subject& subject_;
  std::vector<Check> checks_;
  const std::function<void(const Result&)>& done_;
  size_t next_ = 0;
};

}  // namespace

void run_checks(int seconds, const Subject& subject, const std::vector<Check>& checks,
                const std::function<void(const Result&)>& done) {
  ComponentRun(seconds, subject, checks, done).run();
}

}  // namespace tenon::check
