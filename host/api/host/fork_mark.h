// Whether the process is a child of the one that made a host. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/not_copied.h"

namespace tenon::host {

// A page that Linux fills with zeros in children (MADV_WIPEONFORK), so that the check of each call needs neither a
// system call nor a handler of fork, which would need a global variable. Compares process numbers where there is no
// such page.
class ForkMark : base::NotCopied {
 public:
  ForkMark() : process_(getpid()) {
    const size_t bytes = page_bytes();
    void* const page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return;
    if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
      munmap(page, bytes);
      return;
    }
    page_ = static_cast<volatile char*>(page);
    *page_ = 1;
  }
  ~ForkMark() {
    if (page_ != nullptr) munmap(const_cast<char*>(page_), page_bytes());
  }

  [[nodiscard]] bool in_child() const { return page_ != nullptr ? *page_ == 0 : getpid() != process_; }

 private:
  static size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

  const pid_t process_;
  volatile char* page_ = nullptr;
};

}  // namespace tenon::host
