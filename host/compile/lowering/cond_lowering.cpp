// SPDX-License-Identifier: Apache-2.0
#include "host/compile/lowering/cond_lowering.h"

#include <memory>

namespace tenon::host {

Spec inside_of(const Branch* branch, const Graph& graph, ValueId value) {
  if (value == kNoValue) return {};
  Spec spec = graph.in_sequences(value);
  if (branch == nullptr || spec.storage != TN_RAGGED) return spec;
  uint32_t levels = 0;
  for (Dim dim = spec.shape[0]; !same(dim, branch->rows); dim = spec.outer[levels++])
    if (levels == spec.levels) return spec;  // from outside
  spec.levels = levels;
  spec.outer.resize(levels);
  if (levels == 0) spec.storage = TN_DENSE;
  return spec;
}

// Returns the value as it is around the branches of a cond.
ValueId CondLowering::around(const Cond& cond, const LayerOutput& output, ValueId value, GraphWriter& writer) {
  return cond.around == nullptr ? value : inside(*cond.around, output, value, writer);
}

// Returns the rows of `value` with these numbers if it has a row for each of `all`, else the value.
ValueId CondLowering::chosen(const Dim& all, ValueId value, ValueId rows, GraphWriter& writer) {
  const Shape& shape = graph_.spec(value).shape;
  if (shape.empty() || !same(shape[0], all)) return value;
  const auto [known, fresh] = chosen_.try_emplace({value, rows}, kNoValue);
  if (fresh) known->second = writer.gather(value, rows);
  return known->second;
}

ValueId CondLowering::inside(const Branch& branch, const LayerOutput& output, ValueId value, GraphWriter writer) {
  if (resolved(output).layer->branch.get() == &branch) return value;
  const ValueId outside = around(*branch.cond, output, value, writer);
  return chosen(branch.cond->all, outside, rows_.at(&branch), writer);
}

std::vector<ValueId> CondLowering::part(const Layer& layer, const ValueOf& value_of, GraphWriter writer) {
  if (layer.cond_part()->kind == CondPart::Kind::kInput) return {input(layer, value_of, writer)};
  return end(layer, value_of, writer);
}

ValueId CondLowering::input(const Layer& layer, const ValueOf& value_of, GraphWriter& writer) {
  const Cond& cond = *layer.cond_part()->cond;
  rows_.try_emplace(layer.branch.get(), value_of(layer.inputs[2 + layer.cond_part()->branch], false));
  const LayerOutput& of = layer.inputs[0];
  const size_t sequences = 2 + cond.branches;
  if (layer.inputs.size() == sequences) return inside(*layer.branch, of, value_of(of, false), writer);
  const ValueId value = around(cond, of, value_of(of, false), writer);
  return chosen(graph_.spec(value).shape[0], value, value_of(layer.inputs[sequences], false), writer);
}

// Puts the rows of each result in their places, with zeros elsewhere, and adds those of the branches: a row that
// several branches have is their sum.
std::vector<ValueId> CondLowering::end(const Layer& layer, const ValueOf& value_of, GraphWriter& writer) {
  const Cond& cond = *layer.cond_part()->cond;
  std::vector<ValueId> outputs;
  auto next = layer.inputs.begin() + 1 + static_cast<std::ptrdiff_t>(cond.branches);
  for (const Spec& output : layer.outputs) {
    ProgramWriter sum;
    std::vector<ValueId> placed;
    int32_t total = -1;
    for (size_t branch = 0; branch < cond.branches; ++branch, next += 2) {
      const LayerOutput &sequences = next[0], &result = next[1];
      const Layer& maker = *resolved(result).layer;
      ValueId value = value_of(result, true);
      ValueId rows = value_of(sequences.layer == nullptr ? layer.inputs[1 + branch] : sequences, false);
      if (maker.branch == nullptr || maker.branch->cond.get() != &cond)
        value = chosen(cond.all, around(cond, result, value, writer), rows, writer);
      placed.push_back(writer.scatter_add(value, rows, output.shape[0]));
      const int32_t term = sum.input(TN_FULL);
      total = branch == 0 ? term : sum.apply(TN_OP_ADD, total, term);
    }
    sum.output(total);
    outputs.push_back(placed.size() == 1 ? placed[0]
                                         : writer.pointwise(std::make_shared<Program>(sum.finish()), placed, 1)[0]);
  }
  return outputs;
}

}  // namespace tenon::host
