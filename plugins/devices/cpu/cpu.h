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
[[nodiscard]] const tn_rows_table* rows_table();

}  // namespace tenon::cpu
