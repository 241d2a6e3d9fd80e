// Whether a test runs under a sanitizer. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

namespace tenon_tests {

// Under AddressSanitizer or ThreadSanitizer, which need more memory and time. Asks the program, since tests are
// compiled without the former.
inline bool sanitized() {
  return dlsym(RTLD_DEFAULT, "__asan_init") != nullptr || dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

}  // namespace tenon_tests
