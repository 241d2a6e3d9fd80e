// View: the same elements in another shape.
// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "core/graph/differentiator.h"

namespace tenon::core {

// value [d...]; out `shape`, with as many elements for every size of the symbols
ValueId GraphWriter::view(ValueId value, const Shape& shape) {
  const Spec& given = graph_.spec(value);
  if (!same(elements(given.shape), elements(shape)))
    fail(TN_INVALID, "a view of ", to_string(given.shape), " as ", to_string(shape), " changes the number of elements");
  if (same(given.shape, shape)) return value;
  Spec result{given.dtype, shape, TN_DENSE, 0, {}};  // a feed may be ragged
  append(View(), {value});
  const ValueId seen = output(std::move(result));
  graph_.values[static_cast<size_t>(seen)].alias_of = graph_.root(value);
  return seen;
}

void View::derive(Differentiator& gradients, const Node& node) const {
  if (!gradients.needed(node.inputs[0])) return;
  const Shape& shape = gradients.graph().spec(node.inputs[0]).shape;
  gradients.add(node.inputs[0], gradients.writer(node.layer).view(gradients.gradient(node.outputs[0]), shape),
                node.layer);
}

}  // namespace tenon::core
