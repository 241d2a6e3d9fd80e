// The public C API: tokens that end a call from another thread. SPDX-License-Identifier: Apache-2.0
#include "host/api/cancel.h"

#include "host/api/api.h"

namespace api = tenon::host::api;

tn_status tn_cancel_create(tn_cancel** cancel, tn_error* error) {
  return api::guarded(error, [&] {
    tn_cancel*& to = api::required(cancel, "cancel");
    to = std::make_unique<tn_cancel>().release();
  });
}

void tn_cancel_request(tn_cancel* cancel) {
  if (cancel != nullptr) cancel->requested->store(true, std::memory_order_relaxed);
}

void tn_cancel_reset(tn_cancel* cancel) {
  if (cancel != nullptr) cancel->requested->store(false, std::memory_order_relaxed);
}

int32_t tn_cancel_is_requested(const tn_cancel* cancel) {
  return cancel != nullptr && cancel->requested->load(std::memory_order_relaxed) ? 1 : 0;
}

void tn_cancel_release(tn_cancel* cancel) { delete cancel; }
