// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_layers.h"

#include <tenon/plugin.hpp>
#include <vector>

#include "tests/support/row_layers.h"

namespace tenon_tests {

namespace {

tn_port port(const char* name, const char* doc, uint32_t flags) { return {sizeof(tn_port), flags, name, doc}; }

tn_attribute attribute(const char* name, int32_t kind, const char* doc, uint32_t flags = TN_ATTR_REQUIRED) {
  tn_attribute made = {};
  made.size = sizeof made;
  made.kind = kind;
  made.name = name;
  made.doc = doc;
  made.flags = flags;
  return made;
}

tn_spec spec_of(const std::vector<tn_dim>& dims) {
  tn_spec spec = {};
  spec.size = sizeof spec;
  spec.rank = static_cast<int32_t>(dims.size());
  spec.dims = dims.data();
  return spec;
}

tn_status plan_input(const tn_planner* planner) {
  std::vector<tn_dim> stored{tn_dim_constant(tn_int(planner->attributes, "rows", 1))};
  std::vector<tn_dim> picked{planner->inputs[0]->dims[0]};
  if (const tn_value* shape = tn_find(planner->attributes, "shape"))
    for (uint32_t i = 0; i < shape->count; ++i) {
      stored.push_back(tn_dim_constant(shape->as.ints[i]));
      picked.push_back(tn_dim_constant(shape->as.ints[i]));
    }
  const tn_spec parameter_spec = spec_of(stored);
  tn_parameter parameter = {};
  parameter.size = sizeof parameter;
  parameter.suffix = "values";
  parameter.spec = &parameter_spec;
  if (tn_int(planner->attributes, "sparse", 0) != 0) parameter.flags = TN_PARAMETER_SPARSE_GRADIENT;
  if (planner->parameter(planner->self, &parameter) < 0) return TN_INVALID;
  const tn_spec output = spec_of(picked);
  return planner->output(planner->self, 0, &output);
}

tn_status lower_input(const tn_attributes*, const tn_builder* builder) {
  void* self = builder->self;
  builder->output(self, 0, builder->gather(self, builder->parameter(self, 0), builder->input(self, 0, 0)));
  return builder->status(self);
}

tn_status plan_cost(const tn_planner* planner) {
  const std::vector<tn_dim> samples{planner->inputs[0]->dims[0]};
  const tn_spec output = spec_of(samples);
  return planner->output(planner->self, 0, &output);
}

tn_status lower_cost(const tn_attributes*, const tn_builder* builder) {
  const tn_instruction code[] = {{TN_OP_INPUT, TN_FLOAT, 0, 0, -1, -1, 0},
                                 {TN_OP_INPUT, TN_FLOAT, 0, 1, -1, -1, 0},
                                 {TN_OP_MUL, TN_FLOAT, 0, 0, 1, -1, 0},
                                 {TN_OP_REDUCE_SUM, TN_FLOAT, TN_PER_ROW, 2, -1, -1, 0}};
  const tn_program_input inputs[] = {{TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}};
  const tn_program_output outputs[] = {{3, TN_COMPUTE}};
  tn_program program = {sizeof program, 4, code, 2, 1, inputs, outputs};
  void* self = builder->self;
  const tn_ref refs[] = {builder->input(self, 0, 0), builder->input(self, 1, 0)};
  const tn_pointwise call = {sizeof call, 1, &program, refs, nullptr};
  tn_ref sum = -1;
  builder->pointwise(self, &call, &sum);
  builder->output(self, 0, sum);
  return builder->status(self);
}

struct Centre {
  static void describe(tn::LayerDescription& d) {
    d.type("test_centre", "value less its mean, and a moving mean");
    d.input("value", "[samples, features]");
    d.output("output", "the shape of value");
    d.attribute(tn::float_attribute("rate", 0.1).doc("share of the new mean"));
    d.parameter("mean");
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec value = planner.input_of_rank(0, 2, "[samples, features]");
    planner.buffer("mean", tn::Spec({value[1]}), tn::constant_initializer(0));
    planner.output(0, value);
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    tn::Program program;
    const tn::Float value = program.full();
    const tn::Float kept = program.per_column();
    if (!body.training()) {
      program.output(value - kept);
      body.output(0, body.pointwise(program, {body.input(0), body.buffer(0)}).front());
      return;
    }
    const double rate = attributes.number("rate");
    const tn::Float mean = sum_per_column(value) / sum_per_column(to_float(value == value));
    program.output(value - mean);
    program.output((1 - rate) * kept + rate * stop(mean));
    const std::vector<tn::Tensor> made = body.pointwise(program, {body.input(0), body.buffer(0)});
    body.output(0, made[0]);
    body.buffer_next(0, made[1]);
  }
};

// All tables of the layers; one immutable object.
struct Tables {
  tn_port ids = port("ids", "[samples] rows of the parameter", TN_PORT_INTEGER);
  tn_port value = port("value", "[samples, ...]", 0);
  tn_port weight = port("weight", "the shape of value", 0);
  tn_port output = port("output", "result", 0);
  tn_attribute rows = attribute("rows", TN_ATTR_INT, "rows of the parameter");
  tn_attribute shape = attribute("shape", TN_ATTR_INTS, "of one sample");
  tn_attribute sparse = attribute("sparse", TN_ATTR_BOOL, "the gradient of the parameter is one of rows", 0);
  const tn_port* input_inputs[1] = {&ids};
  const tn_port* cost_inputs[2] = {&value, &weight};
  const tn_port* outputs[1] = {&output};
  const tn_attribute* input_attributes[3] = {&rows, &shape, &sparse};
  const char* suffixes[1] = {"values"};
  tn_layer_description input_description = {};
  tn_layer_description cost_description = {};
  tn_layer_type input_type = {};
  tn_layer_type cost_type = {};
  const tn_layer_type* layers[6] = {&input_type,     &cost_type,    tn::layer_type<Centre>(),
                                    windows_layer(), first_layer(), positive_layer()};
  const tn_kernel* kernels[1] = {positive_kernel()};
  tn_plugin plugin = {};

  Tables() {
    input_description = {sizeof input_description,
                         TN_ROLE_LAYER,
                         "test_input",
                         "picks rows of a parameter",
                         1,
                         1,
                         input_inputs,
                         outputs,
                         3,
                         1,
                         input_attributes,
                         suffixes,
                         1,
                         0};
    cost_description = {sizeof cost_description,
                        TN_ROLE_COST,
                        "test_cost",
                        "sum of value * weight",
                        2,
                        1,
                        cost_inputs,
                        outputs,
                        0,
                        0,
                        nullptr,
                        nullptr,
                        1,
                        0};
    input_type.size = cost_type.size = sizeof(tn_layer_type);
    input_type.description = &input_description;
    input_type.plan = plan_input;
    input_type.lower = lower_input;
    cost_type.description = &cost_description;
    cost_type.plan = plan_cost;
    cost_type.lower = lower_cost;
    plugin.size = sizeof plugin;
    plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0};
    plugin.id = "tenon.test_layers";
    plugin.version = "1.0.0";
    plugin.doc = "layers of the test harness";
    plugin.license = "Apache-2.0";
    plugin.isa = "";
    plugin.layers_count = 6;
    plugin.layers = layers;
    plugin.kernels_count = 1;
    plugin.kernels = kernels;
  }
};

}  // namespace

const tn_plugin& test_layers() {
  static const Tables tables;
  return tables.plugin;
}

}  // namespace tenon_tests
