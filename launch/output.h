// What the launcher prints: its own lines, and those of the processes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/not_copied.h"
#include "launch/events.h"

namespace tenon::launch {

// Prints without waiting: where standard output or standard error takes nothing, the text is kept.
class Output : base::NotCopied {
 public:
  explicit Output(bool quiet) : quiet_(quiet) {}
  ~Output() { finish(); }

  // Prints a remark, unless quiet; warn always prints.
  void note(const std::string& text);
  void warn(const std::string& text);
  // Prints the lines of a process: standard output of process 0 alone; of standard error each line once, even if
  // several processes have it, with "[process 2 on node1] " before those of other processes than 0.
  void tell(int64_t rank, const std::string& node, const std::string& stream, const std::string& text);
  // The processes start again: a line that they had may come again.
  void forget() { seen_.clear(); }

  void add_waits(std::vector<Wait>& waits);
  // Whether so much is kept that the processes should wait.
  [[nodiscard]] bool is_full() const { return out_.text.size() + err_.text.size() > kMost; }
  // Whether standard output can no longer be written.
  [[nodiscard]] bool failed() const { return out_.failed; }
  // Prints what is kept, however long that takes.
  void finish();

 private:
  static constexpr size_t kMost = 1 << 20;

  struct Stream {
    int descriptor;
    std::string text;
    bool failed = false;
    void write(size_t most);
  };

  const bool quiet_;
  Stream out_{1, ""}, err_{2, ""};
  std::map<std::string, int64_t> seen_;  // lines of standard error, and the first process that had them
};

}  // namespace tenon::launch
