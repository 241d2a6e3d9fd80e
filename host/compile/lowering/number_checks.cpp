// SPDX-License-Identifier: Apache-2.0
#include "host/compile/lowering/number_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tenon/expression.hpp>

#include "core/error.h"
#include "host/compile/lowering/lowering.h"
#include "host/plugins/callback.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/offered_table.h"

namespace tenon::host {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLowest = -3e38;  // stands for -infinity among numbers, in every compute type
constexpr double kSlack = 1e-3;    // of sums of probabilities, other rounding, and finite differences

// Returns a bound with slack outwards; sign: -1 or 1.
double loosened(double bound, double sign) {
  return std::isinf(bound) ? bound : bound + sign * kSlack * std::max(1.0, std::abs(bound));
}

// Returns a shape without the ones at its end.
Shape trimmed(Shape shape) {
  while (!shape.empty() && same(shape.back(), tn_dim_constant(1))) shape.pop_back();
  return shape;
}

tn::Logical is_other(const tn::Float& x, const Numbers& numbers) {
  const bool stepped = numbers.step > 0;
  const double low = stepped ? numbers.low : loosened(numbers.low, -1);
  const double high = stepped ? numbers.high : loosened(numbers.high, 1);
  tn::Logical other = x < low || x > high;
  if (stepped) {
    const tn::Float place = (x - numbers.low) / numbers.step;
    other = other || (x == x && !(floor(place) == place));
  }
  if (numbers.not_zero) other = other || x == 0;
  return numbers.exempt ? other && !(x == *numbers.exempt) : other;
}

// Whether a value is the constant 0, or one that was broadcast.
bool is_zero(const Program& program, int32_t value) {
  const tn_instruction& in = program.instructions[static_cast<size_t>(value)];
  if (in.op == TN_OP_SELECT) return is_zero(program, in.b) && is_zero(program, in.c);
  return in.op == TN_OP_CONSTANT && in.number == 0;
}

// Whether the operand of a program has a derivative that is not 0 everywhere.
bool is_smooth(const Program& program, size_t output, size_t input) {
  if (program.inputs[input].kind != TN_FLOAT) return false;
  std::vector<bool> given(program.outputs.size(), false);
  given[output] = true;
  const Program gradient = derive_gradient(program, given, {static_cast<int32_t>(input)});
  return !is_zero(gradient, gradient.outputs[0].value);
}

// Returns the inputs of a node from which its output `value` is computed smoothly.
std::vector<ValueId> smooth_inputs(const Node& node, ValueId value) {
  if (node.is<Gather>()) return {node.inputs[0]};
  const auto* const pointwise = node.as<Pointwise>();
  if (pointwise == nullptr) return node.inputs;
  const auto output =
      static_cast<size_t>(std::find(node.outputs.begin(), node.outputs.end(), value) - node.outputs.begin());
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (is_smooth(*pointwise->program, output, i)) inputs.push_back(node.inputs[i]);
  return inputs;
}

// Returns "0 to 1", "at least 0", "0 or 1, or -1".
std::string numbers_text(const Numbers& numbers) {
  std::string made;
  if (numbers.step > 0 && numbers.low + numbers.step == numbers.high)
    made = text(numbers.low, " or ", numbers.high);
  else if (numbers.step > 0)
    made = text(numbers.low, ", ", numbers.low + numbers.step, ", ..., ", numbers.high);
  else if (std::isinf(numbers.high))
    made = text("at least ", numbers.low);
  else if (std::isinf(numbers.low))
    made = text("at most ", numbers.high);
  else
    made = text(numbers.low, " to ", numbers.high);
  if (numbers.not_zero) made += ", but not 0";
  return numbers.exempt ? text(made, ", or ", *numbers.exempt) : made;
}

// Whether an output that holds some numbers holds no others than an input takes.
bool are_within(const Numbers& held, const Numbers& numbers) {
  const auto is_place = [&](double number) {
    const double place = (number - numbers.low) / numbers.step;
    return place == std::floor(place);
  };
  const bool fits = numbers.step == 0 || (held.step > 0 && is_place(held.low) && is_place(held.low + held.step));
  return fits && !numbers.not_zero && held.low >= numbers.low && held.high <= numbers.high;
}

// Calls the function of a type that declares the numbers of a layer.
class Declaration {
 public:
  Declaration(const LayerType& type, const Layer& layer)
      : type_(type), layer_(layer), sink_(layer_label(layer), type.tags) {}

