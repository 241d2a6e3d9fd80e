// Tenon's public API for C++17 and later: a topology as a program of operators in blocks.
//
//   tenon::Program program(host);
//   const tenon::Variable x = program.data({"x", TN_F32, {13}});
//   const tenon::Parameter w = program.global_block().create_parameter("w", {{13, 1}}, {{"init", "normal"},
//                                                                                       {"init_std", 0.1}});
//   const tenon::Operator fc = program.current_block().append_op(
//       {"fc", {{"inputs", {x}}, {"weight", {w}}}, {}, {{"size", 1}, {"bias", false}}});
//   tenon::Parameters set = program.parameters(fc.outputs());
//
// A program is a view: its operators are layers, its variables are their outputs, and its blocks are the steps of scans
// and the branches of conds. Variable::layer gives what all other calls take, and a program can be made of any outputs.
//
// Variables, parameters, operators and blocks refer to their program, which lives as long as one of them. A call that
// fails changes nothing. One thread at a time uses a program.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_PROGRAM_HPP
#define TENON_TENON_PROGRAM_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tenon/tenon_program_state.hpp>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v0 {

class Block;
class Operator;
class Parameter;
class Program;

namespace detail {
// Refers to a part of a program by its number.
class ProgramPart {
 public:
  ProgramPart(std::shared_ptr<ProgramState> program, size_t number) : program_(std::move(program)), number_(number) {}
  [[nodiscard]] bool operator==(const ProgramPart& other) const {
    return program_ == other.program_ && number_ == other.number_;
  }
  [[nodiscard]] bool is_of(const ProgramPart& other) const { return program_ == other.program_; }
  [[nodiscard]] size_t number() const { return number_; }
  [[nodiscard]] const std::shared_ptr<ProgramState>& program() const { return program_; }

 private:
  std::shared_ptr<ProgramState> program_;
  size_t number_;
};
}  // namespace detail

// An output of an operator, or a place for one, or a parameter.
class Variable : public detail::ProgramPart {
 public:
  using ProgramPart::ProgramPart;
  // Unique in the program; "" of a variable that has none yet, and gets that of its operator.
  [[nodiscard]] const std::string& name() const { return state().name; }
  [[nodiscard]] Block block() const;
  // The operator that writes it; none before that is appended, and of parameters.
  [[nodiscard]] std::optional<Operator> op() const;
  [[nodiscard]] bool is_parameter() const { return state().parameter != nullptr; }
  // What other calls of the library take. TN_MISUSE without an operator. An operator of the type "initialize" replaces
  // the layers of a program by equal ones: take them when the program is complete.
  [[nodiscard]] const Layer& layer() const {
    if (!state().layer)
      detail::refuse(TN_MISUSE, "program", name(),
                     is_parameter() ? "\"" + name() + "\" is a parameter, which is not the output of a layer"
                                    : "variable \"" + name() + "\" has no value: no operator writes it");
    return state().layer;
  }
  // Shape, type and storage. TN_MISUSE without an operator.
  [[nodiscard]] OutputInfo info() const { return inspect_output(layer(), inspect(layer()).output); }

 protected:
  [[nodiscard]] const detail::ProgramVariable& state() const { return program()->variables[number()]; }
};
using Variables = std::vector<Variable>;

// A parameter or buffer, of the global block.
class Parameter : public Variable {
 public:
  using Variable::Variable;
  // None: not known before an operator uses it.
  [[nodiscard]] const std::optional<std::vector<int64_t>>& shape() const { return state().parameter->shape; }
  [[nodiscard]] bool is_buffer() const { return state().parameter->buffer; }
  // How it begins, and its multipliers: keys of the layers' attributes param.<path>.<key>, such as "init".
  [[nodiscard]] Attributes attributes() const;
  // The operators with it.
  [[nodiscard]] std::vector<Operator> users() const;
};

