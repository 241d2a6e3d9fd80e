// The program tenon: finds the verb, runs it, and turns failures into a message and an exit code.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>

#include "host/cli/cli.h"
#include "host/cli/console.h"
#include "host/cli/crash.h"
#include "host/cli/suggest.h"
#include "host/cli/verbs.h"

namespace tenon::cli {

namespace {

// Prints all verbs, or those whose names begin with `group`.
void print_help(std::ostream& out, const std::string& group = "") {
  size_t longest = 0;
  for (const Verb& verb : kVerbs) longest = std::max(longest, std::string(verb.name).size());
  out << "usage: tenon <verb> [options] ...\n\nverbs:\n";
  for (const Verb& verb : kVerbs) {
    const std::string name = verb.name;
    if (name.rfind(group, 0) != 0) continue;
    out << "  " << name << std::string(longest + 2 - name.size(), ' ') << verb.help << "\n";
  }
  out << "\n'tenon <verb> --help' tells more.\n";
}

// Returns how many arguments the verb's name takes, 0 if they name another verb.
size_t words_of(const Verb& verb, const Arguments& arguments) {
  const std::string name = verb.name;
  if (!arguments.empty() && arguments[0] == name) return 1;
  if (arguments.size() > 1 && arguments[0] + " " + arguments[1] == name) return 2;
  return 0;
}

bool is_help(const std::string& argument) { return argument == "--help" || argument == "-h" || argument == "help"; }

// Handles the first word of a group, such as "plugins" alone, and misspelt verbs.
int no_verb(const Arguments& arguments) {
  std::string given = arguments[0];
  std::vector<std::string> names, group;
  for (const Verb& verb : kVerbs) {
    const std::string name = verb.name;
    names.push_back(name);
    if (name.rfind(given + " ", 0) == 0) group.push_back(name);
  }
  if (!group.empty()) {
    if (arguments.size() > 1 && is_help(arguments[1])) {
      print_help(std::cout, given + " ");
      return kDone;
    }
    if (arguments.size() > 1) given += " " + arguments[1];
    names = group;
  }
  throw Failure(kUsage, "unknown verb \"" + given + "\"" + suggestion(given, names));
}

int run(const Arguments& arguments) {
  if (arguments.empty()) {
    print_help(std::cerr);
    return kUsage;
  }
  if (is_help(arguments[0])) {
    print_help(std::cout);
    return kDone;
  }
  if (arguments[0] == "--version") return run_version({});
  for (const Verb& verb : kVerbs)
    if (const size_t words = words_of(verb, arguments); words > 0)
      return verb.run({arguments.begin() + static_cast<std::ptrdiff_t>(words), arguments.end()});
  return no_verb(arguments);
}

int report(int exit, const std::string& message) {
  std::cout.flush();
  std::cerr << "tenon: " << shortened(plain(message)) << std::endl;
  return exit;
}

int guarded(const Arguments& arguments) {
  try {
    const int exit = run(arguments);
    if (!std::cout.flush()) return report(kIo, "cannot write to standard output");
    return exit;
  } catch (...) {
    const Ending ending = ending_of(std::current_exception());
    return report(ending.exit, ending.message);
  }
}

}  // namespace

}  // namespace tenon::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on file sizes then returns an error
  tenon::cli::tell_crashes();
  const int exit = tenon::cli::guarded(tenon::cli::Arguments(argv + (argc > 0 ? 1 : 0), argv + argc));
  constexpr unsigned kMostSeconds = 60;
  tenon::cli::leave_plugins(kMostSeconds);
  return exit;
}
