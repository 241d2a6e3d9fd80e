// The prepare functions of "tenon.row_sparse/1" and "tenon.coalesce_products/1". SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

#include <memory>

namespace tenon::cpu {

// coalesce.cpp
tn_status prepare_coalesce(void* device, const tn_services* services, const tn_errors* errors,
                           const tn_coalesce* coalesce, tn_prepared* prepared);
tn_status prepare_coalesce_products(void* device, const tn_services* services, const tn_errors* errors,
                                    const tn_coalesce_products* coalesce, tn_prepared* prepared);
// rows_update.cpp
tn_status prepare_rows_update(void* device, const tn_services* services, const tn_errors* errors,
                              const tn_row_sparse_update* given, tn_prepared* prepared);

}  // namespace tenon::cpu
