// The block kernels of the pointwise evaluator: one operation over a run of elements. Float lanes are f32 or f64
// (`wide`), int lanes are equally wide signed ints, bool lanes are all ones or all zeros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>
#include <tenon/program.h>

#include <cstdint>

namespace tenon::cpu {

// `out` has `count` elements. An operand is a run of as many, or one element where it is broadcast. `out` may be the
// same run as an operand. Kernels over rows take `count` rows of `columns` elements.
using Kernel = void (*)(void* out, const void* a, const void* b, const void* c, int64_t count, int64_t columns);

// Registers have this much room behind their last element, which the spreading kernels may overwrite.
constexpr int64_t kRegisterSlack = 64;

// Instruction sets the kernels are compiled for; the best one that this processor has.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };
[[nodiscard]] Isa detect_isa();

// Everything that selects a kernel. All searches give null where there is no such kernel.
struct KernelKey {
  Isa isa;
  bool wide;
  uint16_t operation;  // of a node of a pass
  uint8_t kind;        // of operand a (SELECT and COPY: any)
  uint8_t to;          // of the result
  uint8_t broadcast;   // bit i: operand i is one element
};
[[nodiscard]] Kernel arithmetic_kernel(const KernelKey& key);
[[nodiscard]] Kernel math_kernel(const KernelKey& key);  // TN_CLASS_MATH

// REDUCE_*: out[row] = reduction of a[row, :].
[[nodiscard]] Kernel row_kernel(Isa isa, bool wide, uint16_t operation, uint8_t kind);
// out[row, :] = a[row], and out[row, :] = a[:].
[[nodiscard]] Kernel spread_rows_kernel(Isa isa, bool wide);
[[nodiscard]] Kernel spread_columns_kernel(Isa isa, bool wide);
// out[i] = *a + i, with a an int64_t.
[[nodiscard]] Kernel index_kernel(Isa isa, bool wide);

// out[i] = draw *b of element *c + i, with a the step's tn_random, b a uint32_t and c an int64_t (TN_OP_UNIFORM).
[[nodiscard]] Kernel uniform_kernel(Isa isa, bool wide);

// Memory of an element type to lanes of a kind and back; `add` adds to what the memory holds. An int lane that
// cannot hold a number takes the nearest it can.
[[nodiscard]] Kernel load_kernel(Isa isa, bool wide, uint8_t kind, tn_dtype dtype);
[[nodiscard]] Kernel store_kernel(Isa isa, bool wide, uint8_t kind, tn_dtype dtype, bool add);

}  // namespace tenon::cpu
