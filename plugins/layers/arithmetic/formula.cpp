// A layer given by a formula. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "broadcast.h"
#include "expression_text.h"

namespace tenon::arithmetic {

namespace {

using tn::Float;

constexpr uint32_t kMostVariables = 16;

// The names of the inputs in the formula.
std::vector<std::string> names_of(const tn::Attributes& attributes, uint32_t inputs) {
  if (!attributes.has("names")) {
    const std::vector<std::string> usual = {"x", "y", "z"};
    if (inputs > usual.size())
      throw tn::Failure(TN_INVALID, "names", "must name the " + std::to_string(inputs) + " inputs");
    return {usual.begin(), usual.begin() + inputs};
  }
  std::vector<std::string> names = attributes.texts("names");
  if (names.size() != inputs)
    throw tn::Failure(TN_INVALID, "names",
                      "are " + std::to_string(names.size()) + ", of " + std::to_string(inputs) + " inputs");
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    const bool word = !name.empty() && std::all_of(name.begin(), name.end(), is_part) &&
                      std::isdigit(static_cast<unsigned char>(name[0])) == 0;
    if (!word || name == "and" || name == "or" || name == "not")
      throw tn::Failure(TN_INVALID, "names", "has \"" + name + "\", which is no name");
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), name) !=
        names.begin() + static_cast<std::ptrdiff_t>(i))
      throw tn::Failure(TN_INVALID, "names", "has \"" + name + "\" twice");
  }
  return names;
}

struct Formula {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "formula",
        "The value of a formula of the inputs, element by element, such as x * tanh(log(1 + exp(x))). It has numbers, "
        "the names of the inputs, + - * / **, < <= > >= == !=, and or not, and functions: abs, clip(x, low, high), "
        "cos, erf, exp, expm1, floor, is_finite, log, log1p, max(a, b), min(a, b), pow(a, b), reciprocal, relu, "
        "round, sigmoid, sign, sin, softplus, sqrt, square, stop (without a derivative), tanh, where(c, a, b). "
        "Precedence is that of Python. A truth value is 1 or 0. Parts have names by \"a = x * y; a + a * a\". It is "
        "differentiated and fused like every other layer.");
    d.input("inputs", "[samples, ...]; at most 16", TN_PORT_VARIADIC);
    d.output("output", "the shape of the inputs, broadcast to each other");
    d.attribute(tn::string_attribute("formula").required().doc("the formula"));
    d.attribute(tn::strings_attribute("names").doc("of the inputs in the formula; x, y, z when absent"));
  }

  static void plan(tn::Planner& planner) {
    const uint32_t inputs = planner.inputs_count();
    if (inputs > kMostVariables)
      throw tn::Failure(
          TN_UNSUPPORTED, "inputs",
          "are " + std::to_string(inputs) + "; at most " + std::to_string(kMostVariables) + " are offered");
    tn::Program trial;
    std::map<std::string, Float> values;
    for (const std::string& name : names_of(planner.attributes(), inputs)) values.emplace(name, trial.full());
    trial.output(record_formula(planner.attributes().text("formula"), "formula", trial, values));
    planner.output(0, broadcast_shape(planner));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    std::vector<tn::Tensor> inputs{body.input(0)};
    while (const std::optional<tn::Tensor> next = body.optional_input(0, static_cast<uint32_t>(inputs.size())))
      inputs.push_back(*next);
    const std::vector<std::string> names = names_of(attributes, static_cast<uint32_t>(inputs.size()));
    const Operands operands = broadcast(body, std::move(inputs));
    const auto record = [&](bool spread) {
      tn::Program program;
      std::map<std::string, Float> values;
      for (size_t i = 0; i < names.size(); ++i) values.emplace(names[i], operands.declare(program, i));
      Float result = record_formula(attributes.text("formula"), "formula", program, values);
      for (size_t i = 0; spread && i < names.size(); ++i)
        result = result + 0 * to_float(is_finite(values.at(names[i])));
      program.output(result);
      return program;
    };
    tn::Program program = record(false);
    // A formula that does not read all its inputs, or none, still has their shape.
    const tn_program& recorded = *program.get();
    if (recorded.instructions[recorded.outputs[0].value].extent != TN_FULL) program = record(true);
    body.output(0, body.pointwise(program, operands.values, operands.leading).front());
  }
};

}  // namespace

void add_formula(tn::Plugin& plugin) { plugin.layer<Formula>(); }

}  // namespace tenon::arithmetic
