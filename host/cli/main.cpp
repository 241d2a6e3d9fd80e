// The program tenon: finds the verb and runs it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>

#include "base/nearest.h"
#include "host/cli/external.h"
#include "host/cli/program.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

// Returns the verbs of other programs that the table lacks.
std::vector<ExternalVerb> further_verbs() {
  std::vector<ExternalVerb> result = external_verbs();
  const auto is_in_table = [](const ExternalVerb& external) {
    return std::any_of(std::begin(kVerbs), std::end(kVerbs),
                       [&](const Verb& verb) { return hyphenated(verb.name) == external.name; });
  };
  result.erase(std::remove_if(result.begin(), result.end(), is_in_table), result.end());
  return result;
}

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
  const std::vector<ExternalVerb> further = group.empty() ? further_verbs() : std::vector<ExternalVerb>();
  if (!further.empty()) {
    out << "\nverbs of other programs:\n";
    for (const ExternalVerb& verb : further) {
      const size_t width = verb.name.size() < longest ? longest + 2 - verb.name.size() : 2;
      out << plain("  " + verb.name) << std::string(width, ' ') << plain(verb.file) << "\n";
    }
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

// Goes on as the program of a verb, if there is one.
void try_external(const Arguments& arguments) {
  for (size_t words = std::min<size_t>(2, arguments.size()); words > 0; --words) {
    const std::string name = words == 2 ? arguments[0] + " " + arguments[1] : arguments[0];
    if (const std::optional<ExternalVerb> verb = external_verb(name))
      run_external(*verb, {arguments.begin() + static_cast<std::ptrdiff_t>(words), arguments.end()});
  }
}

// Prints the names of all verbs, a line each, for the completion of shells.
int print_names() {
  for (const Verb& verb : kVerbs) std::cout << verb.name << "\n";
  for (const ExternalVerb& verb : further_verbs()) std::cout << plain(verb.name) << "\n";
  return kDone;
}

// Handles the first word of a group, such as "plugins" alone, and misspelt verbs.
int no_verb(const Arguments& arguments) {
  std::string given = arguments[0];
  std::vector<std::string> names, group;
  for (const Verb& verb : kVerbs) {
    const std::string name = verb.name;
    names.push_back(name);
    if (name.rfind(given + " ", 0) == 0) group.push_back(name);
  }
  if (group.empty()) {
    for (const ExternalVerb& verb : further_verbs()) names.push_back(verb.name);
  } else {
    if (arguments.size() > 1 && is_help(arguments[1])) {
      print_help(std::cout, given + " ");
      return kDone;
    }
    if (arguments.size() > 1) given += " " + arguments[1];
    names = group;
  }
  throw Failure(kUsage, "unknown verb \"" + given + "\"" + base::suggestion(given, names));
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
  if (arguments[0] == "--verbs") return print_names();
  for (const Verb& verb : kVerbs)
    if (const size_t words = words_of(verb, arguments); words > 0 && verb.run != nullptr)
      return verb.run({arguments.begin() + static_cast<std::ptrdiff_t>(words), arguments.end()});
  try_external(arguments);
  for (const Verb& verb : kVerbs)
    if (words_of(verb, arguments) > 0)
      throw Failure(kNotFound, std::string("\"") + verb.name + "\" is a program of its own, tenon-" +
                                   hyphenated(verb.name) +
                                   ", which is neither beside this one nor in a folder of PATH");
  return no_verb(arguments);
}

}  // namespace

}  // namespace tenon::cli

int main(int argc, char** argv) { return tenon::cli::program(argc, argv, tenon::cli::run); }
