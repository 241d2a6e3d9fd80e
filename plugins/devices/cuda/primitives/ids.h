// Text of kernels that look up rows by ids: the check of the ids, and offsets of segments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon::cuda {

inline constexpr const char* kSegmentsText = R"cuda(
// The number of elements of list [count], ascending, that are at most `value`.
__device__ Int64 count_up_to(const Int64* list, Int64 count, Int64 value) {
  Int64 low = 0, high = count;
  while (low < high) {
    const Int64 middle = (low + high) / 2;
    if (list[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
// The segment of a row; offsets [segments + 1].
__device__ Int64 segment_of(const Int64* offsets, Int64 segments, Int64 row) {
  return count_up_to(offsets, segments, row) - 1;
}
struct Range { Int64 first, end; };
// The rows of a segment, within [0, rows) whatever the offsets are.
__device__ Range rows_of(const Int64* offsets, Int64 segment, Int64 rows) {
  const Int64 first = offsets[segment], end = offsets[segment + 1];
  return {first < 0 ? 0 : first, end > rows ? rows : end};
}
)cuda";

inline constexpr const char* kIdsText = R"cuda(
__device__ Int64 id_at(const void* ids, bool wide, Int64 i) {
  return wide ? ((const Int64*)ids)[i] : ((const int*)ids)[i];
}
// first_wrong [parts]: for each part of the ids [count] the first position of one outside of [0, height).
__device__ void check_ids(const void* ids, bool wide, Int64 count, Int64 height, Int64* first_wrong) {
  const Int64 tiles = (count + 1023) / 1024, blocks = pieces(tiles, 1, 512);
  for (Int64 block = blockIdx.x; block < blocks; block += gridDim.x) {
    Int64 first = Min::start<Int64>();
    for (Int64 tile = block; tile < tiles; tile += blocks)
      for (int k = 0; k < 4; ++k) {
        const Int64 i = tile * 1024 + k * 256 + threadIdx.x;
        if (i >= count) break;
        const Int64 id = id_at(ids, wide, i);
        if ((id < 0 || id >= height) && i < first) first = i;
      }
    first = across_block<Min>(first);
    if (threadIdx.x == 0) first_wrong[block] = first;
  }
}
// By one block after check_ids: the fault `code` of the first wrong id, if there is one. Thread 0 gets whether there is.
__device__ bool report_first(const void* ids, bool wide, Int64 count, Int64 height, const Int64* first_wrong, Int64 code,
                             Fault* fault) {
  const Int64 first = fold_parts<Min, Int64>(first_wrong, pieces((count + 1023) / 1024, 1, 512));
  if (threadIdx.x != 0 || first == Min::start<Int64>()) return false;
  *fault = {code, id_at(ids, wide, first), first, height};
  return true;
}
// The same for ids of a table. offsets: null, or [segments + 1].
__device__ void report_ids(const void* ids, bool wide, Int64 count, Int64 height, const Int64* first_wrong,
                           const Int64* offsets, Int64 segments, Fault* fault) {
  if (report_first(ids, wide, count, height, first_wrong, 1, fault) || threadIdx.x != 0) return;
  if (offsets != nullptr && offsets[segments] != count) fault->code = 4;
}
)cuda";

}  // namespace tenon::cuda