  LayerNumbers run(const tn_layer_numbers& table) {
    const AttributesView attributes(type_.description.attributes, layer_.attributes);
    std::vector<tn_spec> specs;
    std::vector<const tn_spec*> inputs;
    specs.reserve(layer_.inputs.size());
    for (const LayerOutput& input : layer_.inputs) {
      if (input.layer != nullptr) specs.push_back(input.layer->outputs[input.output].view());
      inputs.push_back(input.layer == nullptr ? nullptr : &specs.back());
    }
    const Loan<tn_number_declarer> declarer(type_.tags, this, "declarer", sink_.who());
    declarer->inputs_count = static_cast<uint32_t>(inputs.size());
    declarer->errors = sink_.get();
    declarer->attributes = attributes.get();
    declarer->inputs = inputs.data();
    declarer->user = type_.table.user;
    declarer->input = LentFunction<Declaration, &Declaration::take>();
    declarer->output = LentFunction<Declaration, &Declaration::hold>();
    sink_.check(call_plugin(type_, sink_.who(), {Tag::kSetup, "declare"}, table.declare,
                            static_cast<const tn_number_declarer*>(declarer.get())));
    return std::move(numbers_);
  }
  ErrorSink& sink() { return sink_; }

 private:
  void take(uint32_t input, const tn_numbers* numbers) {
    if (input >= layer_.inputs.size() || layer_.inputs[input].layer == nullptr)
      fail(TN_PLUGIN_FAULT, "it declares the numbers of input ", input, ", which is absent");
    if (layer_.inputs[input].layer->outputs[layer_.inputs[input].output].shape.empty())
      fail(TN_PLUGIN_FAULT, "it declares the numbers of input ", input, ", which has no rows");
    numbers_.inputs[input] = checked(numbers);
  }
  void hold(uint32_t output, const tn_numbers* numbers) {
    if (output >= layer_.outputs.size()) fail(TN_PLUGIN_FAULT, "it declares the numbers of output ", output);
    numbers_.outputs[output] = checked(numbers);
  }
  [[nodiscard]] Numbers checked(const tn_numbers* given) const {
    if (given == nullptr || !TN_HAS(given, tn_numbers, advice)) fail(TN_PLUGIN_FAULT, "it declares null numbers");
    check_unused(
        given->flags & ~uint32_t{TN_NUMBERS_EXEMPT | TN_NUMBERS_NOT_ZERO | TN_NUMBERS_WEIGHTED | TN_NUMBERS_LABELLED},
        "flags of tn_numbers, beside the known ones,");
    if (!(given->low <= given->high) || !(given->step >= 0) || (given->step > 0 && !std::isfinite(given->low)))
      fail(TN_PLUGIN_FAULT, "it declares numbers from ", given->low, " to ", given->high, " in steps of ", given->step);
    Numbers numbers;
    numbers.low = given->low;
    numbers.high = given->high;
    numbers.step = given->step;
    numbers.not_zero = (given->flags & TN_NUMBERS_NOT_ZERO) != 0;
    if ((given->flags & TN_NUMBERS_EXEMPT) != 0) numbers.exempt = given->exempt;
    if ((given->flags & TN_NUMBERS_WEIGHTED) != 0) numbers.weight = exempting(given->weight);
    if ((given->flags & TN_NUMBERS_LABELLED) != 0) numbers.label = exempting(given->label);
    numbers.ignored = given->ignored;
    if (given->advice != nullptr) numbers.advice = given->advice;
    return numbers;
  }
  [[nodiscard]] uint32_t exempting(uint32_t input) const {
    if (input >= type_.description.inputs.size())
      fail(TN_PLUGIN_FAULT, "it declares numbers that input ", input, " exempts");
    return input;
  }

  const LayerType& type_;
  const Layer& layer_;
  ErrorSink sink_;
  LayerNumbers numbers_;
};

// Appends the nodes of a check of input number `input`. The texts are empty.
NumberCheck check_numbers(const Graph& graph, GraphWriter nodes, const std::vector<ValueId>& inputs, uint32_t input,
                          const Numbers& numbers) {
  const Shape shape = graph.spec(inputs[input]).shape;
  tn::Program program;
  const tn::Float x = program.full();
  tn::Logical other = is_other(x, numbers);
  std::vector<ValueId> operands = {inputs[input]};
  size_t leading = 1;
  const auto exempt = [&](std::optional<uint32_t> by, double number) {
    if (!by || *by >= inputs.size() || inputs[*by] == kNoValue) return;
    const ValueId value = inputs[*by];
    const size_t rank = trimmed(graph.spec(value).shape).size();
    const bool each = rank >= trimmed(shape).size();
    if (!each) leading = std::max<size_t>(rank, 1);
    const auto end = each ? shape.end() : shape.begin() + static_cast<std::ptrdiff_t>(leading);
    operands.push_back(nodes.view(value, Shape(shape.begin(), end)));
    other = other && !((each ? program.full() : program.per_row()) == number);
  };
  exempt(numbers.weight, 0);
  exempt(numbers.label, numbers.ignored);
  const tn::Float found = max_per_row(select(other, max(x, kLowest), -kInfinity));
  program.output(max_all(found));
  program.output(found);
  const std::vector<ValueId> made = nodes.pointwise(std::make_shared<Program>(Program::from(*program.get())), operands,
                                                    static_cast<int32_t>(leading));
  NumberCheck check;
  check.any = made[0];
  check.by_row = made[1];
  if (shape[0].symbol == TN_SYMBOL_SAMPLES && shape[0].offset == 0) {
    check.rows_of_sample = shape[0].coefficient;
    for (size_t i = 1; i < leading; ++i) check.rows_of_sample *= shape[i].offset;
  }
  return check;
}

// Returns the one of `parameters` on whose values `value` depends smoothly; kNoValue: none.
ValueId trained_source(const Graph& graph, ValueId value, const std::vector<ValueId>& parameters) {
  std::set<ValueId> seen;
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    if (next == kNoValue || !is_float(graph.spec(next).dtype) || !seen.insert(next).second) continue;
    if (std::find(parameters.begin(), parameters.end(), next) != parameters.end()) return next;
    const int32_t producer = graph.values[static_cast<size_t>(next)].producer;
    if (producer < 0) continue;
    const std::vector<ValueId> inputs = smooth_inputs(graph.nodes[static_cast<size_t>(producer)], next);
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return kNoValue;
}

}  // namespace

