// The choice by measurement: minima of interleaved calls on one core, oneDNN 2.6.3 beside the device cpu, 36 shapes by
// three operations. A shape is oneDNN's where it took about an eighth less time or better; the order of its weights,
// made in each call, is part of that time. SPDX-License-Identifier: Apache-2.0
#include "choice.h"

namespace tenon::onednn {

namespace {

bool all_of(const tn_window& window, const int64_t* sizes, int64_t size) {
  for (int32_t i = 0; i < window.rank; ++i)
    if (sizes[i] != size) return false;
  return true;
}

// Processors with AVX2 and without AVX-512, measured on Zen 3.
bool is_faster_on_avx2(const Problem& p) {
  const tn_window& w = p.window;
  const bool sums = p.op == TN_CONV_WEIGHTS;
  int64_t kernel = 1;
  for (int32_t i = 0; i < w.rank; ++i) kernel *= w.kernel[i];
  // A filter for each channel; oneDNN's sums over kernels of 5x5 and more are slower.
  if (p.groups > 1 && p.channels == p.groups && p.filters == p.groups) return !sums || kernel <= 9;
  // Groups of few channels; oneDNN has no vectors for their results.
  if (p.groups > 1) return p.op != TN_CONV_RESULTS && p.channels / p.groups <= 4;
  const double weights = static_cast<double>(p.channels) * static_cast<double>(p.filters);
  // Products at each place: of few terms, or sums of many weights.
  if (kernel == 1) return sums ? weights >= 4096 : (p.op == TN_CONV_RESULTS ? p.channels : p.filters) <= 64;
  if (sums) return (p.channels >= 2 && p.channels <= 3) || weights * static_cast<double>(kernel) >= 1e6;
  return p.op == TN_CONV_IMAGES && weights * static_cast<double>(kernel) >= 2e6 && all_of(w, w.stride, 1);
}

}  // namespace

// With AVX-512 nothing was measured beside the device cpu, whose kernels are other ones there: cpu computes.
bool is_faster(const Problem& problem) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !__builtin_cpu_supports("avx512f") &&
         is_faster_on_avx2(problem);
}

}  // namespace tenon::onednn
