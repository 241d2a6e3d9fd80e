// A plugin of a later minor version, of which every struct is longer than this host knows: S2 of the promises about
// versions. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

// A struct as a later version may have it: with members behind those of today.
template <typename Struct>
struct Longer {
  Struct now = {};
  void (*later)() = nullptr;
  uint64_t flags = ~uint64_t{0};
  Longer() { now.size = sizeof(Longer); }
};
template <typename Struct>
Longer<Struct> longer(const Struct& from) {
  Longer<Struct> made;
  made.now = from;
  made.now.size = sizeof made;
  return made;
}

// out = exp(scale) * weight * in, with one weight.
tn_status plan(const tn_planner* planner) {
  auto spec = Longer<tn_spec>();
  const tn_dim one = tn_dim_constant(1);
  spec.now.rank = 1;
  spec.now.dims = &one;
  auto parameter = Longer<tn_parameter>();
  parameter.now.suffix = "weight";
  parameter.now.spec = &spec.now;
  parameter.now.initializer = {TN_INIT_CONSTANT, 0, 3, 0};
  if (planner->parameter(planner->self, &parameter.now) < 0) return TN_INVALID;
  const auto out = longer(*planner->inputs[0]);
  return planner->output(planner->self, 0, &out.now);
}
tn_status lower(const tn_attributes* attributes, const tn_builder* builder) {
  const tn_instruction code[] = {
      {TN_OP_INPUT, TN_FLOAT, TN_FULL, 0, 0, 0, 0},
      {TN_OP_INPUT, TN_FLOAT, TN_SCALAR, 1, 0, 0, 0},
      {TN_OP_CONSTANT, TN_FLOAT, TN_SCALAR, 0, 0, 0, std::exp(tn_float(attributes, "scale", 0))},
      {TN_OP_MUL, TN_FLOAT, TN_FULL, 0, 1, 0, 0},
      {TN_OP_MUL, TN_FLOAT, TN_FULL, 3, 2, 0, 0}};
  const tn_program_input inputs[] = {{TN_FULL, TN_FLOAT, 0}, {TN_SCALAR, TN_FLOAT, 0}};
  const tn_program_output output = {4, TN_COMPUTE};
  auto program = Longer<tn_program>();
  program.now.instructions_count = 5;
  program.now.instructions = code;
  program.now.inputs_count = 2;
  program.now.inputs = inputs;
  program.now.outputs_count = 1;
  program.now.outputs = &output;
  const tn_ref values[] = {builder->input(builder->self, 0, 0), builder->parameter(builder->self, 0)};
  auto call = Longer<tn_pointwise>();
  call.now.leading = 1;
  call.now.program = &program.now;
  call.now.inputs = values;
  tn_ref made = -1;
  if (builder->pointwise(builder->self, &call.now, &made) != TN_OK) return TN_INVALID;
  return builder->output(builder->self, 0, made);
}

class Later {
 public:
  Later() {
    in_.now.name = "in", in_.now.doc = "[samples, ...]";
    out_.now.name = "out", out_.now.doc = "as in";
    scale_.now.kind = TN_ATTR_FLOAT;
    scale_.now.name = "scale", scale_.now.doc = "an exponent";
    scale_.now.initial.kind = TN_ATTR_FLOAT;
    scale_.now.initial.count = 1;
    tn_layer_description& d = description_.now;
    d.type = "test_later", d.doc = "out = exp(scale) * weight * in";
    d.inputs_count = d.outputs_count = d.attributes_count = d.parameters_count = d.state_version = 1;
    d.inputs = inputs_, d.outputs = outputs_, d.attributes = attributes_, d.parameters = parameters_;
    layer_.now.description = &d;
    layer_.now.plan = &plan;
    layer_.now.lower = &lower;
    plugin = longer(bare_plugin("tenon.test.later"));
    plugin.now.abi.built = TN_ABI_MINOR + 1;
    plugin.now.layers = layers_;
    plugin.now.layers_count = 1;
  }
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;
  Longer<tn_plugin> plugin;

 private:
  Longer<tn_port> in_, out_;
  Longer<tn_attribute> scale_;
  Longer<tn_layer_description> description_;
  Longer<tn_layer_type> layer_;
  const tn_port *inputs_[1] = {&in_.now}, *outputs_[1] = {&out_.now};
  const tn_attribute* attributes_[1] = {&scale_.now};
  const char* parameters_[1] = {"weight"};
  const tn_layer_type* layers_[1] = {&layer_.now};
};

TEST(Growth, AHostRunsAndTrainsALaterPlugin) {
  const Later later;
  const Host host({1, {plugin_folder()}, nullptr, {}});
  host.add_plugin(&later.plugin.now);
  DataOptions x;
  x.name = "x", x.shape = {1};
  const Layer out = host.layer("test_later", {host.data(x)}, {{"scale", 0.5}}, "later");
  const Layer cost = host.layer("should_be_true", {out}, {}, "cost");
  const Parameters parameters = host.parameters({cost}, 1);
  MachineOptions options;
  options.max_samples = 2;
  options.training = options.keep_all = true;
  const Machine machine = host.machine(parameters, {cost}, options);
  const float values[] = {1, 2};
  machine.forward({{"x", {TN_F32, {2, 1}, values}}});
  EXPECT_FLOAT_EQ(static_cast<const float*>(machine.output(out).data)[1], 2 * 3 * std::exp(0.5F));
  machine.backward();
  const float before = *static_cast<const float*>(parameters.get("later.weight").data);
  host.updater("sgd", {{"learning_rate", 0.5}}).update(machine);
  EXPECT_NE(*static_cast<const float*>(parameters.get("later.weight").data), before);
}

}  // namespace

}  // namespace tenon_tests
