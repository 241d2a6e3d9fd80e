// Pool: sums and maxima of windows over images, and their transposed maps. SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"
#include "core/graph/window.h"

namespace tenon::core {

namespace {

// Whether every place along dimension i of the window holds an element of the images.
bool covers(const tn_window& window, int32_t i) {
  for (int64_t place = 0; place < tn_window_places(&window, i); ++place) {
    bool holds = false;
    for (int64_t j = 0; j < window.kernel[i] && !holds; ++j) {
      const int64_t at = place * window.stride[i] - window.before[i] + j * window.dilation[i];
      holds = at >= 0 && at < window.images[i];
    }
    if (!holds) return false;
  }
  return true;
}

}  // namespace

// SUM      images [N, space..., C]; out results [N, places..., C]
// SPREAD   results; out images
// MAX      images; out results, positions int32 [N, places..., C]
// SCATTER  results, positions; out images
// TAKE     images, positions; out results
std::vector<ValueId> GraphWriter::pool(int32_t op, const tn_window& window, ValueId value, ValueId positions) {
  if (op < TN_POOL_SUM || op > TN_POOL_TAKE) fail(TN_INVALID, "pool: unknown operation ", op);
  check_window("pool", window);
  const Shape images = space_of(window.images, window.rank), places = places_of(window);
  const bool reads_results = op == TN_POOL_SPREAD || op == TN_POOL_SCATTER;
  const Spec given = graph_.spec(value);
  const int64_t channels = channels_of("pool", given, reads_results ? places : images);
  const Shape results = around(given.shape[0], places, channels);
  if (op == TN_POOL_SCATTER || op == TN_POOL_TAKE) {
    const Spec& at = graph_.spec(positions);
    if (at.dtype != TN_I32 || !same(at.shape, results))
      fail(TN_INVALID, "pool: expected positions ", to_string(Spec{TN_I32, results, TN_DENSE, 0, {}}), ", got ",
           to_string(at));
  } else {
    positions = kNoValue;
  }
  if (op == TN_POOL_MAX)
    for (int32_t i = 0; i < window.rank; ++i)
      if (!covers(window, i))
        fail(TN_INVALID, "pool: a window along dimension ", i, " lies in the padding alone and has no maximum");
  append(Pool{op, window},
         positions == kNoValue ? std::vector<ValueId>{value} : std::vector<ValueId>{value, positions});
  const Shape made = reads_results ? around(given.shape[0], images, channels) : results;
  std::vector<ValueId> outputs{output({given.dtype, made, TN_DENSE, 0, {}})};
  if (op == TN_POOL_MAX) outputs.push_back(output({TN_I32, results, TN_DENSE, 0, {}}));
  return outputs;
}

void Pool::derive(Differentiator& gradients, const Node& node) const {
  const ValueId x = node.inputs[0];
  const ValueId given = gradients.gradient(node.outputs[0]);
  if (!gradients.needed(x) || given == kNoValue) return;
  GraphWriter write = gradients.writer(node.layer);
  const auto add = [&](int32_t by, ValueId positions) {
    gradients.add(x, write.pool(by, window, given, positions)[0], node.layer);
  };
  switch (op) {
    case TN_POOL_SUM:
      return add(TN_POOL_SPREAD, kNoValue);
    case TN_POOL_SPREAD:
      return add(TN_POOL_SUM, kNoValue);
    case TN_POOL_MAX:
      return add(TN_POOL_SCATTER, node.outputs[1]);
    case TN_POOL_SCATTER:
      return add(TN_POOL_TAKE, node.inputs[1]);
    default:
      return add(TN_POOL_SCATTER, node.inputs[1]);
  }
}

}  // namespace tenon::core
