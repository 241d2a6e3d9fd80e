// The two halves of "tenon.rows/1". SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <memory>

namespace tenon::cpu {

tn_status prepare_coalesce(void* device, const tn_services* services, const tn_errors* errors,
                           const tn_coalesce* coalesce, tn_prepared* prepared);
tn_status prepare_rows_update(void* device, const tn_services* services, const tn_errors* errors,
                              const tn_rows_update* update, tn_prepared* prepared);

}  // namespace tenon::cpu
