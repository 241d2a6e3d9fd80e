// Verbs that are programs of their own: `tenon NAME` runs tenon-NAME, and `tenon A B` runs tenon-A-B.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "host/cli/cli.h"

namespace tenon::cli {

struct ExternalVerb {
  std::string name;  // "serve": what follows "tenon-" in the name of the file
  std::string file;  // the path of the program
};

// Returns the path of this program; empty if the system does not tell.
[[nodiscard]] std::filesystem::path this_program();
// Returns the words of a verb with hyphens between them.
[[nodiscard]] std::string hyphenated(std::string words);
// Returns the verbs beside this program and in the absolute folders of PATH, by name. The first of a name counts.
[[nodiscard]] std::vector<ExternalVerb> external_verbs();
// Returns the program of a verb of one or two words, "plugins check", if it is found.
[[nodiscard]] std::optional<ExternalVerb> external_verb(const std::string& words);
// Goes on as that program, with TENON_PROGRAM, the path of this one, in its environment. Returns only by an exception:
// Failure(kNotFound).
[[noreturn]] void run_external(const ExternalVerb& verb, const Arguments& arguments);

}  // namespace tenon::cli
