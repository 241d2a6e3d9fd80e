// Convolutions by a kernel of its own, as products of matrices whose elements are found in the images: a reference for
// every GPU. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tenon/base.hpp>

#include "primitives/prelude.h"
#include "primitives/tile.h"
#include "tables.h"
#include "window.h"

namespace tenon::cuda {

namespace {

// a.sizes: samples; a.table: the window, then groups, channels and filters of a group, the most parts of a sum.
// Each operation is one product for each group: rows and columns of what it makes, and a sum over `depth` in its
// order. An operation defines these sizes, what it knows of a row, a column and a step of the sum, and the two factors.
constexpr const char* kProblemText = R"cuda(
struct Problem {
  Window w;
  const F *x, *y;  // the two inputs, from the first channel or filter of the group
  Int64 samples, rows, columns, depth;
  int groups, inner, outer, images, places, taps;
};
// A place, or an element of an image, of a sample; sample < 0: there is none.
struct Line { Int64 sample; Spot spot; };
__device__ Line line_of(const int* sizes, int each, Int64 line, Int64 count) {
  const Int64 sample = divide(line, each);
  return {line < count ? sample : -1, spot_of(sizes, (int)(line - sample * each))};
}
// A tap of the kernel and a channel, or filter, of the group; number < 0: there is none.
struct Tap { Spot spot; int number, channel; };
__device__ Tap tap_of(const Problem& p, int channels, Int64 line, Int64 count) {
  const int number = (int)divide(line, channels);
  return {spot_of(p.w.kernel, number), line < count ? number : -1, (int)(line - (Int64)number * channels)};
}
__device__ F image_at(const Problem& p, const F* images, const Line& place, const Tap& tap) {
  const int element = place.sample >= 0 && tap.number >= 0 ? element_at(p.w, place.spot, tap.spot) : -1;
  return element < 0 ? F(0) : images[(place.sample * p.images + element) * p.inner * p.groups + tap.channel];
}
)cuda";

// Sums over taps and channels; weights [filters, taps, channels of a group].
constexpr const char* kResultsText = R"cuda(
typedef Line Row;
typedef int Column;
typedef Tap Step;
__device__ void set_sizes(Problem& p) { p.rows = p.samples * p.places, p.columns = p.outer, p.depth = (Int64)p.taps * p.inner; }
__device__ void set_group(Problem& p, const Arguments& a, int group) {
  p.x = (const F*)a.inputs[0] + group * p.inner;
  p.y = (const F*)a.inputs[1] + group * p.columns * p.depth;
}
__device__ Row row_of(const Problem& p, Int64 i) { return line_of(p.w.places, p.places, i, p.rows); }
__device__ Column column_of(const Problem& p, Int64 j) { return j < p.columns ? (int)j : -1; }
__device__ Step step_of(const Problem& p, Int64 k, Int64 end) { return tap_of(p, p.inner, k, end); }
__device__ F left_of(const Problem& p, const Row& row, const Step& tap) { return image_at(p, p.x, row, tap); }
__device__ F right_of(const Problem& p, Column f, const Step& tap) {
  return f >= 0 && tap.number >= 0 ? p.y[((Int64)f * p.taps + tap.number) * p.inner + tap.channel] : F(0);
}
__device__ Int64 made_at(const Problem& p, int group, Int64 i, Int64 j) { return (i * p.groups + group) * p.outer + j; }
)cuda";

// Sums over taps and filters.
constexpr const char* kImagesText = R"cuda(
typedef Line Row;
typedef int Column;
typedef Tap Step;
__device__ void set_sizes(Problem& p) { p.rows = p.samples * p.images, p.columns = p.inner, p.depth = (Int64)p.taps * p.outer; }
__device__ void set_group(Problem& p, const Arguments& a, int group) {
  p.x = (const F*)a.inputs[0] + group * p.outer;
  p.y = (const F*)a.inputs[1] + group * p.columns * p.depth;
}
__device__ Row row_of(const Problem& p, Int64 i) { return line_of(p.w.images, p.images, i, p.rows); }
__device__ Column column_of(const Problem& p, Int64 j) { return j < p.columns ? (int)j : -1; }
__device__ Step step_of(const Problem& p, Int64 k, Int64 end) { return tap_of(p, p.outer, k, end); }
__device__ F left_of(const Problem& p, const Row& row, const Step& tap) {
  const int place = row.sample >= 0 && tap.number >= 0 ? place_at(p.w, row.spot, tap.spot) : -1;
  return place < 0 ? F(0) : p.x[(row.sample * p.places + place) * p.outer * p.groups + tap.channel];
}
__device__ F right_of(const Problem& p, Column c, const Step& tap) {
  return c >= 0 && tap.number >= 0 ? p.y[((Int64)tap.channel * p.taps + tap.number) * p.inner + c] : F(0);
}
__device__ Int64 made_at(const Problem& p, int group, Int64 i, Int64 j) { return (i * p.groups + group) * p.inner + j; }
)cuda";

