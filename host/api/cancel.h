// The token behind tn_cancel. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon_training.h>

#include <atomic>
#include <memory>

// The flag outlives the token as long as a call uses it.
struct tn_cancel {
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");
  std::shared_ptr<std::atomic<bool>> requested = std::make_shared<std::atomic<bool>>(false);
};