// What an operator is made of. Inputs and outputs are given by port; a parameter as the input of its path, "weight".
// Inputs of one variadic port are a list. Inputs of the port "" are in the order of the ports; then no others are
// given. Outputs that are not given are made; a given one has no operator yet. The name of the first output is that of
// the operator, further ones are called "name:1".
struct OperatorOptions {
  std::string type;
  std::vector<std::pair<std::string, Variables>> inputs = {};
  std::vector<std::pair<std::string, Variables>> outputs = {};
  Attributes attributes = {};
  std::string name = {};  // empty: that of the first output, or generated
};

// A layer, or what determines how a parameter begins (types "initialize" and "load").
class Operator : public detail::ProgramPart {
 public:
  using ProgramPart::ProgramPart;
  [[nodiscard]] const std::string& name() const { return state().name; }
  [[nodiscard]] const std::string& type() const { return state().type; }
  [[nodiscard]] Block block() const;
  // By port, in the order of the layer's inputs; absent ones are left out.
  [[nodiscard]] std::vector<std::pair<std::string, Variables>> inputs() const;
  // By path.
  [[nodiscard]] std::vector<std::pair<std::string, Parameter>> parameters() const;
  [[nodiscard]] Variables outputs() const;
  [[nodiscard]] Attributes attributes() const {
    return state().layer ? tenon::attributes(state().layer) : state().attributes;
  }
  // Those whose results it gives outside: the steps of a scan, the branches of a cond.
  [[nodiscard]] std::vector<Block> blocks() const;

 private:
  [[nodiscard]] const detail::ProgramOperator& state() const { return program()->ops[number()]; }
};

// Operators in order. All names of a program are in one namespace, and parameters in the global block, whichever block
// asks for them.
class Block : public detail::ProgramPart {
 public:
  using ProgramPart::ProgramPart;
  [[nodiscard]] std::optional<Block> parent() const {
    return state().parent ? std::optional(Block(program(), *state().parent)) : std::nullopt;
  }
  // What it is: kind, the name of the operator that stands for it outside, the number of a branch.
  [[nodiscard]] const BlockInfo& info() const { return state().info; }
  [[nodiscard]] std::vector<Operator> ops() const;
  // Those of this block, in the order of their making.
  [[nodiscard]] Variables variables() const;
  // The variable or parameter of this name, of this block or one around it. TN_NOT_FOUND if there is none.
  [[nodiscard]] Variable find(const std::string& name) const;

  // A place for the output of an operator. TN_INVALID if the name is taken.
  [[nodiscard]] Variable create_var(const std::string& name = {}) const;
  // A parameter of the global block; that of this name if there is one. shape: none: that which its first operator
  // gives it. attributes: keys of param.<path>.<key>: "init" and others of it, "rate_multiplier", "decay_multiplier".
  // TN_INVALID, naming it, if one of this name has another shape, or attributes are given for it again.
  [[nodiscard]] Parameter create_parameter(const std::string& name,
                                           const std::optional<std::vector<int64_t>>& shape = std::nullopt,
                                           const Attributes& attributes = {}) const;
  // Makes a layer: shapes are derived and checked here. It belongs to this block, or to one around it, if it reads
  // nothing of this one. In the global block also:
  //   "initialize"  outputs: a parameter; attributes: "init" and others of it, by which it begins
  //   "load"        outputs: a parameter; attributes: "path" of a model file, "name" of the parameter there (default:
  //   its
  //                 own). The values are read here, name and shape checked.
  Operator append_op(const OperatorOptions& options) const;
  // The same in front of all operators of the block. TN_INVALID if it reads a variable that one of them writes.
  Operator prepend_op(const OperatorOptions& options) const;

  // Of a block that Program::create_step_block or create_branch_block began, until Program::rollback. Input: the row of
  // each step, or the rows of the branch. The others are those of Step in tenon_scan.hpp.
  [[nodiscard]] Variable input(const Variable& variable) const;
  [[nodiscard]] Variable memory(const std::vector<int64_t>& shape, double initial_value = 0) const;
  [[nodiscard]] Variable memory(const Variable& initial) const;
  void next(const Variable& memory, const Variable& value) const;
  // States what the block gives its parent.
  void output(const Variables& results) const;
  // After rollback, of a cond after that of its last branch: what is left outside. Results, then for each memory its
  // last value.
  [[nodiscard]] Variables left() const;

