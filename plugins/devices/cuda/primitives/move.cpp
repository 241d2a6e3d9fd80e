// Boxes of tensors copied into one tensor. SPDX-License-Identifier: Apache-2.0
#include <tenon/base.hpp>

#include "prelude.h"
#include "tables.h"

namespace tenon::cuda {

namespace {

// a.table: the output's shape, extents [rank]; then for each part its input's shape and its box, extents [rank], the
// number of the input, from_start, to_start and axes [rank]. Launch `step` copies that part.
constexpr const char* kText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0 || a.requests[0] == 2) return;
  Int64 count = 1;
  for (int k = 0; k < kRank; ++k) count *= size_of(((const Extent*)a.table)[k], a.symbols);
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) ((E*)a.outputs[0])[e] = 0;
}

// The stride of each dimension of a shape [kRank].
struct Strides { Int64 of[kRank + 1]; };
__device__ Strides strides_of(const Extent* shape, const Int64* symbols) {
  Strides result;
  Int64 next = 1;
  for (int k = kRank - 1; k >= 0; --k) {
    result.of[k] = next;
    next *= size_of(shape[k], symbols);
  }
  return result;
}

extern "C" __global__ void __launch_bounds__(256, 2) kernel1(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Extent* const shape = (const Extent*)(a.table + 3 * kRank + a.step * (9 * kRank + 1));
  const Int64* const part = (const Int64*)(shape + 2 * kRank);
  const Strides from = strides_of(shape, a.symbols), to = strides_of((const Extent*)a.table, a.symbols);
  Int64 box[kRank + 1], from_step[kRank + 1], to_step[kRank + 1], from_start = 0, to_start = 0, count = 1;
  for (int k = 0; k < kRank; ++k) {
    const Int64 axis = part[1 + 2 * kRank + k];
    box[k] = size_of(shape[kRank + k], a.symbols);
    count *= box[k];
    from_step[k] = from.of[k];
    to_step[k] = to.of[axis];
    from_start += part[1 + k] * from_step[k];
    to_start += part[1 + kRank + axis] * to_step[k];
  }
  const E* const input = (const E*)a.inputs[part[0]];
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) {
    Int64 rest = e, at = from_start, place = to_start;
    for (int k = kRank - 1; k >= 0; --k) {
      const Int64 next = divide(rest, box[k]), x = rest - next * box[k];
      at += x * from_step[k];
      place += x * to_step[k];
      rest = next;
    }
    put((E*)a.outputs[0] + place, input[at], a.requests[0]);
  }
}
)cuda";

int64_t elements(const tn_dim* shape, int32_t rank) {
  int64_t count = 1;
  for (int32_t k = 0; k < rank; ++k) count = product_of(count, bound_of(shape[k], "elements of a dimension"));
  return count;
}

void append(std::vector<int64_t>& table, const tn_dim* shape, int32_t rank) {
  for (int32_t k = 0; k < rank; ++k)
    table.insert(table.end(), {shape[k].coefficient, shape[k].offset, shape[k].symbol});
}

}  // namespace

Kernels kernels_of(const tn_move& move) {
  const char* const element = is_float(move.dtype) ? element_name(move.dtype) : bits_name(move.dtype);
  if (element == nullptr) throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA moves elements of 1, 2, 4 and 8 bytes only");
  if (move.rank < 0 || move.rank > TN_MAX_RANK)
    throw tn::Failure(TN_INVALID, "rank", "the rank of a move is not from 0 to 8");
  Kernels kernels;
  kernels.text = std::string("typedef ") + element + " E;\nconstexpr int kRank = " + std::to_string(move.rank) + ";\n" +
                 kPutText + kText;
  kernels.outputs_count = 1;
  kernels.adds = is_float(move.dtype);
  append(kernels.table, move.to, move.rank);
  if (move.fill != 0) kernels.launches.push_back({0, pieces(elements(move.to, move.rank), kTile)});
  for (uint32_t p = 0; p < move.parts_count; ++p) {
    const tn_move_part& part = *move.parts[p];
    kernels.inputs_count = std::max(kernels.inputs_count, part.input + 1);
    append(kernels.table, part.from, move.rank);
    append(kernels.table, part.box, move.rank);
    kernels.table.push_back(part.input);
    kernels.table.insert(kernels.table.end(), part.from_start, part.from_start + move.rank);
    kernels.table.insert(kernels.table.end(), part.to_start, part.to_start + move.rank);
    kernels.table.insert(kernels.table.end(), part.axes, part.axes + move.rank);
    kernels.launches.push_back({1, pieces(elements(part.box, move.rank), kTile), p});
  }
  return kernels;
}

}  // namespace tenon::cuda
