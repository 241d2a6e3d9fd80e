// The kernels of pointwise programs: one operation over contiguous elements, called lanes. Float lanes are f32 or f64
// (`wide`), int lanes are signed ints of the same width, bool lanes are ints with all bits 1 or all bits 0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>
#include <tenon/program.h>

#include <cstdint>

namespace tenon::cpu {

// out [count] = operation(a, b, c). An operand is [count], or one element if it is broadcast; operands beyond those of
// the operation are ignored. `out` may be the same memory as an operand of [count]. Kernels over rows work on [count,
// columns], row-major; the others ignore `columns`.
using Kernel = void (*)(void* out, const void* a, const void* b, const void* c, int64_t count, int64_t columns);

// Bytes behind the last element of a register, which the spreading kernels may overwrite.
constexpr int64_t kRegisterSlack = 64;

// Instruction sets for which the kernels are compiled; detect_isa returns the best one of this processor.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };
[[nodiscard]] Isa detect_isa();

// Everything that selects a kernel. The functions below return null if there is no such kernel.
constexpr uint16_t kNoOperation = 0;
struct KernelKey {
  Isa isa = Isa::kBaseline;
  bool wide = false;
  uint16_t operation = kNoOperation;  // of a node of a pass
  uint8_t kind = 0;                   // of operand a (SELECT and COPY: any)
  uint8_t to = 0;                     // of the result
  uint8_t broadcast = 0;              // bit i: operand i is one element
};
[[nodiscard]] Kernel arithmetic_kernel(const KernelKey& key);
[[nodiscard]] Kernel math_kernel(const KernelKey& key);  // TN_CLASS_MATH

// REDUCE_*: a [count, columns] -> out [count]: out[row] = reduction of a[row, :].
[[nodiscard]] Kernel row_kernel(Isa isa, bool wide, uint16_t operation, uint8_t kind);
// a [count] -> out [count, columns]: out[row, :] = a[row].
[[nodiscard]] Kernel spread_rows_kernel(Isa isa, bool wide);
// a [columns] -> out [count, columns]: out[row, :] = a[:].
[[nodiscard]] Kernel spread_columns_kernel(Isa isa, bool wide);
// out [count] int lanes: out[i] = *a + i; a is one int64.
[[nodiscard]] Kernel index_kernel(Isa isa, bool wide);

// TN_OP_UNIFORM: out [count] float lanes: out[i] = draw *b of element *c + i; a is a tn_random, b a uint32, c an int64.
[[nodiscard]] Kernel uniform_kernel(Isa isa, bool wide);

// load: a [count] of `dtype` -> out [count] lanes of `kind`. store: a [count] lanes -> out [count] of `dtype`; `add`
// adds to the elements of `out`. A number that an integer type cannot hold becomes the nearest one that it can.
[[nodiscard]] Kernel load_kernel(Isa isa, bool wide, uint8_t kind, tn_dtype dtype);
[[nodiscard]] Kernel store_kernel(Isa isa, bool wide, uint8_t kind, tn_dtype dtype, bool add);

}  // namespace tenon::cpu
