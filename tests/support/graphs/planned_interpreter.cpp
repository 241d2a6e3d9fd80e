// SPDX-License-Identifier: Apache-2.0
#include "tests/support/graphs/planned_interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tenon_tests {

using namespace tenon::host;

namespace {

size_t at(ValueId value) { return static_cast<size_t>(value); }

template <typename T>
Numbers numbers_of(const std::byte* memory, size_t count) {
  Numbers numbers(count);
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, memory + i * sizeof element, sizeof element);
    numbers[i] = static_cast<double>(element);
  }
  return numbers;
}
template <typename T>
void put(std::byte* memory, const Numbers& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto element = static_cast<T>(numbers[i]);
    std::memcpy(memory + i * sizeof element, &element, sizeof element);
  }
}

}  // namespace

PlannedInterpreter::PlannedInterpreter(const Graph& graph, std::vector<int64_t> symbols, const MemoryPlan& plan,
                                       const std::vector<bool>& placed, const std::vector<ValueId>& kept)
    : graph_(graph),
      symbols_(std::move(symbols)),
      memory_(graph.values.size(), nullptr),
      arena_(plan.bytes + 1, std::byte{0xFF}),  // never null
      own_(graph.values.size()),
      last_(graph.values.size(), 0) {
  for (size_t i = 0; i < memory_.size(); ++i) {
    const auto value = static_cast<ValueId>(i);
    if (placed[i]) {
      own_[i].assign(bytes(value) + 1, std::byte{0xFF});  // never null
      memory_[i] = own_[i].data();
    } else if (plan.offsets[i] != MemoryPlan::kNotHere) {
      if (plan.offsets[i] > plan.bytes || bytes(value) > plan.bytes - plan.offsets[i])
        throw std::out_of_range("value " + std::to_string(i) + " lies outside of the arena");
      memory_[i] = arena_.data() + plan.offsets[i];
    }
  }
  for (size_t node = 0; node < graph.nodes.size(); ++node)
    for (const auto* list : {&graph.nodes[node].inputs, &graph.nodes[node].outputs})
      for (const ValueId value : *list)
        if (value != kNoValue) last_[at(graph.root(value))] = node;
  for (const ValueId value : kept) last_[at(graph.root(value))] = graph.nodes.size();
}

std::byte* PlannedInterpreter::memory(ValueId value) const {
  std::byte* const found = memory_[at(graph_.root(value))];
  if (found == nullptr) throw std::out_of_range("value " + std::to_string(value) + " has no memory");
  return found;
}

size_t PlannedInterpreter::bytes(ValueId value) const {
  const Spec& spec = graph_.spec(value);
  return static_cast<size_t>(count_of(spec.shape, symbols_)) * tn_dtype_bytes(spec.dtype);
}

void PlannedInterpreter::write(ValueId value, const Numbers& numbers) {
  const tn_dtype dtype = graph_.spec(value).dtype;
  if (numbers.size() * tn_dtype_bytes(dtype) != bytes(value))
    throw std::out_of_range("value " + std::to_string(value) + " has another size");
  with_type(dtype, [&](auto type) { put<decltype(type)>(memory(value), numbers); });
}

Numbers PlannedInterpreter::read(ValueId value) const {
  const Spec& spec = graph_.spec(value);
  const auto count = static_cast<size_t>(count_of(spec.shape, symbols_));
  return with_type(spec.dtype, [&](auto type) { return numbers_of<decltype(type)>(memory(value), count); });
}

void PlannedInterpreter::poison(ValueId value) { std::memset(memory(value), 0xFF, bytes(value)); }

