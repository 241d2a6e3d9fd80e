// "tenon.row_sparse/1": row-sparse gradients and their updates. SPDX-License-Identifier: Apache-2.0
#include "primitives.h"
#include "rows_update.h"

namespace tenon::cpu {

const char row_sparse_id[] = TN_ROW_SPARSE_TABLE;
const tn_row_sparse_table row_sparse_table = {sizeof(tn_row_sparse_table), TN_OPSET, &prepare_coalesce,
                                              &prepare_rows_update};

}  // namespace tenon::cpu
