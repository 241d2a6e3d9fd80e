// Programs: topologies as operators in blocks. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_program.hpp>

#include "core.h"

namespace tenon_python {

namespace {

using tenon::Block;
using tenon::Operator;
using tenon::Parameter;
using tenon::Program;
using tenon::Variable;
using tenon::Variables;
using ByPort = std::vector<std::pair<std::string, Variables>>;

tenon::CloneOptions clone_options(const tenon::Renames& layers, const tenon::Renames& parameters) {
  tenon::CloneOptions options;
  options.layers = layers;
  options.parameters = parameters;
  return options;
}

void bind_variables(nb::module_& module) {
  nb::class_<Variable>(module, "Variable")
      .def("name", &Variable::name)
      .def("number", &Variable::number)
      .def("block", &Variable::block)
      .def("op", &Variable::op)
      .def("is_parameter", &Variable::is_parameter)
      .def("as_parameter", [](const Variable& variable) { return Parameter(variable.program(), variable.number()); })
      .def("same", [](const Variable& a, const Variable& b) { return a == b; })
      .def("layer", [](const Variable& variable) { return variable.layer(); });
  nb::class_<Parameter, Variable>(module, "Parameter")
      .def("shape", [](const Parameter& parameter) { return parameter.shape(); })
      .def("is_buffer", &Parameter::is_buffer)
      .def("attributes", [](const Parameter& parameter) { return dict_of(parameter.attributes()); })
      .def("users", &Parameter::users);
}

void bind_operators(nb::module_& module) {
  nb::class_<Operator>(module, "Operator")
      .def("name", &Operator::name)
      .def("number", &Operator::number)
      .def("type", &Operator::type)
      .def("block", &Operator::block)
      .def("same", [](const Operator& a, const Operator& b) { return a == b; })
      .def("inputs", &Operator::inputs)
      .def("parameters", &Operator::parameters)
      .def("outputs", &Operator::outputs)
      .def("attributes", [](const Operator& op) { return dict_of(op.attributes()); })
      .def("blocks", &Operator::blocks);
}

// Calls add, append_op or prepend_op, with options that Python gives.
template <typename Add>
auto adding(Add add) {
  return [add](const Block& block, const std::string& type, const ByPort& inputs, const ByPort& outputs,
               const nb::dict& attributes, const std::string& name) {
    const tenon::OperatorOptions options{type, inputs, outputs, attributes_from(attributes), name};
    return unlocked([&] { return (block.*add)(options); });
  };
}

void bind_blocks(nb::module_& module) {
  nb::class_<Block>(module, "Block")
      .def("number", &Block::number)
      .def("parent", &Block::parent)
      .def("info",
           [](const Block& block) {
             const tenon::BlockInfo& info = block.info();
             return nb::make_tuple(info.kind, info.name, info.branch);
           })
      .def("same", [](const Block& a, const Block& b) { return a == b; })
      .def("ops", &Block::ops)
      .def("variables", &Block::variables)
      .def("find", &Block::find)
      .def("create_var", &Block::create_var)
      .def(
          "create_parameter",
          [](const Block& block, const std::string& name, const std::optional<std::vector<int64_t>>& shape,
             const nb::dict& attributes) { return block.create_parameter(name, shape, attributes_from(attributes)); },
          nb::arg("name"), nb::arg("shape").none(), nb::arg("attributes"))
      .def("append_op", adding(&Block::append_op))
      .def("prepend_op", adding(&Block::prepend_op))
      .def("input", &Block::input)
      .def("memory", [](const Block& block, const std::vector<int64_t>& shape,
                        double value) { return block.memory(shape, value); })
      .def("memory_from", [](const Block& block, const Variable& initial) { return block.memory(initial); })
      .def("next", &Block::next)
      .def("output", &Block::output)
      .def("left", &Block::left);
}

}  // namespace

void bind_program(nb::module_& module) {
  bind_variables(module);
  bind_operators(module);
  bind_blocks(module);
  nb::class_<Program>(module, "Program")
      .def(nb::init<const tenon::Host&>())
      .def(nb::init<const tenon::Layers&>())
      .def_static("load", [](const tenon::Host& host,
                             const std::string& path) { return unlocked([&] { return Program::load(host, path); }); })
      .def("global_block", &Program::global_block)
      .def("current_block", &Program::current_block)
      .def("blocks", &Program::blocks)
      .def("find", &Program::find)
      .def("add_data", &Program::add_data)
      .def("create_step_block",
           [](const Program& program, const Variables& over, bool reverse, const std::string& name) {
             tenon::ScanOptions options;
             options.reverse = reverse, options.name = name;
             return program.create_step_block(over, options);
           })
      .def("create_branch_block",
           [](const Program& program, const Variable& choice, uint32_t cases, const std::string& name) {
             return program.create_branch_block(choice, cases, name);
           })
      .def("create_branch_block_beside",
           [](const Program& program, const Block& beside) { return program.create_branch_block(beside); })
      .def("rollback", &Program::rollback)
      .def("prune", &Program::prune)
      .def("clone",
           [](const Program& program, const tenon::Renames& layers, const tenon::Renames& parameters) {
             return unlocked([&] { return program.clone(clone_options(layers, parameters)); });
           })
      .def("ends", &Program::ends)
      .def("print", &Program::print)
      .def("save", &Program::save)
      .def("parameters", [](const Program& program, const Variables& outputs, uint64_t seed) {
        return unlocked([&] { return program.parameters(outputs, seed); });
      });
}

}  // namespace tenon_python
