// The cases of a layer, one after the other, and benches of them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "check/bench/layer_bench.h"
#include "check/checks/check_list.h"

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
[[nodiscard]] Bench bench_of(Context& context, const LayerCase& layer_case, const BenchChoice& choice = {});

}  // namespace tenon::check
