// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <array>

namespace tenon::core {

const char* status_text(tn_status status) noexcept {
  static constexpr std::array<const char*, 16> kTexts = {"ok",
                                                         "invalid argument",
                                                         "misuse",
                                                         "not found",
                                                         "unsupported",
                                                         "bad data",
                                                         "bad configuration",
                                                         "out of memory",
                                                         "input/output error",
                                                         "plugin refused",
                                                         "need capacity",
                                                         "end",
                                                         "cancelled",
                                                         "not kept",
                                                         "plugin fault",
                                                         "internal error"};
  if (status < 0 || static_cast<size_t>(status) >= kTexts.size()) return "unknown status";
  return kTexts[static_cast<size_t>(status)];
}

}  // namespace tenon::core
