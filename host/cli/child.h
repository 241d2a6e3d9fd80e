// Work in a process of its own, for code of plugins that may crash or hang. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace tenon::cli {

struct Ended {
  std::string answer;  // what `work` returned, incomplete if it did not
  int status = 0;      // of waitpid
};
// Calls `work` in a child process. After so many seconds (0: never) the child gets SIGALRM, for which it has the
// handler `late`. Throws Failure(kIo) if there can be no child.
[[nodiscard]] Ended run_in_child(unsigned seconds, void (*late)(int), const std::function<std::string()>& work);

// Returns "signal 11 (Segmentation fault)" or "exit code 3".
[[nodiscard]] std::string how_it_ended(int status);

// Calls `verb` in a child process and returns its exit code; prints what it printed. Throws the Failure with which it
// ended. If the child crashes or does not end within `seconds` (0: never), throws Failure(kInternal): the child has
// printed the call of a plugin that it was in.
int run_verb_in_child(unsigned seconds, const std::function<int()>& verb);

}  // namespace tenon::cli
