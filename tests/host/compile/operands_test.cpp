// Tensors and types as kernels get them: offsets of nested sequences, sparse inputs, the compute type of programs.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tenon/kernel.hpp>
#include <tenon/layer.hpp>
#include <tenon/tenon.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// out[r] = the number of row r's innermost sequence. By a native kernel alone.
struct Numbering {
  static void describe(tn::LayerDescription& d) {
    d.type("test_numbering", "The number of each row's innermost sequence.");
    d.input("in", "[rows]");
    d.output("out", "[rows]");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0)); }
};
class NumberingKernel {
 public:
  static void describe(tn::KernelDescription& d) { d.kernel("test_numbering", "cpu", "numbering", 1); }
  static bool supports(const tn::KernelSite& site, int32_t& /*score*/) {
    if (site.input(0).storage() != TN_RAGGED) throw tn::Failure(TN_UNSUPPORTED, "in", "must be sequences");
    return true;
  }
  NumberingKernel(const tn::KernelSite& site, int32_t direction) : levels_(site->inputs[0]->levels) {
    if (direction == TN_BACKWARD) throw tn::Failure(TN_UNSUPPORTED, "", "has no gradient");
  }
  void run(const tn::Call& call) const {
    const auto& ragged = *static_cast<const tn_ragged*>(call.input(0)->part);
    auto* const out = call.out<float>(0);
    if (ragged.levels != levels_ || tn_elements(call.input(0)) != tn_elements(call.output(0))) return;
    for (int64_t s = 0, row = 0; row < tn_elements(call.output(0)); ++s)
      for (; row < ragged.offsets[0][s + 1]; ++row) out[row] = static_cast<float>(s);
  }

 private:
  uint32_t levels_;
};

// A kernel for fc that writes nothing.
class NoProduct {
 public:
  static void describe(tn::KernelDescription& d) {
    d.kernel("fc", "cpu", "no_product", 1000);
    d.knows(1, {"size"});
  }
  NoProduct(const tn::KernelSite& /*site*/, int32_t /*direction*/) {}
  void run(const tn::Call& /*call*/) const {}
};

// out = whether in is above 1, as an integer.
struct Above {
  static void describe(tn::LayerDescription& d) {
    d.type("test_above", "1 where in is above 1, else 0.");
    d.input("in", "any shape");
    d.output("out", "integers in the shape of in");
  }
  static void plan(tn::Planner& planner) { planner.output(0, planner.input(0).as(TN_I64)); }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) {
    tn::Program program;
    program.output(program.full() > program.constant(1), TN_I64);
    body.output(0, body.pointwise(program, {body.input(0)}).front());
  }
};

class Operands : public testing::Test {
 protected:
  Operands() : host_({1, {plugin_folder()}, nullptr, {}}) {
    plugin_.layers = layers_;
    plugin_.layers_count = 2;
    plugin_.kernels = kernels_;
    plugin_.kernels_count = 2;
    host_.add_plugin(&plugin_);
  }
  Machine machine(const Layer& layer, MachineOptions options = {}) {
    options.max_samples = 4;
    return host_.machine(host_.parameters({layer}, 1), {layer}, options);
  }
  static std::string message_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  Host host_;
  const tn_layer_type* layers_[2] = {tn::layer_type<Numbering>(), tn::layer_type<Above>()};
  const tn_kernel* kernels_[2] = {tn::kernel<NumberingKernel>(), tn::kernel<NoProduct>()};
  tn_plugin plugin_ = bare_plugin("tenon.test.operands");
};

TEST_F(Operands, OffsetsBeginWithTheInnermostSequences) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t inner[] = {0, 1, 1, 4, 6}, outer[] = {0, 3, 4};
  for (const uint32_t levels : {1U, 2U}) {
    DataOptions words;
    words.name = "words", words.storage = TN_RAGGED, words.levels = levels;
    const Layer out = host_.layer("test_numbering", {host_.data(words)}, {}, "out");
    const Machine made = machine(out);
    const Array rows = levels == 1 ? Array::sequences(TN_F32, {6}, values, 4, inner)
                                   : Array::nested(TN_F32, {6}, values, 2, outer, inner);
    made.forward({{"words", rows}});
    const auto* const numbers = static_cast<const float*>(made.output(out).data);
    EXPECT_THAT(std::vector<float>(numbers, numbers + 6), ElementsAre(0, 2, 2, 2, 3, 3)) << levels;
  }
}

// The reason of `supports` reaches the user if nothing else computes the layer.
TEST_F(Operands, ALayerWithoutAKernelTellsTheReasons) {
  DataOptions x;
  x.name = "x";
  const Layer out = host_.layer("test_numbering", {host_.data(x)}, {}, "out");
  EXPECT_THAT(message_of([&] { (void)machine(out); }),
              testing::AllOf(HasSubstr("layer \"out\" (test_numbering)"),
                             HasSubstr("kernel \"numbering\": in: must be sequences")));
}

TEST_F(Operands, SparseInputsAreNotForNativeKernels) {
  const auto kernels = [&](int32_t storage) {
    DataOptions x;
    x.name = "x", x.shape = {5}, x.storage = storage;
    const Machine made = machine(host_.layer("fc", {host_.data(x)}, {{"size", int64_t{2}}}, "fc"));
    const nlohmann::json plan = nlohmann::json::parse(made.plan());  // which names kernels that are passed over, too
    return plan.at("calls").dump().find("no_product") != std::string::npos;
  };
  EXPECT_TRUE(kernels(TN_DENSE));
  EXPECT_FALSE(kernels(TN_CSR));
}

// A program computes in the machine's type, also if its outputs are integers.
TEST_F(Operands, ProgramsWithIntegerOutputsComputeInTheMachinesType) {
  const double values[] = {1 + 1e-12, 1, 1 - 1e-12, 2};
  DataOptions x;
  x.name = "x", x.dtype = TN_F64;
  const Layer out = host_.layer("test_above", {host_.data(x)}, {}, "out");
  MachineOptions options;
  options.compute = TN_F64;
  const Machine made = machine(out, options);
  made.forward({{"x", {TN_F64, {4}, values}}});
  const auto* const above = static_cast<const int64_t*>(made.output(out).data);
  EXPECT_THAT(std::vector<int64_t>(above, above + 4), ElementsAre(1, 0, 0, 1));
}

}  // namespace

}  // namespace tenon_tests
