// SPDX-License-Identifier: Apache-2.0
#include "check/checks/each_case.h"

#include "check/checks/each.h"

namespace tenon::check {

void each_case(Context& context, CaseKind last, const std::function<void(const LayerCase&)>& one, size_t most) {
  std::vector<LayerCase> cases;
  for (const LayerCase& layer_case : context.cases())
    if (layer_case.kind == CaseKind::kUsual ? cases.size() < most : layer_case.kind <= last)
      cases.push_back(layer_case);
  each(
      cases, [](const LayerCase& layer_case) { return layer_case.text(); }, one);
}
void each_case(Context& context, const std::function<void(const LayerCase&)>& one, size_t most) {
  each_case(context, CaseKind::kUsual, one, most);
}

Bench bench_of(Context& context, const LayerCase& layer_case, const BenchChoice& choice) {
  return {context.host(choice.threads, choice.checking),
          context.subject().type,
          layer_case,
          context.subject().seed,
          choice.draw,
          choice.passed};
}

}  // namespace tenon::check
