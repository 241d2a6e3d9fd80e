// Argsort: the positions of the elements of rows in sorted order. SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

// value float [R..., n]; out int64 [R..., count], of all n elements if count is -1.
ValueId GraphWriter::argsort(ValueId value, uint32_t flags, int64_t count) {
  const Spec& spec = graph_.spec(value);
  if (spec.shape.empty() || !is_float(spec.dtype))
    fail(TN_INVALID, "argsort: expected floats [..., n], got ", to_string(spec));
  if ((flags & ~uint32_t{TN_SORT_DESCENDING}) != 0) fail(TN_INVALID, "argsort: unknown flags ", flags);
  const Dim& columns = spec.shape.back();
  if (count < -1 || (count >= 0 && (columns.symbol != TN_SYMBOL_NONE || count > columns.offset)))
    fail(TN_INVALID, "argsort: the first ", count, " of ", to_string(columns), " elements, of ", to_string(spec));
  Spec result{TN_I64, spec.shape, TN_DENSE, 0, {}};
  if (count >= 0) result.shape.back() = tn_dim_constant(count);
  append(Argsort{flags}, {value});
  return output(std::move(result));
}

// Positions are constant wherever no two elements are equal.
void Argsort::derive(Differentiator& /*gradients*/, const Node& /*node*/) const {}

}  // namespace tenon::core
