// Checks of gradients: the layer's own forward in fp64 is the function. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/check_list.h"
#include "check/layer_bench.h"

namespace tenon::check {

// Calls one(case) for each case, or the first `most`; a fault then names the case. Throws Skip if every case does.
// At most `most` of the usual cases; or also all of the other kinds up to `last`.
void each_case(Context& context, const std::function<void(const LayerCase&)>& one, size_t most = SIZE_MAX);
void each_case(Context& context, CaseKind last, const std::function<void(const LayerCase&)>& one,
               size_t most = SIZE_MAX);
// A bench of the case in a host of the context.
struct BenchChoice {
  int threads = 1;
  bool checking = false;
  Draw draw = Draw::kDrawn;
  bool passed = false;
};
[[nodiscard]] Bench bench_of(Context& context, const LayerCase& of, const BenchChoice& choice = {});
// Whether a machine computes the layer in fp64: a layer of native kernels for fp32 alone does not.
[[nodiscard]] bool offers_fp64(const Bench& bench);

void check_gradient(Context& context);
void check_request(Context& context);
void check_float32(Context& context);

}  // namespace tenon::check
