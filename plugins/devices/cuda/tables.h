// The primitives on CUDA. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_images.h>

#include "runtime/kernels.h"

namespace tenon::cuda {

// The kernels of a call. Throw tn::Failure: TN_UNSUPPORTED names what is not offered, TN_INVALID a dimension without a
// bound.
[[nodiscard]] Kernels kernels_of(const tn_argsort& argsort);
[[nodiscard]] Kernels kernels_of(const tn_coalesce& coalesce);
[[nodiscard]] Kernels kernels_of(const tn_conv& conv);
[[nodiscard]] Kernels kernels_of(const tn_gather& gather);
[[nodiscard]] Kernels kernels_of(const tn_gemm& gemm);
[[nodiscard]] Kernels kernels_of(const tn_move& move);
[[nodiscard]] Kernels kernels_of(const tn_pointwise_site& site);
[[nodiscard]] Kernels kernels_of(const tn_pool& pool);
[[nodiscard]] Kernels kernels_of(const tn_prefix_sum& prefix_sum);
[[nodiscard]] Kernels kernels_of(const tn_resize_site& site);
[[nodiscard]] Kernels kernels_of(const tn_row_sparse_update& update);
[[nodiscard]] Kernels kernels_of(const tn_segment& segment);

// Null-terminated ids of the tables, and a table by its id; null if it is not offered.
[[nodiscard]] const char* const* table_ids() noexcept;
[[nodiscard]] const void* table(const char* id);

}  // namespace tenon::cuda