 private:
  friend class Program;
  [[nodiscard]] detail::ProgramBlock& state() const { return program()->blocks[number()]; }
  [[nodiscard]] detail::OpenBlock& open() const;
  [[nodiscard]] Step& step() const;
  [[nodiscard]] Variable added(const Layer& layer) const;
  Operator add_op(const OperatorOptions& options, bool front) const;
  Operator add_beginning(const OperatorOptions& options, bool front) const;
  void begin_with(const Parameter& parameter, const Attributes& attributes) const;
};

class Program {
 public:
  explicit Program(const Host& host) : state_(std::make_shared<detail::ProgramState>(host)) {}
  // A view of a topology. `outputs` must not be empty.
  explicit Program(const Layers& outputs) : Program(Host::of(outputs.at(0))) {
    detail::take_topology(*state_, outputs);
  }
  // The program of a file that `save` wrote, or of a model file.
  static Program load(const Host& host, const std::string& path) { return Program(load_topology(host, path)); }

  [[nodiscard]] const Host& host() const { return state_->host; }
  [[nodiscard]] Block global_block() const { return {state_, 0}; }
  // The block where layer functions append: the global one, or that which was begun last.
  [[nodiscard]] Block current_block() const { return {state_, state_->current}; }
  [[nodiscard]] std::vector<Block> blocks() const;
  // The variable or parameter of this name, of any block. TN_NOT_FOUND if there is none.
  [[nodiscard]] Variable find(const std::string& name) const;
  // An operator of the type "data", of the global block.
  [[nodiscard]] Variable data(const DataOptions& options) const { return add_data(host().data(options)); }
  // The same of a data layer that exists.
  [[nodiscard]] Variable add_data(const Layer& layer) const { return global_block().added(layer); }

  // Begins a block of the current one, and makes it current: the steps of a scan over sequences of equal lengths.
  [[nodiscard]] Block create_step_block(const Variables& over, const ScanOptions& options = {}) const;
  // The first of the branches of a cond: for the values 0 to cases - 1 of `choice`; cases 0: of a predicate, for the
  // rows in which it is above 0, and for the others. name: empty: generated.
  [[nodiscard]] Block create_branch_block(const Variable& choice, uint32_t cases = 0,
                                          const std::string& name = {}) const;
  // The next branch of the same cond.
  [[nodiscard]] Block create_branch_block(const Block& beside) const;
  // Ends the current block: its parent is current. The parent gets the operator "scan", or with the last branch "cond".
  // TN_MISUSE for the global block.
  void rollback() const;

  // The layers that variables stand for.
  [[nodiscard]] static Layers layers_of(const Variables& variables);
  // The program of what some variables depend on. It shares the layers with this one.
  [[nodiscard]] Program prune(const Variables& outputs) const;
  // A program of its own, with other names. TN_MISUSE while a block is being made.
  [[nodiscard]] Program clone(const CloneOptions& options = {}) const;
  // The first output of each operator of the global block of which none is read, metrics included: the topology of
  // these is the program, but for operators inside of blocks on which nothing depends. TN_MISUSE for an empty program.
  [[nodiscard]] Layers ends() const;
  // A text for people, as tn_topology_print documents it.
  [[nodiscard]] std::string print() const { return tenon::print(ends()); }
  // Writes JSON, without values, which `load` reads.
  void save(const std::string& path) const { save_topology(ends(), path); }
  // A set for the given outputs: drawn with the seed, as initializers say, then operators "load" are applied.
  [[nodiscard]] Parameters parameters(const Variables& outputs, uint64_t seed = 0) const;

 private:
  void end_scan_block(size_t block) const;
  void end_branch(size_t block) const;
  void leave(const std::vector<size_t>& blocks, const Layer& layer) const;

  std::shared_ptr<detail::ProgramState> state_;
};

}  // namespace v0
}  // namespace tenon

#include <tenon/tenon_program_functions.hpp>
#endif
