// The primitive tables of the device "cpu", one file each. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device.h>

namespace tenon::cpu {

[[nodiscard]] const tn_gemm_table* gemm_table();
[[nodiscard]] const tn_gemm_epilogue_table* gemm_epilogue_table();
[[nodiscard]] const tn_pointwise_table* pointwise_table();
[[nodiscard]] const tn_gather_table* gather_table();
[[nodiscard]] const tn_move_table* move_table();
[[nodiscard]] const tn_segment_table* segment_table();
[[nodiscard]] const tn_row_sparse_table* row_sparse_table();

template <auto typed_table>
const void* table() {
  return typed_table();
}

struct OfferedTable {
  const char* id;
  const void* (*get)();
};

// All tables that the device offers.
inline constexpr OfferedTable kTables[] = {{TN_GEMM, table<gemm_table>},
                                           {TN_GEMM_EPILOGUE, table<gemm_epilogue_table>},
                                           {TN_POINTWISE, table<pointwise_table>},
                                           {TN_GATHER, table<gather_table>},
                                           {TN_MOVE, table<move_table>},
                                           {TN_SEGMENT, table<segment_table>},
                                           {TN_ROW_SPARSE_TABLE, table<row_sparse_table>}};

}  // namespace tenon::cpu
