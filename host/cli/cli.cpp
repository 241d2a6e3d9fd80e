// SPDX-License-Identifier: Apache-2.0
#include "host/cli/cli.h"

namespace tenon::cli {

int exit_code(tn_status status) noexcept {
  switch (status) {
    case TN_OK:
      return kDone;
    case TN_INVALID:
    case TN_UNSUPPORTED:
    case TN_BAD_CONFIG:
      return kBadConfig;
    case TN_NOT_FOUND:
      return kNotFound;
    case TN_BAD_DATA:
      return kBadData;
    case TN_OUT_OF_MEMORY:
      return kSystem;
    case TN_IO:
      return kIo;
    case TN_REFUSED:
      return kRefused;
    case TN_CANCELLED:
      return kSignalled + 2;
    default:
      return kInternal;
  }
}

}  // namespace tenon::cli
