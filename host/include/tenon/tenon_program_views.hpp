// The functions of variables, operators and blocks of tenon_program.hpp. Include <tenon/tenon_program.hpp>.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_program.hpp>  // which includes this file at its end: before the guard
#ifndef TENON_TENON_PROGRAM_VIEWS_HPP
#define TENON_TENON_PROGRAM_VIEWS_HPP

namespace tenon {
inline namespace v0 {

namespace detail {

// Returns the variable of an output that an operator reads.
inline size_t variable_of(const ProgramState& program, const Layer& read) {
  const LayerInfo info = inspect(read);
  return program.values.at(info.output == 0 ? info.name : info.name + ":" + std::to_string(info.output));
}

// call(port, variable) for each input of a layer.
template <typename Call>
void for_inputs(const ProgramState& program, const Layer& layer, Call call) {
  const uint32_t count = inspect(layer).inputs;
  for (uint32_t i = 0; i < count; ++i)
    if (const std::optional<Layer> read = tenon::input(layer, i))
      call(input_port(layer, i), variable_of(program, *read));
}

inline std::string label_of(const OperatorOptions& options) {
  return "operator" + (options.name.empty() ? "" : " \"" + options.name + "\"") + " (" + options.type + ")";
}
inline std::string number_of(size_t block) { return "block " + std::to_string(block); }

inline const std::string* text_of(const Attributes& attributes, const std::string& name) {
  for (const Attribute& each : attributes)
    if (each.name == name) return std::get_if<std::string>(&each.value.held());
  return nullptr;
}

inline void require_complete(const ProgramState& program) {
  for (size_t i = 0; i < program.blocks.size(); ++i)
    if (program.blocks[i].open != nullptr)
      refuse(TN_MISUSE, "program", number_of(i), number_of(i) + " is being made; rollback ends it");
}

// The operands of an operator that is to be made.
struct Operands {
  Layers inputs;
  std::vector<std::string> ports;  // of the inputs
  Attributes attributes;           // with the names of parameters
};

// prepended_to: the block before whose operators the operator is to stand; null: behind them.
inline Operands operands_of(const Block& block, const OperatorOptions& options, bool front) {
  Operands result;
  result.attributes = options.attributes;
  const std::string label = label_of(options);
  for (const auto& [port, variables] : options.inputs)
    for (const Variable& variable : variables) {
      if (!variable.is_of(block))
        refuse(TN_INVALID, label, port, "input \"" + port + "\": \"" + variable.name() + "\" is of another program");
      if (variable.is_parameter()) {
        result.attributes.push_back({"param." + port + ".name", variable.name()});
        continue;
      }
      const std::optional<Operator> op = variable.op();
      if (front && op && op->block() == block)
        refuse(TN_INVALID, label, port,
               "input \"" + port + "\": \"" + variable.name() + "\" is written by an operator of " +
                   number_of(block.number()) + ", behind this one");
      result.inputs.push_back(variable.layer());
      result.ports.push_back(port);
    }
  return result;
}

// Returns which variables stand for which outputs of a layer.
inline std::map<uint32_t, size_t> outputs_of(const Block& block, const OperatorOptions& options, const Layer& layer) {
  std::map<uint32_t, size_t> result;
  const LayerInfo info = inspect(layer);
  const std::string label = label_of(options);
  for (const auto& [port, variables] : options.outputs) {
    uint32_t number = 0;
    for (const Variable& variable : variables) {
      while (number < info.outputs && inspect_output(layer, number).port != port) ++number;
      if (number == info.outputs) refuse(TN_INVALID, label, port, "unknown output \"" + port + "\", or too many of it");
      const std::string name = number == 0 ? info.name : info.name + ":" + std::to_string(number);
      if (!variable.is_of(block))
        refuse(TN_INVALID, label, port, "output \"" + port + "\": \"" + variable.name() + "\" is of another program");
      if (variable.op() || variable.is_parameter())
        refuse(TN_INVALID, label, port, "output \"" + port + "\": \"" + variable.name() + "\" has a value already");
      if (!variable.name().empty() && variable.name() != name)
        refuse(
            TN_INVALID, label, port,
            "output \"" + port + "\" is called \"" + name + "\", after the operator, not \"" + variable.name() + "\"");
      if (!result.emplace(number++, variable.number()).second)
        refuse(TN_INVALID, label, port, "output \"" + port + "\" is given twice");
    }
  }
  return result;
}

// The name of an operator: its own, or that of the first variable that has one among its outputs; empty if none has.
inline std::string name_of(const OperatorOptions& options) {
  if (!options.name.empty()) return options.name;
  for (const auto& [port, variables] : options.outputs)
    for (const Variable& variable : variables)
      if (!variable.name().empty()) return variable.name();
  return {};
}

// A name that no variable has.
inline std::string unique_name(const ProgramState& program, const std::string& type) {
  for (size_t i = 0;; ++i) {
    std::string name = type + "_" + std::to_string(i);
    if (program.values.count(name) == 0 && program.parameters.count(name) == 0) {
      const bool taken = std::any_of(program.blocks.begin(), program.blocks.end(),
                                     [&](const ProgramBlock& each) { return each.info.name == name; });
      if (!taken) return name;
    }
  }
}

// Returns the parameters of a model file, checked against those that an operator "load" names.
inline Parameters loaded(const ProgramState& program, const Parameter& parameter, const OperatorOptions& options) {
  const std::string* const path = text_of(options.attributes, "path");
  const std::string* const name = text_of(options.attributes, "name");
  const std::string label = label_of(options);
  for (const Attribute& each : options.attributes)
    if (each.name != "path" && each.name != "name")
      refuse(TN_INVALID, label, each.name, "unknown attribute \"" + each.name + "\"; known: path, name");
  if (path == nullptr) refuse(TN_INVALID, label, "path", "attribute \"path\" is missing");
  Parameters set = program.host.load(*path).parameters;
  const std::string& wanted = name == nullptr ? parameter.name() : *name;
  for (const ParameterInfo& each : entries(set)) {
    if (each.name != wanted) continue;
    if (parameter.shape() && each.shape != *parameter.shape())
      refuse(TN_INVALID, label, wanted,
             *path + ": parameter \"" + wanted + "\" is " + shown(each.shape) + "; expected " +
                 shown(*parameter.shape()) + ", that of \"" + parameter.name() + "\"");
    return set;
  }
  refuse(TN_NOT_FOUND, label, wanted, *path + ": there is no parameter \"" + wanted + "\"");
}

// Replaces the layers of a program by those of the same names. Does not fail once it changes something.
inline void replace_layers(ProgramState& program, const Layers& outputs) {
  std::map<std::string, Layer> by_name;
  for (const Layer& layer : layers(outputs)) by_name.emplace(inspect(layer).name, layer);
  std::map<size_t, Layer> ops, variables;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const auto layer = by_name.find(program.ops[i].name);
    if (!program.ops[i].layer || layer == by_name.end()) continue;
    ops.emplace(i, layer->second);
    for (uint32_t k = 0; k < program.ops[i].outputs.size(); ++k)
      variables.emplace(program.ops[i].outputs[k], layer->second.output(k));
  }
  for (auto& [number, layer] : ops) program.ops[number].layer = std::move(layer);
  for (auto& [number, layer] : variables) program.variables[number].layer = std::move(layer);
}

}  // namespace detail

// ---- variables, parameters, operators

inline Block Variable::block() const { return {program(), state().block}; }
inline std::optional<Operator> Variable::op() const {
  return state().op ? std::optional(Operator(program(), *state().op)) : std::nullopt;
}

inline Attributes Parameter::attributes() const {
  for (const Operator& user : users())
    for (const auto& [path, parameter] : user.parameters()) {
      if (!(parameter == *this)) continue;
      const std::string prefix = "param." + path + ".";
      Attributes found;
      for (const Attribute& each : user.attributes())
        if (each.name.rfind(prefix, 0) == 0 && each.name != prefix + "name")
          found.push_back({each.name.substr(prefix.size()), each.value});
      if (!found.empty()) return found;
    }
  return state().parameter->attributes;
}
inline std::vector<Operator> Parameter::users() const {
  std::vector<Operator> result;
  for (const size_t op : state().parameter->users) result.emplace_back(program(), op);
  return result;
}

inline Block Operator::block() const { return {program(), state().block}; }
inline Variables Operator::outputs() const {
  Variables result;
  for (const size_t variable : state().outputs) result.emplace_back(program(), variable);
  return result;
}
inline std::vector<std::pair<std::string, Variables>> Operator::inputs() const {
  std::vector<std::pair<std::string, Variables>> result;
  if (!state().layer) return result;
  detail::for_inputs(*program(), state().layer, [&](const std::string& port, size_t variable) {
    if (result.empty() || result.back().first != port) result.emplace_back(port, Variables());
    result.back().second.emplace_back(program(), variable);
  });
  return result;
}
inline std::vector<std::pair<std::string, Parameter>> Operator::parameters() const {
  std::vector<std::pair<std::string, Parameter>> result;
  const uint32_t count = state().layer ? inspect(state().layer).parameters : 0;
  for (uint32_t i = 0; i < count; ++i) {
    const ParameterInfo info = tenon::parameter(state().layer, i);
    result.emplace_back(info.path, Parameter(program(), program()->parameters.at(info.name)));
  }
  return result;
}
inline std::vector<Block> Operator::blocks() const {
  std::vector<Block> result;
  for (size_t i = 1; i < program()->blocks.size(); ++i)
    if (program()->blocks[i].info.name == name()) result.emplace_back(program(), i);
  return result;
}

// ---- blocks

inline std::vector<Operator> Block::ops() const {
  std::vector<Operator> result;
  for (const size_t op : state().ops) result.emplace_back(program(), op);
  return result;
}
inline Variables Block::variables() const {
  Variables result;
  for (size_t i = 0; i < program()->variables.size(); ++i)
    if (program()->variables[i].block == number()) result.emplace_back(program(), i);
  return result;
}
inline Variable Block::find(const std::string& name) const {
  for (const auto* const names : {&program()->values, &program()->parameters}) {
    const auto found = names->find(name);
    if (found != names->end() && detail::is_inside(*program(), number(), program()->variables[found->second].block))
      return {program(), found->second};
  }
  detail::refuse(TN_NOT_FOUND, "program", name,
                 detail::number_of(number()) + " and those around it have no variable \"" + name + "\"");
}

inline Variable Block::create_var(const std::string& name) const {
  if (!name.empty()) detail::require_new(*program(), name);
  detail::ProgramVariable variable;
  variable.name = name;
  variable.block = number();
  program()->variables.push_back(std::move(variable));
  const size_t made = program()->variables.size() - 1;
  if (!name.empty()) program()->values.emplace(name, made);
  return {program(), made};
}

inline Parameter Block::create_parameter(const std::string& name, const std::optional<std::vector<int64_t>>& shape,
                                         const Attributes& attributes) const {
  const auto known = program()->parameters.find(name);
  if (known != program()->parameters.end()) {
    const detail::ProgramParameter& parameter = *program()->variables[known->second].parameter;
    if (shape && parameter.shape && *shape != *parameter.shape)
      detail::refuse(TN_INVALID, "program", name,
                     "parameter \"" + name + "\" has the shape " + detail::shown(*shape) + " here; expected " +
                         detail::shown(*parameter.shape) + ", that " + parameter.said);
    if (!attributes.empty())
      detail::refuse(
          TN_INVALID, "program", name,
          "attributes of parameter \"" + name + "\" are given again; an operator \"initialize\" changes them");
    return {program(), known->second};
  }
  if (name.empty()) detail::refuse(TN_INVALID, "program", "name", "a parameter needs a name");
  detail::require_new(*program(), name);
  detail::ProgramVariable variable;
  variable.name = name;
  variable.parameter = std::make_shared<detail::ProgramParameter>();
  variable.parameter->shape = shape;
  variable.parameter->attributes = attributes;
  const size_t made = program()->variables.size();
  program()->variables.push_back(std::move(variable));
  program()->parameters.emplace(name, made);
  return {program(), made};
}

inline Operator Block::append_op(const OperatorOptions& options) const { return add_op(options, false); }
inline Operator Block::prepend_op(const OperatorOptions& options) const { return add_op(options, true); }

inline Operator Block::add_op(const OperatorOptions& options, bool front) const {
  if (options.type == "initialize" || options.type == "load") return add_beginning(options, front);
  const detail::Operands operands = detail::operands_of(*this, options, front);
  const std::string name = detail::name_of(options);
  const bool in_order =
      std::all_of(operands.ports.begin(), operands.ports.end(), [](const std::string& port) { return port.empty(); });
  const std::vector<std::string> ports = in_order ? std::vector<std::string>() : operands.ports;
  const auto make = [&](const Attributes& more) {
    Attributes attributes = operands.attributes;
    attributes.insert(attributes.end(), more.begin(), more.end());
    return program()->host.layer(options.type, operands.inputs, attributes, name, nullptr, ports);
  };
  Layer layer = detail::with_beginnings(*program(), make);
  // A host counts the names that it generates, and a program that was read may have one of them.
  while (name.empty() && program()->values.count(inspect(layer).name) != 0)
    layer = detail::with_beginnings(*program(), make);
  const std::optional<size_t> block = detail::find_block(*program(), inspect_block(layer));
  if (!block || !detail::is_inside(*program(), number(), *block))
    detail::refuse(TN_INVALID, detail::label_of(options), "block",
                   "it reads variables of " + (block ? detail::number_of(*block) : "another block") +
                       ", and cannot be appended to " + detail::number_of(number()));
  detail::ProgramChange change(*program());
  const size_t made = change.add(layer, *block, detail::outputs_of(*this, options, layer));
  change.commit(front);
  return {program(), made};
}

inline Operator Block::add_beginning(const OperatorOptions& options, bool front) const {
  const std::string label = detail::label_of(options);
  if (number() != 0)
    detail::refuse(TN_INVALID, label, "block",
                   "it belongs to block 0, which has the parameters, not to " + detail::number_of(number()));
  if (!options.inputs.empty() || options.outputs.size() != 1 || options.outputs[0].second.size() != 1 ||
      !options.outputs[0].second[0].is_parameter() || !options.outputs[0].second[0].is_of(*this))
    detail::refuse(TN_INVALID, label, "outputs", "expected no inputs, and one parameter of this program as output");
  const Parameter parameter(program(), options.outputs[0].second[0].number());
  detail::ProgramOperator op;
  op.type = options.type;
  op.name = options.name.empty() ? options.type + " " + parameter.name() : options.name;
  op.outputs = {parameter.number()};
  op.attributes = options.attributes;
  if (options.type == "load") op.loaded = detail::loaded(*program(), parameter, options);
  detail::ProgramChange change(*program());
  const size_t made = change.add(std::move(op));
  change.reserve();
  if (options.type == "initialize") begin_with(parameter, options.attributes);
  change.commit(front);
  return {program(), made};
}

// Makes the parameter begin as the attributes say: in the layers that have it, or in the first one that will.
inline void Block::begin_with(const Parameter& parameter, const Attributes& attributes) const {
  if (detail::text_of(attributes, "init") == nullptr)
    detail::refuse(TN_INVALID, "operator (initialize)", "init", "attribute \"init\" is missing");
  for (const Attribute& each : attributes)
    if (each.name.rfind("init", 0) != 0)
      detail::refuse(TN_INVALID, "operator (initialize)", each.name, "unknown attribute \"" + each.name + "\"");
  detail::ProgramParameter& state = *program()->variables[parameter.number()].parameter;
  Attributes now;
  for (const Attribute& each : state.attributes)
    if (each.name.rfind("init", 0) != 0) now.push_back(each);
  now.insert(now.end(), attributes.begin(), attributes.end());
  if (!state.users.empty()) {
    detail::require_complete(*program());
    CloneOptions options;
    for (const size_t user : state.users)
      detail::set_beginning(options.settings, program()->ops[user].layer, parameter.name(), attributes);
    Layers outputs;
    for (const size_t op : program()->blocks[0].ops)
      if (program()->ops[op].layer) outputs.push_back(program()->ops[op].layer);
    detail::replace_layers(*program(), tenon::clone(outputs, options));
  }
  state.attributes = std::move(now);
}

inline detail::OpenBlock& Block::open() const {
  if (state().open == nullptr)
    detail::refuse(TN_MISUSE, "program", detail::number_of(number()),
                   detail::number_of(number()) + " is not being made");
  return *state().open;
}
inline Variable Block::added(const Layer& layer) const {
  detail::ProgramChange change(*program());
  const size_t op = change.add(layer, number());
  change.commit();
  return {program(), program()->ops[op].outputs.at(0)};
}
inline Variable Block::input(const Variable& variable) const {
  const detail::OpenBlock& block = open();
  return added(block.step ? block.step->input(variable.layer())
                          : block.cond->input(state().info.branch, variable.layer()));
}
inline Variable Block::memory(const std::vector<int64_t>& shape, double initial_value) const {
  return added(step().memory(shape, initial_value));
}
inline Variable Block::memory(const Variable& initial) const { return added(step().memory(initial.layer())); }
inline void Block::next(const Variable& memory, const Variable& value) const {
  step().next(memory.layer(), value.layer());
}
inline Step& Block::step() const {
  detail::OpenBlock& block = open();
  if (!block.step)
    detail::refuse(TN_MISUSE, "program", detail::number_of(number()),
                   detail::number_of(number()) + " is a branch; memories are of the steps of a scan");
  return *block.step;
}
inline void Block::output(const Variables& results) const {
  std::vector<size_t> numbers;
  for (const Variable& each : results) {
    if (!each.is_of(*this))
      detail::refuse(TN_INVALID, "program", each.name(), "result \"" + each.name() + "\" is of another program");
    numbers.push_back(each.number());
  }
  open().results[state().info.branch] = std::move(numbers);
}
inline Variables Block::left() const {
  Variables result;
  for (const size_t variable : state().left) result.emplace_back(program(), variable);
  return result;
}

}  // namespace v0
}  // namespace tenon
#endif
