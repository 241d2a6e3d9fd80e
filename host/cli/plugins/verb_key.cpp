// tenon plugins key: makes the keys with which plugins are signed. SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <sstream>

#include "host/cli/options.h"
#include "host/cli/plugins/seal/replace.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

// Returns the digits in the file of a public key: its second line.
std::string digits_of(const std::string& file) {
  std::istringstream lines(read_file(file));
  std::string title, digits;
  std::getline(lines, title);
  std::getline(lines, digits);
  return digits;
}

}  // namespace

int run_plugins_key(const Arguments& arguments) {
  Options options("plugins key", {"NAME"},
                  "Makes a pair of Ed25519 keys: NAME.key, the secret one, which signs and which its owner alone can\n"
                  "read, and NAME.pub, the public one. Prints the entry of a plugin set for it. Overwrites nothing.");
  if (!options.parse(arguments)) return kDone;
  const std::string& name = options.operand(0);
  create_plugin_key(name + ".key", name + ".pub");
  const std::string title = name.substr(name.rfind('/') + 1);
  std::cout << "[[key]]\nname = \"" << plain(title) << "\"\npublic = \"" << digits_of(name + ".pub") << "\"\n";
  return kDone;
}

}  // namespace tenon::cli
