// Pooling. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tenon/base.hpp>

#include "primitives/ids.h"
#include "primitives/prelude.h"
#include "tables.h"
#include "window.h"

namespace tenon::cuda {

namespace {

// a.sizes: samples; a.table: the window, then channels. kWindows: what is made has the places of the window; else the
// elements of the images.
constexpr const char* kPoolText = R"cuda(
#define SAMPLES size_of(a.sizes[0], a.symbols)
#define CHANNELS a.table[18]
#define POSITIONS ((const int*)a.inputs[1])
// An element that is made: its sample, its place in space, its channel.
struct Pixel { Int64 sample; int number; Int64 channel; };
__device__ Pixel pixel_of(Int64 e, Int64 channels, int each) {
  const Int64 line = divide(e, channels), sample = divide(line, each);
  return {sample, (int)(line - sample * each), e - line * channels};
}
)cuda";

constexpr const char* kEachText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Window w = window_of(a.table);
  const Int64 channels = CHANNELS;
  const int images = elements_of(w.images), places = elements_of(w.places), each = kWindows ? places : images;
  const Int64 count = SAMPLES * each * channels;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) {
    const Pixel made = pixel_of(e, channels, each);
    const F* const from = (const F*)a.inputs[0] + made.sample * (kWindows ? images : places) * channels + made.channel;
    make(a, w, e, from, channels, spot_of(kWindows ? w.places : w.images, made.number));
  }
}
)cuda";

constexpr const char* kSumText = R"cuda(
__device__ void make(const Arguments& a, const Window& w, Int64 e, const F* image, Int64 channels, const Spot& place) {
  F sum = 0;
  const int taps = elements_of(w.kernel);
  for (int tap = 0; tap < taps; ++tap) {
    const int at = element_at(w, place, spot_of(w.kernel, tap));
    if (at >= 0) sum += image[at * channels];
  }
  put((F*)a.outputs[0] + e, sum, a.requests[0]);
}
)cuda";

// The last tap belongs to the first place.
constexpr const char* kSpreadText = R"cuda(
__device__ void make(const Arguments& a, const Window& w, Int64 e, const F* results, Int64 channels, const Spot& element) {
  F sum = 0;
  for (int tap = elements_of(w.kernel) - 1; tap >= 0; --tap) {
    const int at = place_at(w, element, spot_of(w.kernel, tap));
    if (at >= 0) sum += results[at * channels];
  }
  put((F*)a.outputs[0] + e, sum, a.requests[0]);
}
)cuda";

constexpr const char* kMaxText = R"cuda(
__device__ void make(const Arguments& a, const Window& w, Int64 e, const F* image, Int64 channels, const Spot& place) {
  F largest = 0;
  int position = -1;
  const int taps = elements_of(w.kernel);
  for (int tap = 0; tap < taps; ++tap) {
    const int at = element_at(w, place, spot_of(w.kernel, tap));
    if (at < 0) continue;
    const F value = image[at * channels];
    if (position >= 0 && !(value > largest || (value != value && largest == largest))) continue;
    largest = value;
    position = at;
  }
  if (a.requests[0] != 0) put((F*)a.outputs[0] + e, largest, a.requests[0]);
  if (a.requests[1] != 0) ((int*)a.outputs[1])[e] = position;
}
)cuda";

// kernel0 and kernel1 check the positions, a.buffers[0]: the first wrong ones.
constexpr const char* kPositionsText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel0(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Window w = window_of(a.table);
  const Int64 count = SAMPLES * elements_of(w.places) * CHANNELS;
  check_ids(POSITIONS, false, count, elements_of(w.images), (Int64*)a.buffers[0]);
}
extern "C" __global__ void __launch_bounds__(256, 2) kernel1(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Window w = window_of(a.table);
  const Int64 count = SAMPLES * elements_of(w.places) * CHANNELS;
  report_first(POSITIONS, false, count, elements_of(w.images), (const Int64*)a.buffers[0], 5, a.fault);
}
)cuda";

constexpr const char* kTakeText = R"cuda(
extern "C" __global__ void __launch_bounds__(256, 2) kernel2(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Window w = window_of(a.table);
  const Int64 channels = CHANNELS;
  const int images = elements_of(w.images), places = elements_of(w.places);
  const Int64 count = SAMPLES * places * channels;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) {
    const Pixel made = pixel_of(e, channels, places);
    const Int64 at = (made.sample * images + POSITIONS[e]) * channels + made.channel;
    put((F*)a.outputs[0] + e, ((const F*)a.inputs[0])[at], a.requests[0]);
  }
}
)cuda";

