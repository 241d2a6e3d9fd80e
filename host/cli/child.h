// Work in a process of its own, for code of plugins that may crash or hang. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "process/child.h"

namespace tenon::cli {

// Calls `work` in a child process; the text is what it returned, incomplete if it did not. After so many seconds (0:
// never) the child gets SIGALRM, for which it has the handler `late`. Throws Failure(kIo) if there can be no child.
[[nodiscard]] process::ChildEnd run_in_child(unsigned seconds, void (*late)(int),
                                             const std::function<std::string()>& work);

// Calls `verb` in a child process and returns its exit code; prints what it printed. Throws the Failure with which it
// ended. If the child crashes or does not end within `seconds` (0: never), throws Failure(kInternal): the child has
// printed the call of a plugin that it was in.
int run_verb_in_child(unsigned seconds, const std::function<int()>& verb);

}  // namespace tenon::cli
