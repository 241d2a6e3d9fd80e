// tenon plugins sign: signs plugins and plugin sets. SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "host/cli/options.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

int run_plugins_sign(const Arguments& arguments) {
  std::string key;
  Options options(
      "plugins sign", {"FILE..."},
      "Signs plugins or plugin sets: writes FILE.sig beside each, which 'tenon plugins verify' checks, and of\n"
      "plugins the key \"signed_by\" of a plugin set. Runs no plugin code.");
  options.list.add_options()("key", boost::program_options::value(&key)->value_name("NAME.key"),
                             "the secret key, of 'tenon plugins key'; required");
  if (!options.parse(arguments)) return kDone;
  if (key.empty()) options.fail("--key: expected the file of a secret key");
  for (const std::string& file : options.given()) {
    sign_plugin(file, key);
    std::cout << plain("signed " + file + ": " + file + ".sig") << "\n";
  }
  return kDone;
}

}  // namespace tenon::cli