// Sums over samples and places.
constexpr const char* kWeightsText = R"cuda(
typedef int Row;
typedef Tap Column;
struct Step { Line place; Int64 number; };
__device__ void set_sizes(Problem& p) { p.rows = p.outer, p.columns = (Int64)p.taps * p.inner, p.depth = p.samples * p.places; }
__device__ void set_group(Problem& p, const Arguments& a, int group) {
  p.x = (const F*)a.inputs[0] + group * p.inner;
  p.y = (const F*)a.inputs[1] + group * p.outer;
}
__device__ Row row_of(const Problem& p, Int64 i) { return i < p.rows ? (int)i : -1; }
__device__ Column column_of(const Problem& p, Int64 j) { return tap_of(p, p.inner, j, p.columns); }
__device__ Step step_of(const Problem& p, Int64 k, Int64 end) { return {line_of(p.w.places, p.places, k, end), k}; }
__device__ F left_of(const Problem& p, Row f, const Step& step) {
  return f >= 0 && step.place.sample >= 0 ? p.y[step.number * p.outer * p.groups + f] : F(0);
}
__device__ F right_of(const Problem& p, const Column& tap, const Step& step) { return image_at(p, p.x, step.place, tap); }
__device__ Int64 made_at(const Problem& p, int group, Int64 i, Int64 j) { return (group * p.rows + i) * p.columns + j; }
)cuda";

// A block computes 64 x 64 elements, a thread 4 x 4, over 16 of the depth at a time. kDeep: neighbouring threads read
// neighbours along the depth; else along rows and columns. A long sum has parts, whose number follows from the depth
// and the table: a.buffers[0] [parts, elements], which kernel1 adds in their order.
constexpr const char* kText = R"cuda(
constexpr int kSteps = kDeep ? 1 : 4, kLines = kDeep ? 4 : 1;
__device__ Problem problem_of(const Arguments& a) {
  Problem p;
  p.w = window_of(a.table);
  p.groups = (int)a.table[18], p.inner = (int)a.table[19], p.outer = (int)a.table[20];
  p.images = elements_of(p.w.images), p.places = elements_of(p.w.places), p.taps = elements_of(p.w.kernel);
  p.samples = size_of(a.sizes[0], a.symbols);
  set_sizes(p);
  return p;
}
__device__ Int64 parts_of(const Problem& p, const Arguments& a) { return pieces(p.depth, 256, a.table[21]); }
extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  __shared__ Tile left, right;
  Problem p = problem_of(a);
  const Int64 parts = parts_of(p, a), length = ((p.depth + parts - 1) / parts + 15) / 16 * 16;
  const Int64 down = (p.rows + 63) / 64, across = (p.columns + 63) / 64, tiles = down * across;
  const Int64 elements = p.groups * p.rows * p.columns;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int step_at = kDeep ? x : threadIdx.x / 64, line_at = kDeep ? y : threadIdx.x % 64;
  for (Int64 block = blockIdx.x; block < tiles * p.groups * parts; block += gridDim.x) {
    const Int64 product = divide(block, tiles), part = divide(product, p.groups);
    const int group = (int)(product - part * p.groups);
    const Int64 tile = block - product * tiles, high = divide(tile, across);
    const Int64 row = high * 64, column = (tile - high * across) * 64;
    const Int64 end = (part + 1) * length < p.depth ? (part + 1) * length : p.depth;
    set_group(p, a, group);
    Row rows[kLines];
    Column columns[kLines];
    for (int l = 0; l < kLines; ++l) {
      rows[l] = row_of(p, row + line_at + 16 * l);
      columns[l] = column_of(p, column + line_at + 16 * l);
    }
    F sum[4][4] = {};
    for (Int64 start = part * length; start < end; start += 16) {
      __syncthreads();  // the tiles before were read by all
      for (int s = 0; s < kSteps; ++s) {
        const int k = step_at + 4 * s;
        const Step step = step_of(p, start + k, end);
        for (int l = 0; l < kLines; ++l) {
          left[k][line_at + 16 * l] = left_of(p, rows[l], step);
          right[k][line_at + 16 * l] = right_of(p, columns[l], step);
        }
      }
      __syncthreads();
      add_terms(sum, left, right);
    }
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        const Int64 r = row + y + 16 * i, c = column + x + 16 * j;
        if (r >= p.rows || c >= p.columns) continue;
        const Int64 at = made_at(p, group, r, c);
        if (parts > 1) ((F*)a.buffers[0])[part * elements + at] = sum[i][j];
        else put((F*)a.outputs[0] + at, sum[i][j], a.requests[0]);
      }
  }
}
extern "C" __global__ void __launch_bounds__(256, 2) kernel1(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Problem p = problem_of(a);
  const Int64 parts = parts_of(p, a), elements = p.groups * p.rows * p.columns;
  if (parts == 1) return;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < elements; e += gridDim.x * 256LL) {
    F sum = 0;
    for (Int64 part = 0; part < parts; ++part) sum += ((const F*)a.buffers[0])[part * elements + e];
    put((F*)a.outputs[0] + e, sum, a.requests[0]);
  }
}
)cuda";

