// What another thread of this process is in, asked by a signal. POSIX alone. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/not_copied.h"

namespace tenon::process {

// Asks the thread that makes it, by SIGURG, which nothing else uses and which is ignored without a handler. It
// interrupts no read or write of the thread, but a sleep or poll. One object at a time.
class ThreadProbe : base::NotCopied {
 public:
  // describe: writes what its thread is in to text[size], NUL-terminated. It runs in a handler, on the thread that is
  // asked, and may call what is safe there alone.
  explicit ThreadProbe(uint64_t (*describe)(char* text, uint64_t size));
  ~ThreadProbe();

  // Returns the description; empty if the thread does not answer in a tenth of a second. For any thread but the one
  // that is asked, one at a time.
  [[nodiscard]] std::string ask() const;

 private:
  const unsigned long thread_;  // a pthread_t
};

}  // namespace tenon::process
