// "tenon.coalesce_products/1": row-sparse gradients whose contributions are products.
// SPDX-License-Identifier: Apache-2.0
#include "primitives.h"
#include "rows_update.h"

namespace tenon::cpu {

namespace {

// It always pays: no contribution is written and read again.
tn_status supports(void*, const tn_errors*, const tn_coalesce_products* coalesce) {
  return coalesce->dtype == TN_F32 || coalesce->dtype == TN_F64 ? TN_OK : TN_UNSUPPORTED;
}

}  // namespace

const char coalesce_products_id[] = TN_COALESCE_PRODUCTS;
const tn_coalesce_products_table coalesce_products_table = {sizeof(tn_coalesce_products_table), 0, &supports,
                                                            &prepare_coalesce_products};

}  // namespace tenon::cpu