const char* text_of(int32_t op) {
  switch (op) {
    case TN_CONV_RESULTS:
      return kResultsText;
    case TN_CONV_IMAGES:
      return kImagesText;
    case TN_CONV_WEIGHTS:
      return kWeightsText;
    default:
      throw tn::Failure(TN_UNSUPPORTED, "op", "CUDA does not know this form of a convolution");
  }
}

constexpr int64_t kMostSumParts = 64;
constexpr int64_t kManyTiles = 512;  // enough of them to fill a GPU without parts

}  // namespace

Kernels kernels_of(const tn_conv& conv) {
  if (!is_float(conv.dtype)) throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA convolves float32 and float64 only");
  const bool sums = conv.op == TN_CONV_WEIGHTS;
  const int64_t inner = conv.channels / conv.groups, outer = conv.filters / conv.groups;
  const int64_t samples = bound_of(conv.samples, "samples"), taps = kernel_elements(*conv.window);
  Kernels kernels;
  kernels.compute = conv.dtype;
  kernels.text = std::string(kPutText) + kWindowText + kProblemText + text_of(conv.op) +
                 "constexpr bool kDeep = " + (sums ? "false" : "true") + ";\n" + kTileText + kText;
  kernels.sizes = {conv.samples};
  kernels.table = numbers_of(*conv.window);
  kernels.inputs_count = 2;
  kernels.outputs_count = 1;
  const int64_t places = product_of(samples, place_elements(*conv.window));
  const int64_t rows = sums                         ? outer
                       : conv.op == TN_CONV_RESULTS ? places
                                                    : product_of(samples, image_elements(*conv.window));
  const int64_t columns = sums ? product_of(taps, inner) : conv.op == TN_CONV_RESULTS ? outer : inner;
  const int64_t tiles =
      product_of(conv.groups, product_of(pieces(rows, 64, INT64_MAX), pieces(columns, 64, INT64_MAX)));
  const int64_t most = sums ? std::clamp<int64_t>(kManyTiles / tiles, 1, kMostSumParts) : 1;
  kernels.table.insert(kernels.table.end(), {conv.groups, inner, outer, most});
  const int64_t parts = pieces(places, 256, most);
  kernels.launches = {{0, pieces(product_of(tiles, parts), 1)}};
  if (most == 1) return kernels;
  const int64_t elements = product_of(conv.filters, columns);
  kernels.buffers = {static_cast<uint64_t>(parts * elements * tn_dtype_bytes(conv.dtype))};
  kernels.launches.push_back({1, pieces(elements, kTile)});
  return kernels;
}

}  // namespace tenon::cuda