// A position may be any element of its image. Those that come of a maximum lie in the window of their place, so that an
// element sums over the places whose windows have it; otherwise (STRAY, found by kernel2) a thread adds all places of a
// channel of a sample. Both sum in the order of the places.
constexpr const char* kScatterText = R"cuda(
#define STRAY ((int*)a.buffers[1])
extern "C" __global__ void __launch_bounds__(256, 2) kernel2(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Window w = window_of(a.table);
  const Int64 channels = CHANNELS;
  const int places = elements_of(w.places), parts = (int)pieces(SAMPLES * places * channels, 1024, 512);
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    int stray = 0;
    for (Int64 e = part * 256LL + threadIdx.x; e < SAMPLES * places * channels; e += parts * 256LL) {
      const Spot place = spot_of(w.places, pixel_of(e, channels, places).number);
      const Spot element = spot_of(w.images, POSITIONS[e]);
      for (int i = 0; i < 3; ++i) {
        const int from = element.at[i] - place.at[i] * w.stride[i] + w.before[i], tap = from / w.dilation[i];
        if (from < 0 || tap * w.dilation[i] != from || tap >= w.kernel[i]) stray = 1;
      }
    }
    stray = across_block<Max>(stray);
    if (threadIdx.x == 0) STRAY[part] = stray;
  }
}
extern "C" __global__ void __launch_bounds__(256, 2) kernel3(const __grid_constant__ Arguments a) {
  if (a.fault->code != 0) return;
  const Window w = window_of(a.table);
  const Int64 channels = CHANNELS;
  const int images = elements_of(w.images), places = elements_of(w.places), taps = elements_of(w.kernel);
  const bool stray = fold_parts<Max, int>(STRAY, pieces(SAMPLES * places * channels, 1024, 512)) > 0;
  const Int64 count = SAMPLES * images * channels;
  for (Int64 e = blockIdx.x * 256LL + threadIdx.x; e < count; e += gridDim.x * 256LL) {
    const Pixel made = pixel_of(e, channels, images);
    const Int64 first = made.sample * places * channels + made.channel;
    const Spot element = spot_of(w.images, made.number);
    F sum = 0;
    for (int k = stray ? 0 : taps - 1; stray ? k < places : k >= 0; k += stray ? 1 : -1) {
      const int place = stray ? k : place_at(w, element, spot_of(w.kernel, k));
      const Int64 at = first + place * channels;
      if (place >= 0 && POSITIONS[at] == made.number) sum += ((const F*)a.inputs[0])[at];
    }
    put((F*)a.outputs[0] + e, sum, a.requests[0]);
  }
}
)cuda";

}  // namespace

Kernels kernels_of(const tn_pool& pool) {
  if (!is_float(pool.dtype)) throw tn::Failure(TN_UNSUPPORTED, "dtype", "CUDA pools float32 and float64 only");
  if (pool.op < TN_POOL_SUM || pool.op > TN_POOL_TAKE)
    throw tn::Failure(TN_UNSUPPORTED, "op", "CUDA does not know this form of pooling");
  Kernels kernels;
  kernels.compute = pool.dtype;
  kernels.text = std::string(kPutText) + kWindowText + kPoolText;
  kernels.sizes = {pool.samples};
  kernels.table = numbers_of(*pool.window);
  kernels.table.push_back(pool.channels);
  kernels.inputs_count = 1;
  kernels.outputs_count = 1;
  const int64_t lines = product_of(bound_of(pool.samples, "samples"), pool.channels);
  const int64_t places = product_of(lines, place_elements(*pool.window));
  const int64_t images = product_of(lines, image_elements(*pool.window));
  if (pool.op == TN_POOL_TAKE || pool.op == TN_POOL_SCATTER) {
    kernels.text += std::string(kIdsText) + kPositionsText;
    kernels.inputs_count = 2;
    kernels.buffers = {kMostParts * sizeof(int64_t)};
    kernels.launches = {{0, pieces(places, kTile, kMostParts)}, {1, 1}};
    if (pool.op == TN_POOL_TAKE) {
      kernels.text += kTakeText;
      kernels.launches.push_back({2, pieces(places, kTile)});
      return kernels;
    }
    kernels.text += kScatterText;
    kernels.buffers.push_back(kMostParts * sizeof(int32_t));
    kernels.launches.push_back({2, pieces(places, kTile, kMostParts)});
    kernels.launches.push_back({3, pieces(images, kTile)});
    return kernels;
  }
  const bool windows = pool.op != TN_POOL_SPREAD;
  kernels.text += pool.op == TN_POOL_SUM ? kSumText : windows ? kMaxText : kSpreadText;
  kernels.text += std::string("constexpr bool kWindows = ") + (windows ? "true" : "false") + ";\n" + kEachText;
  if (pool.op == TN_POOL_MAX) kernels.outputs_count = 2;
  kernels.launches = {{0, pieces(windows ? places : images, kTile)}};
  return kernels;
}

}  // namespace tenon::cuda
