// The fully connected layer. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

enum { kInput = 0, kOutput = 0, kWeight = 0, kBias = 1 };  // ports, parameters

struct FullyConnected {
  static void describe(tn::LayerDescription& d) {
    d.type("fc",
           "Fully connected: output = x weight + bias, where x is the input flattened to [samples, D], weight is "
           "[D, size] and bias is [size]. The weight starts uniform in +-sqrt(6 / (D + size)) (Glorot and Bengio, "
           "\"Understanding the difficulty of training deep feedforward neural networks\", 2010, equation 16), the "
           "bias at 0.");
    d.input("input", "[samples, ...]; all dimensions after the first are flattened");
    d.output("output", "[samples, size]");
    d.attribute(tn::int_attribute("size").required().at_least(1).doc("number of outputs for each sample"));
    d.attribute(tn::bool_attribute("bias", true).doc("whether a bias is added"));
    d.parameter("weight");
    d.parameter("bias");
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(kInput);
    if (input.rank() == 0) throw planner.bad_input(kInput, "must have a dimension for the samples");
    const int64_t depth = planner.elements(kInput, 1);
    const int64_t size = planner.attributes().integer("size");
    planner.output(kOutput, tn::Spec({input[0], size}));
    planner.parameter("weight", tn::Spec({depth, size}), tn::glorot_uniform(depth, size));
    if (planner.attributes().flag("bias")) planner.parameter("bias", tn::Spec({size}), tn::constant_initializer(0));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor weight = body.parameter(kWeight);
    tn::Tensor x = body.input(kInput);
    if (x.spec().rank() != 2) x = x.view(tn::Spec({x.spec()[0], weight.spec()[0]}));
    tn::Tensor y = body.gemm(x, weight);
    if (attributes.flag("bias")) {
      tn::Program add;
      const tn::Float sum = add.full();
      add.output(sum + add.per_column());
      y = body.pointwise(add, {y, body.parameter(kBias)}).front();
    }
    body.output(kOutput, y);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.fc", "0.1.0", "The fully connected layer", "Apache-2.0");
  plugin.layer<FullyConnected>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
