// One plugin in several versions, for tests of model files. SPDX-License-Identifier: Apache-2.0
//
//   TEST_PLUGIN_VERSION  text: the plugin's version
//   TEST_STATE           state version of test.blend: 1, or 2 with other names and another layout
//   TEST_KEEP            the default of the share of the product
//   TEST_MIGRATES        whether test.blend migrates state version 1
#include <tenon/plugin.hpp>

namespace {

constexpr bool kFirst = TEST_STATE == 1;
constexpr const char* kOutputs = kFirst ? "size" : "outputs";
constexpr const char* kKeep = kFirst ? "momentum" : "keep";
constexpr const char* kWeight = kFirst ? "weight" : "kernel";

struct Blend {
  static void describe(tn::LayerDescription& d) {
    d.type("test.blend", "out = keep in kernel + mean + shift; in version 1 momentum in weight' + mean");
    d.input("in", "[samples, width]");
    d.output("out", "[samples, outputs]");
    d.attribute(tn::int_attribute(kOutputs).required().at_least(1).doc("outputs of each sample"));
    d.attribute(tn::float_attribute(kKeep, TEST_KEEP).doc("share of the product"));
    d.attribute(tn::string_attribute("note").doc("has no effect"));
    if (!kFirst) d.attribute(tn::float_attribute("shift", 0).doc("added to each output"));
    d.parameter(kWeight);
    d.parameter("mean");
    d.state_version(TEST_STATE);
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[samples, width]");
    const int64_t width = in[1].offset, outputs = planner.attributes().integer(kOutputs);
    planner.parameter(kWeight, kFirst ? tn::Spec({outputs, width}) : tn::Spec({width, outputs}),
                      tn::normal_initializer(0, 1));
    planner.buffer("mean", tn::Spec({outputs}), tn::constant_initializer(0.25), kFirst ? TN_MERGE_MEAN : TN_MERGE_MAX);
    planner.output(0, tn::Spec({in[0], outputs}));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor product = body.gemm(body.input(0), body.parameter(0), kFirst ? TN_TRANSPOSE_B : 0);
    tn::Program add;
    const tn::Float in = add.full(), mean = add.per_column();
    const tn::Float sum = in * attributes.number(kKeep) + mean;
    add.output(kFirst ? sum : sum + attributes.number("shift"));
    body.output(0, body.pointwise(add, {product, body.buffer(0)}).front());
  }

#if TEST_MIGRATES
  static void migrate(tn::Migration& migration) {
    const tn::StoredTensor weight = migration.tensor("weight");
    const int64_t rows = weight.shape.at(0), columns = weight.shape.at(1);
    tn::StoredTensor kernel{{columns, rows}, weight.values};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        kernel.values[static_cast<size_t>(j * rows + i)] = weight.values[static_cast<size_t>(i * columns + j)];
    migration.rename("size", "outputs");
    migration.rename("momentum", "keep");
    migration.rename_tensor("weight", "kernel");
    migration.set_tensor("kernel", kernel);
  }
#endif
};

// A test.blend under its own name, with the default of its share.
struct Wrapped {
  static void describe(tn::LayerDescription& d) {
    d.type("test.wrapped", "test.blend of 2 outputs");
    d.input("in", "[samples, width]");
    d.output("out", "[samples, 2]");
  }
  static void plan(tn::Planner& planner) { planner.output(0, tn::Spec({planner.input(0)[0], 2})); }
  static bool expand(tn::Expander& expander) {
    expander.output(0, expander.layer("test.blend", {expander.input(0)}, {{kOutputs, tn::int_value(2)}}));
    return true;
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test.versions", TEST_PLUGIN_VERSION, "Layers whose state changed between versions", "Apache-2.0");
  plugin.layer<Blend>();
  plugin.layer<Wrapped>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
