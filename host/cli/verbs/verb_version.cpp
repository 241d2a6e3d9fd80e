// tenon version: prints the version. SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "host/cli/options.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

int run_version(const Arguments& arguments) {
  Options options("version", {}, "Prints the version of the program and, if it differs, of libtenon.");
  if (!options.parse(arguments)) return kDone;
  std::cout << "tenon " << TENON_VERSION;
  const std::string library = tn_version();
  if (library != TENON_VERSION) std::cout << " (libtenon " << library << ")";
  std::cout << "\n";
  return kDone;
}

}  // namespace tenon::cli
