// Whether a test runs under a sanitizer. SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon_tests {

// Under AddressSanitizer or ThreadSanitizer, which need more memory and time.
inline bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

}  // namespace tenon_tests
