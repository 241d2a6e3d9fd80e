// What is behind the views of tenon_program.hpp: the layers of a program by name, and the order of its operators.
// Include <tenon/tenon_program.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_PROGRAM_STATE_HPP
#define TENON_TENON_PROGRAM_STATE_HPP

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tenon/tenon.hpp>
#include <tenon/tenon_cond.hpp>
#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_topology.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {
namespace detail {

// A parameter or buffer of a program.
struct ProgramParameter {
  std::optional<std::vector<int64_t>> shape;  // none: not known yet
  bool buffer = false;
  Attributes attributes;               // keys of param.<path>.<key>: how it begins, and its multipliers
  std::vector<size_t> users;           // operators with it
  std::string said = "of the caller";  // who determined the shape, for messages
};
struct ProgramVariable {
  std::string name;  // empty: that of its operator, which is not made yet
  size_t block = 0;
  std::optional<size_t> op;  // the operator that writes it; none before it is appended
  Layer layer;               // the output of the layer; empty of a parameter, and without an operator
  std::shared_ptr<ProgramParameter> parameter;  // null of other variables
};
struct ProgramOperator {
  std::string name, type;
  size_t block = 0;
  Layer layer;  // empty: it determines how a parameter begins
  std::vector<size_t> outputs;
  Attributes attributes;  // without a layer
  Parameters loaded;      // of the type "load"
};
// The scan or branches whose inside is being made.
struct OpenBlock {
  std::optional<Step> step;                  // of a scan
  std::optional<Cond> cond;                  // of branches
  std::vector<size_t> blocks;                // those that were begun: the steps, or branches in order
  std::vector<std::vector<size_t>> results;  // variables, by branch; of a scan one list
};
struct ProgramBlock {
  std::optional<size_t> parent;  // none of the global block
  BlockInfo info;
  std::vector<size_t> ops;          // in order
  std::shared_ptr<OpenBlock> open;  // of all branches; null: the layers inside are complete
  size_t previous = 0;              // that was current before
  std::vector<size_t> left;         // variables that it gave its parent: the results, then last values of memories
};

struct ProgramState {
  explicit ProgramState(Host on) : host(std::move(on)) { blocks.emplace_back(); }