void NumberCheck::refuse(double number, int64_t row, int64_t first) const {
  const std::string place = rows_of_sample > 0    ? text("sample ", first + row / rows_of_sample)
                            : rows_of_sample == 0 ? text("row ", row)
                                                  : std::string("a row");
  if (number <= kLowest) number = -kInfinity;
  throw Error(code, text(what, ": ", place, " of the minibatch is ", number, "; ", needs), component, subject);
}

const LayerNumbers& NumberChecks::declared(const Layer& layer) {
  const auto [place, fresh] = declared_.try_emplace(&layer);
  if (!fresh || layer.is_of_host()) return place->second;
  const LayerType& type = registry_.layer(layer.type);
  const OfferedTable offered = named_extension_table(type, layer_label(layer), TN_LAYER_NUMBERS);
  const auto* const table = offered.as<tn_layer_numbers>();
  if (table != nullptr) place->second = Declaration(type, layer).run(*table);
  return place->second;
}

// Whether an output holds no other numbers than an input takes.
bool NumberChecks::are_known(const LayerOutput& output, const Numbers& numbers) {
  LayerOutput from = resolved(output);
  while (from.layer->scan_part() || from.layer->cond_part()) {  // rows that enter a scan or a branch
    const bool enters = (from.layer->scan_part() && from.layer->scan_part()->kind == ScanPart::Kind::kInput) ||
                        (from.layer->cond_part() && from.layer->cond_part()->kind == CondPart::Kind::kInput);
    if (!enters) return false;
    from = resolved(from.layer->inputs[0]);
  }
  if (from.layer->drop_rate > 0 && training_) return false;
  const LayerNumbers& held = declared(*from.layer);
  const auto known = held.outputs.find(from.output);
  return known != held.outputs.end() && are_within(known->second, numbers);
}

// What is trained leaves a few numbers, even if it begins with one of them.
void NumberChecks::refuse_trained(const Layer& layer, const std::string& port, ValueId value,
                                  const Numbers& numbers) const {
  std::vector<ValueId> parameters;
  for (const ParameterUse& use : lowered_.parameters) parameters.push_back(use.stored);
  const ValueId source = trained_source(lowered_.graph, value, parameters);
  if (source == kNoValue) return;
  fail(TN_INVALID, ComponentName{layer_label(layer)}, SubjectName{port}, "input \"", port, "\" is computed from \"",
       lowered_.graph.values[static_cast<size_t>(source)].name, "\", a trained parameter; expected ",
       numbers_text(numbers), numbers.advice.empty() ? "" : "; " + numbers.advice);
}

void NumberChecks::add(const Layer& layer, const std::vector<ValueId>& inputs, const GraphWriter& nodes) {
  const std::vector<Port>& ports = registry_.layer(layer.type).description.inputs;
  for (const auto& [input, numbers] : declared(layer).inputs) {
    const ValueId value = inputs[input];
    const LayerOutput& given = layer.inputs[input];
    if (given.layer->outputs[given.output].storage == TN_CSR || lowered_.graph.spec(value).dtype == TN_BOOL) continue;
    if (are_known(given, numbers)) continue;
    const std::string& port = port_of(ports, input).name;
    if (numbers.step > 0) refuse_trained(layer, port, value, numbers);
    NumberCheck check = check_numbers(lowered_.graph, nodes, inputs, input, numbers);
    const Layer& source = *entered(given).layer;
    const bool fed = source.data() != nullptr && layer.branch == nullptr;
    check.what = fed ? text("data layer \"", source.name, "\"") : text(layer_label(layer), ": input \"", port, "\"");
    check.needs = text(fed ? text("layer \"", layer.name, "\" needs ") : "expected ", numbers_text(numbers));
    if (!numbers.advice.empty()) check.needs += "; " + numbers.advice;
    check.code = fed ? TN_BAD_DATA : TN_INVALID;
    check.component = fed ? "" : layer_label(layer);
    check.subject = fed ? source.name : port;
    if (layer.scan != nullptr || layer.branch != nullptr) check.rows_of_sample = -1;
    lowered_.number_checks.push_back(std::move(check));
  }
}

}  // namespace tenon::host
