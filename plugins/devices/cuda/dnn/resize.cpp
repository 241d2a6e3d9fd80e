// Resizing: along each axis an element of the larger tensor reads one or two elements with weights.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <tenon/base.hpp>

#include "primitives/prelude.h"
#include "tables.h"

namespace tenon::cuda {

namespace {

// a.sizes: samples; a.table: channels, then for each of three axes its sizes `from` and `to` and where its numbers
// begin. Axes that are not there have one element and come first. Numbers of an axis: of each element of the resized
// image the first that it reads and the bits of the second's weight; then of each element that is read the first
// element that reads it and the end of those.
constexpr const char* kAxesText = R"cuda(
struct Axes { int from[3], to[3]; const Int64* numbers[3]; };
__device__ Axes axes_of(const Int64* table) {
  Axes axes;
  for (int i = 0; i < 3; ++i) {
    axes.from[i] = (int)table[1 + 3 * i], axes.to[i] = (int)table[2 + 3 * i];
    axes.numbers[i] = table + table[3 + 3 * i];
  }
  return axes;
}
// The weight with which element `o` of the resized image reads element s of the other along an axis.
__device__ double weight_of(const Axes& axes, int axis, int o, int s) {
  const Int64* const reads = axes.numbers[axis] + 2 * o;
  const double high = __longlong_as_double(reads[1]);
  return s == reads[0] ? 1 - high : s == reads[0] + 1 ? high : 0.0;
}
// The range of the elements along an axis that are summed for element `at`.
struct Range { int first, end; };
__device__ Range range_of(const Axes& axes, int axis, int at) {
  if (kTransposed) {
    const Int64* const readers = axes.numbers[axis] + 2 * axes.to[axis] + 2 * at;
    return {(int)readers[0], (int)readers[1]};
  }
  const Int64* const reads = axes.numbers[axis] + 2 * at;
  return {(int)reads[0], (int)reads[0] + (reads[1] != 0 ? 2 : 1)};
}
)cuda";

// An element sums in the order of what it reads.
constexpr const char* kResizeText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Axes axes = axes_of(a.table);
  const int* const made = kTransposed ? axes.from : axes.to;
  const int* const read = kTransposed ? axes.to : axes.from;
  const Int64 channels = a.table[0], each = (Int64)made[0] * made[1] * made[2] * channels;
  const Int64 count = size_of(a.sizes[0], a.symbols) * each;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) {
    const Int64 sample = divide(e, each);
    Int64 rest = divide(e - sample * each, channels);
    const Int64 channel = e - sample * each - rest * channels;
    int at[3];
    Range range[3];
    for (int i = 2; i >= 0; --i) {
      const Int64 next = divide(rest, made[i]);
      at[i] = (int)(rest - next * made[i]);
      range[i] = range_of(axes, i, at[i]);
      rest = next;
    }
    const F* const from = (const F*)a.inputs[0] + sample * read[0] * read[1] * read[2] * channels + channel;
    F sum = 0;
    for (int x = range[0].first; x < range[0].end; ++x)
      for (int y = range[1].first; y < range[1].end; ++y)
        for (int z = range[2].first; z < range[2].end; ++z) {
          const int other[3] = {x, y, z};
          double weight = 1;
          for (int i = 0; i < 3; ++i)
            weight *= kTransposed ? weight_of(axes, i, other[i], at[i]) : weight_of(axes, i, at[i], other[i]);
          sum += (F)weight * from[(((Int64)x * read[1] + y) * read[2] + z) * channels];
        }
    put((F*)a.outputs[0] + e, sum, a.requests[0]);
  }
}
)cuda";

int64_t bits_of(double number) {
  int64_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

// The numbers of an axis. What an element reads never comes before what the one before it reads, so that those that
// read an element follow each other.
std::vector<int64_t> numbers_of(const tn_resize& how, int32_t axis) {
  std::vector<int64_t> numbers;
  std::vector<int64_t> readers(2 * static_cast<size_t>(how.from[axis]), 0);
  const auto is_read = [&](int64_t s, int64_t o) {
    int64_t* const range = readers.data() + 2 * s;
    if (range[1] == 0) range[0] = o;
    range[1] = o + 1;
  };
  const auto last = static_cast<double>(how.from[axis] - 1);
  for (int64_t o = 0; o < how.to[axis]; ++o) {
    const double at = std::clamp(how.scale[axis] * static_cast<double>(o) + how.offset[axis], 0.0, last);
    const double low = std::floor(at), high = (how.flags & TN_RESIZE_LINEAR) != 0 ? at - low : 0.0;
    const auto first = static_cast<int64_t>(low);
    numbers.insert(numbers.end(), {first, bits_of(high)});
    is_read(first, o);
    if (high != 0) is_read(first + 1, o);
  }
  numbers.insert(numbers.end(), readers.begin(), readers.end());
  return numbers;
}

}  // namespace

Kernels kernels_of(const tn_resize_site& site) {
  if (!is_float(site.dtype)) throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA resizes float32 and float64 only");
  const tn_resize& how = *site.resize;
  if ((how.flags & ~uint32_t{TN_RESIZE_LINEAR | TN_RESIZE_TRANSPOSED}) != 0)
    throw tn::Failure(TN_UNSUPPORTED, "flags", "CUDA does not know this form of a resize");
  const bool transposed = (how.flags & TN_RESIZE_TRANSPOSED) != 0;
  tn_resize point = {};  // an axis that is not there
  point.from[0] = point.to[0] = 1;
  Kernels kernels;
  kernels.compute = site.dtype;
  kernels.table = {site.channels};
  std::vector<int64_t> all;
  int64_t elements = product_of(bound_of(site.samples, "samples"), site.channels);
  for (int32_t i = 0; i < TN_MAX_SPACE; ++i) {
    const int32_t axis = i - (TN_MAX_SPACE - how.rank);
    const tn_resize& of = axis < 0 ? point : how;
    const int32_t number = std::max(axis, 0);
    const int64_t from = of.from[number], to = of.to[number];
    if (std::max(from, to) > INT32_MAX / 2)
      throw tn::Failure(TN_UNSUPPORTED, "resize", "CUDA resizes images of less than 2^30 elements along an axis only");
    kernels.table.insert(kernels.table.end(), {from, to, 1 + 3 * TN_MAX_SPACE + static_cast<int64_t>(all.size())});
    const std::vector<int64_t> numbers = numbers_of(of, number);
    all.insert(all.end(), numbers.begin(), numbers.end());
    elements = product_of(elements, transposed ? from : to);
  }
  kernels.table.insert(kernels.table.end(), all.begin(), all.end());
  kernels.text = std::string("constexpr bool kTransposed = ") + (transposed ? "true" : "false") + ";\n" + kPutText +
                 kAxesText + kResizeText;
  kernels.sizes = {site.samples};
  kernels.inputs_count = 1;
  kernels.outputs_count = 1;
  kernels.launches = {{0, pieces(elements, kTile)}};
  return kernels;
}

}  // namespace tenon::cuda