  Host host;
  std::vector<ProgramBlock> blocks;  // 0: the global one
  std::vector<ProgramOperator> ops;
  std::vector<ProgramVariable> variables;
  std::map<std::string, size_t> values, parameters;  // variables by name
  size_t current = 0;                                // block
};

[[noreturn]] inline void refuse(tn_status code, const std::string& component, const std::string& subject,
                                const std::string& message) {
  throw Error(code, component.empty() ? message : component + ": " + message, component, subject);
}
inline std::string shown(const std::vector<int64_t>& shape) {
  std::string list;
  for (const int64_t extent : shape) list += (list.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + list + "]";
}

inline void require_free(const ProgramState& program, const std::string& name) {
  for (const auto* const map : {&program.values, &program.parameters})
    if (map->count(name) != 0)
      refuse(TN_INVALID, "program", name,
             std::string("there is a ") + (map == &program.values ? "variable" : "parameter") + " named \"" + name +
                 "\" already");
}

// The same for a name that a caller gives, which that of a scan that is being made must not be.
inline void require_new(const ProgramState& program, const std::string& name) {
  require_free(program, name);
  for (const ProgramBlock& block : program.blocks)
    if (block.open != nullptr && block.info.name == name)
      refuse(TN_INVALID, "program", name, "a block that is being made is named \"" + name + "\" already");
}

inline std::optional<size_t> find_block(const ProgramState& program, const BlockInfo& info) {
  for (size_t i = 0; i < program.blocks.size(); ++i) {
    const BlockInfo& each = program.blocks[i].info;
    if (each.kind == info.kind && each.name == info.name && each.branch == info.branch) return i;
  }
  return std::nullopt;
}
inline bool is_inside(const ProgramState& program, std::optional<size_t> block, size_t of) {
  while (block && *block != of) block = program.blocks[*block].parent;
  return block.has_value();
}

// The operators that a change adds, and the variables that it adds or completes. Nothing of the program is changed
// before `commit`, which does not fail.
class ProgramChange {
 public:
  explicit ProgramChange(ProgramState& program) : program_(program) {}

  // Adds a layer as an operator of its block. given: variables without an operator, by the output that they stand for.
  // Returns the number of the operator.
  size_t add(const Layer& layer, size_t block, const std::map<uint32_t, size_t>& given = {}) {
    const LayerInfo info = inspect(layer);
    add_inputs(layer, info);
    ProgramOperator op;
    op.name = info.name, op.type = info.type, op.block = block, op.layer = layer;
    const size_t number = program_.ops.size() + ops_.size();
    if (info.outputs == 0) require_free(info.name);
    for (uint32_t i = 0; i < info.outputs; ++i) {
      ProgramVariable variable;
      variable.name = i == 0 ? info.name : info.name + ":" + std::to_string(i);
      variable.block = block, variable.op = number, variable.layer = layer.output(i);
      const auto known = given.find(i);
      if (known == given.end() || program_.variables[known->second].name.empty()) require_free(variable.name);
      op.outputs.push_back(
          place(std::move(variable), known == given.end() ? std::nullopt : std::optional(known->second)));
    }
    add_parameters(layer, info, number);
    ops_.push_back(std::move(op));
    return number;
  }

  // Adds an operator of the global block without a layer.
  size_t add(ProgramOperator op) {
    ops_.push_back(std::move(op));
    return program_.ops.size() + ops_.size() - 1;
  }

  // Takes the memory for everything that commit appends.
  void reserve() const {
    make_room(program_.variables, variables_.size());
    make_room(program_.ops, ops_.size());
    for (const ProgramOperator& op : ops_) make_room(program_.blocks[op.block].ops, ops_.size());
  }
  // front: operators come before those of their block.
  void commit(bool front = false) {
    reserve();
    for (auto& [number, variable] : completed_) program_.variables[number] = std::move(variable);
    for (ProgramVariable& variable : variables_) program_.variables.push_back(std::move(variable));
    for (ProgramOperator& op : ops_) {
      std::vector<size_t>& order = program_.blocks[op.block].ops;
      order.insert(front ? order.begin() : order.end(), program_.ops.size());
      program_.ops.push_back(std::move(op));
    }
    for (auto& [number, parameter] : changed_) program_.variables[number].parameter = std::move(parameter);
    program_.values.merge(values_);
    program_.parameters.merge(parameters_);
  }

 private:
  void require_free(const std::string& name) const {
    detail::require_free(program_, name);
    if (values_.count(name) != 0) refuse(TN_INVALID, "program", name, "two variables are named \"" + name + "\"");
  }
  size_t place(ProgramVariable variable, std::optional<size_t> known) {
    const size_t number = known.value_or(program_.variables.size() + variables_.size());
    values_.emplace(variable.name, number);
    if (known)
      completed_.emplace(number, std::move(variable));
    else
      variables_.push_back(std::move(variable));
    return number;
  }

  // Adds inputs that the library made of itself, such as the rows that branches choose.
  void add_inputs(const Layer& layer, const LayerInfo& info) {
    for (uint32_t i = 0; i < info.inputs; ++i) {
      const std::optional<Layer> read = input(layer, i);
      if (!read) continue;
      const std::string name = inspect(*read).name;
      if (program_.values.count(name) == 0 && values_.count(name) == 0)
        add(*read, find_block(program_, inspect_block(*read)).value());
    }
  }

  void add_parameters(const Layer& layer, const LayerInfo& info, size_t op) {
    for (uint32_t i = 0; i < info.parameters; ++i) {
      const ParameterInfo declared = tenon::parameter(layer, i);
      ProgramParameter& parameter = parameter_of(declared);
      if (!parameter.shape) {
        parameter.shape = declared.shape;
        parameter.buffer = declared.buffer;
        parameter.said = "of operator \"" + info.name + "\"";
      }
      if (*parameter.shape != declared.shape || parameter.buffer != declared.buffer)
        refuse(TN_INVALID, "operator \"" + info.name + "\" (" + info.type + ")", declared.name,
               "parameter \"" + declared.name + "\" is " + (declared.buffer ? "a buffer, " : "") +
                   shown(declared.shape) + "; expected " + (parameter.buffer ? "a buffer, " : "") +
                   shown(*parameter.shape) + ", that " + parameter.said);
      parameter.users.push_back(op);
    }
  }
  // The parameter of this name as this change leaves it.
  ProgramParameter& parameter_of(const ParameterInfo& declared) {
    const auto known = program_.parameters.find(declared.name);
    if (known != program_.parameters.end()) {
      std::shared_ptr<ProgramParameter>& changed = changed_[known->second];
      if (changed == nullptr)
        changed = std::make_shared<ProgramParameter>(*program_.variables[known->second].parameter);
      return *changed;
    }
    const auto fresh = parameters_.find(declared.name);
    if (fresh != parameters_.end()) return *variables_[fresh->second - program_.variables.size()].parameter;
    ProgramVariable variable;
    variable.name = declared.name;
    variable.parameter = std::make_shared<ProgramParameter>();
    parameters_.emplace(declared.name, program_.variables.size() + variables_.size());
    variables_.push_back(std::move(variable));
    return *variables_.back().parameter;
  }

  template <typename Element>
  static void make_room(std::vector<Element>& list, size_t more) {
    if (list.capacity() - list.size() < more) list.reserve(std::max(2 * list.size(), list.size() + more));
  }

  ProgramState& program_;
  std::vector<ProgramOperator> ops_;
  std::vector<ProgramVariable> variables_;                       // added
  std::map<size_t, ProgramVariable> completed_;                  // which had no operator
  std::map<size_t, std::shared_ptr<ProgramParameter>> changed_;  // of variables
  std::map<std::string, size_t> values_, parameters_;            // added names
};

// The attributes of layers by which a parameter begins otherwise: the settings of all its users.
inline void set_beginning(std::vector<LayerSetting>& settings, const Layer& layer, const std::string& parameter,
                          const Attributes& attributes) {
  const LayerInfo info = inspect(layer);
  for (uint32_t i = 0; i < info.parameters; ++i) {
    const ParameterInfo declared = tenon::parameter(layer, i);
    if (declared.name != parameter) continue;
    const std::string prefix = "param." + declared.path + ".";
    for (const Attribute& each : tenon::attributes(layer))
      if (each.name.rfind(prefix + "init", 0) == 0) settings.push_back({info.name, each.name, std::nullopt});
    for (const Attribute& each : attributes) settings.push_back({info.name, prefix + each.name, each.value});
  }
}

// Returns a layer with the attributes that program's parameters have and no operator states yet: itself if there are
// none. make(attributes) makes it with further attributes.
template <typename Make>
Layer with_beginnings(const ProgramState& program, const Make& make) {
  Layer layer = make(Attributes());
  Attributes added;
  const uint32_t count = inspect(layer).parameters;
  for (uint32_t i = 0; i < count; ++i) {
    const ParameterInfo declared = tenon::parameter(layer, i);
    const auto known = program.parameters.find(declared.name);
    if (known == program.parameters.end()) continue;
    for (const Attribute& each : program.variables[known->second].parameter->attributes)
      added.push_back({"param." + declared.path + "." + each.name, each.value});
  }
  return added.empty() ? layer : make(added);
}

// Adds the blocks of a scan or of branches that a layer stands for, in block `parent`; those that are known stay.
inline void add_blocks_of(ProgramState& program, const Layer& layer, size_t parent) {
  const LayerInfo info = inspect(layer);
  if (!info.plugin.empty() || (info.type != "scan" && info.type != "cond")) return;
  uint32_t count = 1;
  for (const Attribute& each : tenon::attributes(layer))
    if (each.name == "branches") count = static_cast<uint32_t>(std::get<int64_t>(each.value.held()));
  for (uint32_t branch = 0; branch < count; ++branch) {
    ProgramBlock block;
    block.parent = parent;
    block.info = {info.type == "scan" ? uint32_t{TN_BLOCK_STEP} : uint32_t{TN_BLOCK_BRANCH}, info.name, branch};
    if (!find_block(program, block.info)) program.blocks.push_back(std::move(block));
  }
}

// Fills an empty program with the layers that outputs depend on.
inline void take_topology(ProgramState& program, const Layers& outputs) {
  const Layers all = layers(outputs);
  // From the last layer to the first: what stands for a block precedes the layers inside.
  for (auto layer = all.rbegin(); layer != all.rend(); ++layer)
    add_blocks_of(program, *layer, find_block(program, inspect_block(*layer)).value());
  ProgramChange change(program);
  for (const Layer& layer : all) change.add(layer, find_block(program, inspect_block(layer)).value());
  change.commit();
}

}  // namespace detail
}  // namespace v0
}  // namespace tenon
#endif