// Whether the contract allows this output to share the memory of this input.
bool PlannedInterpreter::may_share(const Node& node, size_t input, size_t output) const {
  const Pointwise* pointwise = node.pointwise();
  if (pointwise == nullptr) return false;
  const bool product = node.epilogue.has_value();
  if (product && (input < 2 || output == 0)) return false;
  size_t operand = input;
  if (product) operand = input - 2 < static_cast<size_t>(node.epilogue->product) ? input - 2 : input - 1;
  const Program& program = *pointwise->program;
  return program.inputs[operand].extent == program.output_extent(product ? output - 1 : output) &&
         tn_dtype_bytes(graph_.spec(node.inputs[input]).dtype) ==
             tn_dtype_bytes(graph_.spec(node.outputs[output]).dtype);
}

std::vector<Numbers> PlannedInterpreter::read_inputs(const Node& node) {
  std::vector<Numbers> inputs(node.inputs.size());
  std::vector<bool> had(node.inputs.size(), false);
  for (size_t output = 0; output < node.outputs.size(); ++output) {
    if (node.outputs[output] == kNoValue) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || memory(node.inputs[i]) != memory(node.outputs[output])) continue;
      if (!may_share(node, i, output)) continue;
      inputs[i] = read(node.inputs[i]);
      had[i] = true;
      ++in_place_;
      break;
    }
    if (node.epilogue && output > 0 && memory(node.outputs[output]) == memory(node.outputs[0])) ++in_place_;
  }
  for (const ValueId output : node.outputs)
    if (output != kNoValue) poison(output);
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i] != kNoValue && !had[i]) inputs[i] = read(node.inputs[i]);
  return inputs;
}

// Checks the contract of a product with an epilogue.
void PlannedInterpreter::check_epilogue(const Node& node) const {
  const Pointwise& pointwise = *node.pointwise();
  const Program& program = *pointwise.program;
  const tn_program_input& operand = program.inputs.at(static_cast<size_t>(node.epilogue->product));
  const Shape& c = graph_.spec(node.outputs[0]).shape;
  const auto size = [&](const Dim& dim) { return tn_dim_value(&dim, symbols_.data()); };
  if (operand.extent != TN_FULL || operand.kind != TN_FLOAT || size(pointwise.columns) != size(c.back()) ||
      size(pointwise.rows) * size(pointwise.columns) != count_of(c, symbols_))
    throw std::logic_error("the grid of an epilogue differs from its product");
  if (count_of(c, symbols_) == 0) return;  // no bytes: another value may begin there
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (memory(node.outputs[i]) == memory(node.outputs[0]) && program.output_extent(i - 1) != TN_FULL)
      throw std::logic_error("an output shares the memory of the product, but not its extent");
}

void PlannedInterpreter::step(size_t number) {
  const Node& node = graph_.nodes[number];
  const bool epilogue = node.epilogue.has_value();
  if (epilogue) check_epilogue(node);
  const std::vector<Numbers> outputs = evaluate(graph_, node, symbols_, read_inputs(node));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (node.outputs[i] != kNoValue) write(node.outputs[i], outputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    // A result may share the memory of the product if no later node reads the product.
    const bool product = epilogue && i == 0 && last_[at(node.outputs[0])] == number;
    const Numbers written = read(node.outputs[i]);
    const auto equal = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    if (!product && !std::equal(written.begin(), written.end(), outputs[i].begin(), equal))
      throw std::logic_error("two outputs of node " + std::to_string(number) + " share memory");
  }
}

// Overwrites values that are not read any more, except for memory that an output has taken over.
void PlannedInterpreter::free_after(size_t number) {
  const Node& node = graph_.nodes[number];
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ValueId value : *list) {
      if (value == kNoValue) continue;
      const ValueId root = graph_.root(value);
      if (last_[at(root)] != number || !own_[at(root)].empty()) continue;
      const bool taken = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
        return output != kNoValue && output != root && last_[at(graph_.root(output))] > number &&
               memory(output) == memory(root);
      });
      if (!taken) poison(root);
    }
}

void PlannedInterpreter::run(bool backward) {
  for (size_t number = 0; number < graph_.nodes.size(); ++number) {
    const Node& node = graph_.nodes[number];
    if (node.backward != backward) continue;
    if (!node.is<View>()) step(number);
    free_after(number);
  }
}

}  // namespace tenon_tests
