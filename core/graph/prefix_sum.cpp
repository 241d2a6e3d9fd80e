// Prefix sums: sums along the last dimension up to each element. SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

// value float [R..., n]; out [R..., n].
ValueId GraphWriter::prefix_sum(ValueId value, uint32_t flags) {
  const Spec& spec = graph_.spec(value);
  if (spec.shape.empty() || !is_float(spec.dtype))
    fail(TN_INVALID, "prefix_sum: expected floats [..., n], got ", to_string(spec));
  if ((flags & ~uint32_t{TN_SUM_EXCLUSIVE | TN_SUM_REVERSE}) != 0)
    fail(TN_INVALID, "prefix_sum: unknown flags ", flags);
  Spec result{spec.dtype, spec.shape, TN_DENSE, 0, {}};  // a feed may be ragged
  append(PrefixSum{flags}, {value});
  return output(std::move(result));
}

// Element j is in the sum of element i where i is in the sum of j with the other direction.
void PrefixSum::derive(Differentiator& gradients, const Node& node) const {
  if (!gradients.needed(node.inputs[0])) return;
  const ValueId given = gradients.gradient(node.outputs[0]);
  gradients.add(node.inputs[0], gradients.writer(node.layer).prefix_sum(given, flags ^ TN_SUM_REVERSE), node.layer);
}

}  // namespace tenon::core
