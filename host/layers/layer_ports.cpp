// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_ports.h"

namespace tenon::host {

namespace {

const char* port_of_part(const ScanPart& part, size_t number) {
  switch (part.kind) {
    case ScanPart::Kind::kInput:
      return number == 0 ? "sequences" : "over";
    case ScanPart::Kind::kMemory:
      return number == 0 ? "initial" : "over";
    case ScanPart::Kind::kScan:
      break;
  }
  if (number == 0) return "over";
  if (number <= part.results) return "results";
  return (number - part.results) % 2 == 1 ? "memories" : "next";
}

const char* port_of_part(const CondPart& part, size_t number) {
  if (part.kind == CondPart::Kind::kInput) {
    if (number < 2) return number == 0 ? "value" : "over";
    return number < 2 + part.cond->branches ? "rows" : "sequence_rows";
  }
  if (number <= part.cond->branches) return number == 0 ? "over" : "rows";
  return (number - part.cond->branches) % 2 == 1 ? "sequence_rows" : "results";
}

}  // namespace

const char* input_port(Registry& registry, const Layer& layer, size_t number) {
  if (layer.scan_part()) return port_of_part(*layer.scan_part(), number);
  if (layer.cond_part()) return port_of_part(*layer.cond_part(), number);
  return port_of(registry.layer(layer.type).description.inputs, number).name.c_str();
}

const char* output_port(Registry& registry, const Layer& layer, size_t number) {
  if (layer.scan_part() && layer.scan_part()->kind == ScanPart::Kind::kScan)
    return number < layer.scan_part()->results ? "results" : "last";
  if (layer.cond_part() && layer.cond_part()->kind == CondPart::Kind::kCond) return "results";
  if (layer.is_of_host()) return "output";
  return port_of(registry.layer(layer.type).description.outputs, number).name.c_str();
}

Values part_attributes(const Layer& layer) {
  Values result;
  if (layer.scan_part()) {
    const ScanPart& part = *layer.scan_part();
    result = {{"scan", part.scan->name}, {"reverse", part.scan->reverse}};
    if (part.kind == ScanPart::Kind::kScan) result["results"] = static_cast<int64_t>(part.results);
    if (part.kind == ScanPart::Kind::kMemory) {
      result["initial_value"] = part.initial_value;
      std::vector<int64_t> shape;
      for (size_t i = 1; i < layer.outputs[0].shape.size(); ++i) shape.push_back(layer.outputs[0].shape[i].offset);
      result["shape"] = std::move(shape);
    }
  } else if (layer.cond_part()) {
    const CondPart& part = *layer.cond_part();
    result = {{"cond", part.cond->name}, {"branches", static_cast<int64_t>(part.cond->branches)}};
    if (part.kind == CondPart::Kind::kInput) result["branch"] = static_cast<int64_t>(part.branch);
  }
  return result;
}

}  // namespace tenon::host
