// Gradients of parameters that are also the gradient of a second parameter, the input of another gradient, or a view. A
// machine stores each of them in memory of its own.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <tenon/plugin.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/layer_bench.h"
#include "tests/support/paths.h"
#include "tests/support/test_layers.h"

namespace tenon_tests {

using namespace tenon;

namespace {

constexpr int64_t kRows = 3, kColumns = 2, kSamples = 5;
constexpr size_t kCount = kRows * kColumns;
using Values = std::vector<double>;

// Gathers rows of a table that is computed from two parameters: a + b, a + b * b, or a + b with b stored flat.
struct Joined {
  static void describe(tn::LayerDescription& d) {
    d.type("joined", "rows of a table of two parameters");
    d.input("ids", "[samples]", TN_PORT_INTEGER);
    d.output("output", "[samples, columns]");
    d.attribute(tn::string_attribute("kind", "sum").one_of({"sum", "square", "flat"}).doc("what b is to the table"));
    d.parameter("a");
    d.parameter("b");
  }
  static void plan(tn::Planner& planner) {
    const bool flat = planner.attributes().text("kind") == std::string("flat");
    planner.index_limit(0, kRows);
    planner.parameter("a", tn::Spec({kRows, kColumns}), tn::uniform_initializer(-1, 1));
    planner.parameter("b", flat ? tn::Spec({kRows * kColumns}) : tn::Spec({kRows, kColumns}),
                      tn::uniform_initializer(-1, 1));
    planner.output(0, tn::Spec({planner.input(0)[0], kColumns}));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor b = body.parameter(1).view(tn::Spec({kRows, kColumns}));
    tn::Program program;
    const tn::Float left = program.full(), right = program.full();
    program.output(attributes.text("kind") == std::string("square") ? left + right * right : left + right);
    body.output(0, body.gather(body.pointwise(program, {body.parameter(0), b}).front(), body.input(0)));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.test.joined", "1.0.0", "a layer of the tests", "Apache-2.0");
  plugin.layer<Joined>();
}

class SharedGradients : public testing::Test {
 protected:
  // Compares the gradients after two minibatches without an update in between with the expected sums.
  void check(const std::string& kind, tn_dtype compute) {
    Host host({2, {tenon_tests::plugin_folder()}, nullptr, {}});
    host.add_plugin(&test_layers());
    host.add_plugin(tn::entry<describe>());
    DataOptions ids, weight;
    ids.name = "ids", ids.dtype = TN_I32;
    weight.name = "weight", weight.shape = {kColumns};
    const Layer table = host.layer("joined", {host.data(ids)}, {{"kind", kind}}, "table");
    const Layer cost = host.layer("test_cost", {table, host.data(weight)}, {}, "cost");
    const Parameters parameters = host.parameters({cost}, 1);
    MachineOptions options;
    options.max_samples = kSamples;
    options.training = true;
    options.compute = compute;
    const Machine machine = host.machine(parameters, {cost}, options);
    const Values b = numbers_of(parameters.get("table.b"));
    Values of_table(kCount, 0.0);
    for (int batch = 0; batch < 2; ++batch) {
      std::vector<int32_t> picked;
      std::vector<float> weights;
      for (int64_t i = 0; i < kSamples; ++i) picked.push_back(static_cast<int32_t>((i * 2 + batch) % kRows));
      for (int64_t i = 0; i < kSamples * kColumns; ++i) weights.push_back(static_cast<float>(std::sin(i + 7 * batch)));
      machine.forward(
          {{"ids", {TN_I32, {kSamples}, picked.data()}}, {"weight", {TN_F32, {kSamples, kColumns}, weights.data()}}});
      machine.backward();
      for (size_t i = 0; i < weights.size(); ++i)
        of_table[static_cast<size_t>(picked[i / kColumns]) * kColumns + i % kColumns] +=
            static_cast<double>(weights[i]) / kSamples;
    }
    Values of_b = of_table;
    for (size_t i = 0; kind == "square" && i < kCount; ++i) of_b[i] *= 2 * b[i];
    for (const auto& [name, expected] : {std::pair{"table.a", of_table}, {"table.b", of_b}}) {
      const Values got = numbers_of(machine.gradient(name));
      ASSERT_EQ(got.size(), kCount);
      for (size_t i = 0; i < kCount; ++i)
        EXPECT_NEAR(got[i], expected[i], compute == TN_F64 ? 1e-12 : 1e-6) << kind << ": " << name << ", element " << i;
    }
    const Values a = numbers_of(parameters.get("table.a"));
    host.updater("sgd", {{"learning_rate", 1.0}}).update(machine);  // reads each gradient from its own memory
    for (const auto& [name, began, moved] : {std::tuple{"table.a", a, of_table}, {"table.b", b, of_b}}) {
      const Values got = numbers_of(parameters.get(name));
      for (size_t i = 0; i < kCount; ++i)
        EXPECT_NEAR(got[i], began[i] - moved[i], 1e-6)
            << kind << ": " << name << ", element " << i << " after an update";
    }
  }
};

TEST_F(SharedGradients, OfTwoParameters) {
  for (const tn_dtype compute : {TN_F32, TN_F64}) check("sum", compute);
}
TEST_F(SharedGradients, FromWhichAnotherIsComputed) {
  for (const tn_dtype compute : {TN_F32, TN_F64}) check("square", compute);
}
TEST_F(SharedGradients, ThatAreViews) {
  for (const tn_dtype compute : {TN_F32, TN_F64}) check("flat", compute);
}

}  // namespace
}  // namespace tenon_tests
