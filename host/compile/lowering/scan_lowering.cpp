// SPDX-License-Identifier: Apache-2.0
#include "host/compile/lowering/scan_lowering.h"

#include <algorithm>

#include "core/error.h"
#include "core/graph/loops.h"

namespace tenon::host {

std::vector<LayerRef> in_order_of_scans(const std::vector<LayerRef>& leaves) {
  std::map<const Scan*, std::vector<LayerRef>> inside;  // null: outside of all
  for (const LayerRef& leaf : leaves) {
    std::vector<LayerRef>& order = inside[leaf->scan.get()];
    if (leaf->scan_part() && leaf->scan_part()->kind == ScanPart::Kind::kScan) {
      const std::vector<LayerRef>& of = inside[leaf->scan_part()->scan.get()];
      order.insert(order.end(), of.begin(), of.end());
    }
    order.push_back(leaf);
  }
  return inside[nullptr];
}

MemoryReach::MemoryReach(const std::vector<LayerRef>& leaves) {
  for (const LayerRef& leaf : leaves) {
    std::set<const Scan*>& scans = scans_[leaf.get()];
    for (const LayerOutput& input : leaf->inputs)
      if (const auto known = scans_.find(resolved(input).layer.get()); known != scans_.end())
        scans.insert(known->second.begin(), known->second.end());
    const Scan* const of = leaf->scan_part() ? leaf->scan_part()->scan.get() : leaf->scan.get();
    for (const Scan* scan = of; scan != nullptr; scan = scan->around.get())
      if (scan->around != nullptr && scans.contains(scan->around.get())) nested_.insert(scan);
    if (leaf->scan_part() && leaf->scan_part()->kind == ScanPart::Kind::kMemory) scans.insert(of);
    if (leaf->scan_part() && leaf->scan_part()->kind == ScanPart::Kind::kScan) scans.erase(of);
  }
}

bool MemoryReach::reaches_body(const Layer& layer) const {
  const auto found = scans_.find(&layer);
  return layer.scan != nullptr && found != scans_.end() && found->second.contains(layer.scan.get());
}

int32_t ScanLowering::free_symbol() const { return next_symbol(graph_, free_symbol_); }

Dim ScanLowering::concrete(const Dim& dim) const {
  const auto known = dims_.find(dim.symbol);
  return known == dims_.end() ? dim : known->second;
}

Spec ScanLowering::concrete(Spec spec) const {
  for (Shape* const shape : {&spec.shape, &spec.outer})
    for (Dim& dim : *shape) dim = concrete(dim);
  return spec;
}

ScanLowering::Begun ScanLowering::begin(const Scan& scan, GraphWriter& writer) {
  const auto [known, fresh] = begun_.try_emplace(&scan);
  if (!fresh) return known->second;
  known->second.order = writer.step_order(concrete(scan.rows), scan.reverse, reach_.reaches(scan), free_symbol());
  known->second.loop = static_cast<int32_t>(graph_.loops.size());
  graph_.loops.push_back({known->second.order, false});
  dims_[scan.steps.symbol] = graph_.orders[static_cast<size_t>(known->second.order)].steps;
  return known->second;
}

ValueId ScanLowering::enter_rows(const Scan& scan, ValueId value, GraphWriter& writer) {
  const Dim& first = graph_.spec(value).shape.at(0);
  // The sequences of a scan inside of a branch are themselves rows of a ragged dimension.
  if (is_ragged(first) && !same(first, concrete(scan.rows)) && !same(first, concrete(scan.outer)))
    return enter_sequences(scan, value, writer);
  const int32_t order = begin(scan, writer).order;
  const auto [known, fresh] = rows_.try_emplace({value, order}, kNoValue);
  if (fresh) known->second = writer.to_steps(value, order);
  return known->second;
}

ValueId ScanLowering::enter_sequences(const Scan& scan, ValueId value, GraphWriter& writer) {
  const int32_t order = begin(scan, writer).order, source = graph_.spec(value).shape[0].symbol;
  const auto [known, fresh] = sequences_.try_emplace({value, order}, kNoValue);
  if (fresh) known->second = writer.to_step_rows(value, order, free_symbol());
  for (const auto& [symbol, seen] : scan.seen)
    if (same(concrete(tn_dim_symbol(symbol)), tn_dim_symbol(source)))
      dims_[seen.symbol] = graph_.spec(known->second).shape[0];
  return known->second;
}

ValueId ScanLowering::enter(const Scan& scan, ValueId value, GraphWriter& writer) {
  const Shape& shape = graph_.spec(value).shape;
  if (shape.empty() || shape[0].symbol == TN_SYMBOL_NONE) return value;
  return is_ragged(shape[0]) && !same(shape[0], concrete(scan.outer)) ? enter_sequences(scan, value, writer)
                                                                      : enter_rows(scan, value, writer);
}

ValueId ScanLowering::around(const Scan& scan, const LayerOutput& output, ValueId value, GraphWriter& writer) {
  return scan.around == nullptr ? value : inside(*scan.around, output, value, writer);
}

ValueId ScanLowering::inside(const Scan& scan, const LayerOutput& output, ValueId value, GraphWriter writer) {
  if (resolved(output).layer->scan.get() == &scan) return value;
  return enter(scan, around(scan, output, value, writer), writer);
}

std::vector<ValueId> ScanLowering::part(const Layer& layer, const ValueOf& value_of, GraphWriter writer) {
  const LayerOutput& first = layer.inputs.at(0);
  switch (layer.scan_part()->kind) {
    case ScanPart::Kind::kInput:
      return {enter_rows(*layer.scan, around(*layer.scan, first, value_of(first, false), writer), writer)};
    case ScanPart::Kind::kMemory:
      if (first.layer == nullptr) return {memory(layer, kNoValue, writer)};
      return {memory(layer, around(*layer.scan, first, value_of(first, true), writer), writer)};
    default:
      return end(layer, value_of, writer);
  }
}

ValueId ScanLowering::memory(const Layer& layer, ValueId initial, GraphWriter& writer) {
  const Begun begun = begin(*layer.scan, writer);
  const double value = layer.scan_part()->initial_value;
  Spec spec{writer.compute(), layer.outputs[0].shape, TN_DENSE, 0, {}};
  for (Spec carried : layer.carried) {
    carried.dtype = writer.compute();
    initial = graph_.add_external(carried, layer.name);
    carried_of_[&layer] = carried_.size();
    carried_.push_back({initial, kNoValue});
  }
  if (initial == kNoValue && value != 0) {
    Shape shape = spec.shape;
    shape[0] = concrete(layer.scan->outer);
    ProgramWriter program;
    program.output(program.expand(program.constant(value), TN_FULL));
    initial = writer.pointwise_on(std::make_shared<Program>(program.finish()), {}, shape, 1)[0];
  }
  spec.shape.erase(spec.shape.begin());
  return writer.memory(begun.loop, spec, initial);
}

std::vector<ValueId> ScanLowering::end(const Layer& layer, const ValueOf& value_of, GraphWriter& writer) {
  const ScanPart& part = *layer.scan_part();
  const Scan& scan = *part.scan;
  const int32_t loop = begin(scan, writer).loop;
  const size_t first = 1 + part.results;
  std::vector<ValueId> outputs(part.results, kNoValue);
  for (size_t i = first; i < layer.inputs.size(); i += 2) {
    const LayerOutput& left = layer.inputs[i + 1];
    const ValueId next = inside(scan, left, value_of(left, true), writer);
    outputs.push_back(writer.end_memory(value_of(layer.inputs[i], false), next));
    if (const auto found = carried_of_.find(layer.inputs[i].layer.get()); found != carried_of_.end())
      carried_[found->second].next = outputs.back();
  }
  if (layer.inputs.size() > first) {
    const LoopFault fault = end_loop(graph_, loop);
    if (!fault.reason.empty())
      fail(TN_UNSUPPORTED, ComponentName{text("layer \"", graph_.layers[static_cast<size_t>(fault.layer)], "\"")},
           "it lies on a way from a memory of scan \"", scan.name, "\" to the next step, and its ", fault.operation,
           " ", fault.reason);
  }
  for (size_t i = 0; i < part.results; ++i) {
    const LayerOutput& result = layer.inputs[1 + i];
    outputs[i] = writer.from_steps(inside(scan, result, value_of(result, false), writer));
  }
  return outputs;
}

}  // namespace tenon::host
