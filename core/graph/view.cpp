// The same elements in another shape.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon {

ValueId GraphWriter::view(ValueId value, const Shape& shape) {
  const Spec& given = graph_.spec(value);
  if (!same(elements(given.shape), elements(shape)))
    fail(TN_INVALID, "a view of ", to_string(given.shape), " as ", to_string(shape), " changes the number of elements");
  if (same(given.shape, shape)) return value;
  Spec result = given;
  result.shape = shape;
  append(View(), {value});
  const ValueId seen = output(std::move(result));
  graph_.values[static_cast<size_t>(seen)].alias_of = value;
  return seen;
}

void Differentiator::derive(const Node& node, const View& /*view*/) {
  if (!needed(node.inputs[0])) return;
  add(node.inputs[0], writer(node.layer).view(gradient(node.outputs[0]), graph_.spec(node.inputs[0]).shape),
      node.layer);
}

}  // namespace tenon
