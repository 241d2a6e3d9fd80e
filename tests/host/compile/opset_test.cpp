// Programs with opcodes that a device does not know: the host refuses them by name, and the device never sees them.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tenon/device_images.h>

#include "core/graph/passes/passes.h"
#include "host/compile/prepare_call.h"
#include "host/plugins/registry.h"
#include "host/plugins/services.h"
#include "host/training/update_calls.h"
#include "tests/support/paths.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::HasSubstr;

// Stands between the host and the device "cpu": states an opset of its own, counts the calls of functions that take
// programs, and fails in each.
struct OldDevice {
  static inline int calls = 0;
  static tn_status refuse() {
    ++calls;
    return TN_IO;
  }

  const tn_device_type* cpu = nullptr;
  tn_pointwise_table pointwise = {
      sizeof(tn_pointwise_table), 0,
      [](void*, const tn_services*, const tn_errors*, const tn_pointwise_site*, tn_prepared*) { return refuse(); }};
  tn_gemm_epilogue_table epilogue = {
      sizeof(tn_gemm_epilogue_table), 0,
      [](void*, const tn_errors*, const tn_gemm_epilogue*) -> tn_status {
        ++calls;
        return TN_OK;
      },
      [](void*, const tn_services*, const tn_errors*, const tn_gemm_epilogue*, tn_prepared*) { return refuse(); }};
  tn_conv_epilogue_table conv_epilogue = {
      sizeof(tn_conv_epilogue_table), 0,
      [](void*, const tn_errors*, const tn_conv_epilogue*) -> tn_status {
        ++calls;
        return TN_OK;
      },
      [](void*, const tn_services*, const tn_errors*, const tn_conv_epilogue*, tn_prepared*) { return refuse(); }};
  bool fuses_convolutions = true;
  tn_row_sparse_table rows = {
      sizeof(tn_row_sparse_table), 0, nullptr,
      [](void*, const tn_services*, const tn_errors*, const tn_row_sparse_update*, tn_prepared*) { return refuse(); }};

  static const void* extension(void* user, const char* id) {
    const auto& device = *static_cast<const OldDevice*>(user);
    const std::string wanted = id;
    if (wanted == TN_POINTWISE) return &device.pointwise;
    if (wanted == TN_GEMM_EPILOGUE) return &device.epilogue;
    if (wanted == TN_CONV_EPILOGUE) return device.fuses_convolutions ? &device.conv_epilogue : nullptr;
    if (wanted == TN_ROW_SPARSE_TABLE) return &device.rows;
    return device.cpu->extension(device.cpu->user, id);
  }
};

class Opset : public testing::Test {
 protected:
  Opset() {
    OldDevice::calls = 0;
    old_.cpu = &registry_.device("cpu").table;
    type_.kind = "old";
    type_.table.user = &old_;
    type_.table.extension = &OldDevice::extension;
  }
  // A device that knows the opcodes up to `opset`.
  Device device(uint32_t opset) {
    old_.pointwise.opset = old_.epilogue.opset = old_.conv_epilogue.opset = old_.rows.opset = opset;
    return {type_, services_, 0};
  }
  // TN_UNSUPPORTED of `call`, whose message names everything.
  template <typename Call>
  void expect_refused(Call&& call) {
    OldDevice::calls = 0;
    try {
      call();
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_UNSUPPORTED) << error.what();
      EXPECT_EQ(error.component(), "layer \"wave\" (test)");
      EXPECT_THAT(error.what(), HasSubstr("device \"old\" knows the opcodes up to opset 0"));
      EXPECT_THAT(error.what(), HasSubstr("but the program has \"input\" of opset 1"));
    }
    EXPECT_EQ(OldDevice::calls, 0) << "the device got the program";
  }
  // The device's own failure, which it reports after it got the program.
  template <typename Call>
  void expect_reaches(Call&& call) {
    OldDevice::calls = 0;
    try {
      call();
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_IO) << error.what();
    }
    EXPECT_EQ(OldDevice::calls, 1);
  }

  Registry registry_{{tenon_tests::plugin_folder()}, system_files()};
  Services services_{system_allocator(), nullptr};
  OldDevice old_;
  DeviceType type_ = registry_.device("cpu");
  ErrorSink sink_{"layer \"wave\" (test)"};
};

std::shared_ptr<Program> sine() {
  ProgramWriter writer;
  writer.output(writer.apply(TN_OP_SIN, writer.input(TN_FULL)));
  return std::make_shared<Program>(writer.finish());
}

Spec floats(int64_t rows, int64_t columns) {
  return {TN_F32, {tn_dim_constant(rows), tn_dim_constant(columns)}, TN_DENSE, 0, {}};
}

TEST_F(Opset, OfPrograms) {
  Graph graph;
  GraphWriter(graph, 0, false, TN_F32).pointwise(sine(), {graph.add_external(floats(2, 3), "in")}, 1);
  const auto prepare = [&](uint32_t opset) {
    Device made = device(opset);
    Prepared prepared;
    (void)prepare_call(graph, graph.nodes[0], {}, made, prepared, sink_);
  };
  expect_refused([&] { prepare(0); });
  expect_reaches([&] { prepare(TN_OPSET); });
}

// A product of matrices, or a convolution of lines, with an epilogue.
Graph product_of(bool convolution) {
  Graph graph;
  GraphWriter writer(graph, 0, false, TN_F32);
  const tn_window window = {sizeof window, 1, {4}, {1}, {1}, {1}, {0}, {0}};
  Spec lines = floats(2, 4), weights = floats(3, 1);
  lines.shape.push_back(tn_dim_constant(5));
  weights.shape.push_back(tn_dim_constant(5));
  const ValueId product =
      convolution
          ? writer.conv(TN_CONV_RESULTS, window, 1, graph.add_external(lines, "a"), graph.add_external(weights, "b"))
          : writer.gemm(graph.add_external(floats(2, 4), "a"), graph.add_external(floats(4, 3), "b"), 0, 1);
  writer.pointwise(sine(), {product}, convolution ? 2 : 1);
  attach_epilogues(graph, [](const Node&) { return true; });
  return graph;
}

class OpsetOfEpilogues : public Opset, public testing::WithParamInterface<bool> {};

TEST_P(OpsetOfEpilogues, IsAskedFirst) {
  const Graph graph = product_of(GetParam());
  ASSERT_EQ(graph.nodes.size(), 1U);
  const auto prepare = [&](uint32_t opset) {
    Device made = device(opset);
    Prepared prepared;
    (void)prepare_call(graph, graph.nodes[0], {}, made, prepared, sink_);
  };
  expect_refused([&] { prepare(0); });
  expect_reaches([&] { prepare(TN_OPSET); });
  // Nor is it asked whether it would rather have both in one call.
  OldDevice::calls = 0;
  Device older = device(0);
  EXPECT_FALSE(prefers_epilogue(older, graph, {}, graph.nodes[0]));
  EXPECT_EQ(OldDevice::calls, 0);
  Device newer = device(TN_OPSET);
  EXPECT_TRUE(prefers_epilogue(newer, graph, {}, graph.nodes[0]));
  EXPECT_EQ(OldDevice::calls, 1);
}

INSTANTIATE_TEST_SUITE_P(Products, OpsetOfEpilogues, testing::Bool(),
                         [](const auto& it) { return it.param ? "convolution" : "gemm"; });

// Nor is a device that has no table of convolutions with epilogues, or for which a provider takes the convolution.
TEST_F(Opset, OfDevicesWithoutTheEpilogue) {
  const Graph graph = product_of(true);
  old_.fuses_convolutions = false;
  Device without = device(TN_OPSET);
  EXPECT_FALSE(prefers_epilogue(without, graph, {}, graph.nodes[0]));

  old_.fuses_convolutions = true;
  static tn_status taken = TN_OK;
  tn_conv_table table = {sizeof table, 0,
                         [](void*, const tn_services*, const tn_errors* errors, const tn_conv*, tn_prepared* prepared) {
                           if (taken != TN_OK) return tn_fail(errors, taken, nullptr, "not this one");
                           prepared->run = [](void*, const tn_execution*, const tn_call*) { return tn_status{TN_OK}; };
                           return tn_status{TN_OK};
                         }};
  Provider provider;
  provider.plugin = "test.provider";
  provider.table = {sizeof(tn_provider), 1, "old", TN_CONV, "quick", &table, nullptr};
  Device with(type_, services_, 0, [&](const std::string& id, std::vector<RefusedProvider>& /*refused*/) {
    return id == TN_CONV ? std::vector<const Provider*>{&provider} : std::vector<const Provider*>();
  });
  EXPECT_FALSE(prefers_epilogue(with, graph, {}, graph.nodes[0])) << "the provider takes the convolution";
  taken = TN_UNSUPPORTED;
  EXPECT_TRUE(prefers_epilogue(with, graph, {}, graph.nodes[0])) << "the provider leaves it to the device";
}

TEST_F(Opset, OfUpdates) {
  ProgramWriter writer;
  const int32_t parameter = writer.input(TN_FULL), gradient = writer.input(TN_FULL);
  writer.output(writer.apply(TN_OP_SUB, parameter, writer.apply(TN_OP_SIN, gradient)));
  const Program program = writer.finish();
  float values[6] = {};
  const std::vector<OperandCall::Operand> inputs = {{TN_F32, values}, {TN_F32, values}}, outputs = {{TN_F32, values}};
  const auto dense = [&](uint32_t opset) {
    Device made = device(opset);
    (void)OperandCall::over_grid(made, sink_, program, TN_F32, tn_dim_constant(1), tn_dim_constant(6), inputs, outputs);
  };
  const auto sparse = [&](uint32_t opset) {
    Device made = device(opset);
    (void)OperandCall::over_rows(made, sink_, program, 2, 3, inputs, outputs);
  };
  expect_refused([&] { dense(0); });
  expect_reaches([&] { dense(TN_OPSET); });
  expect_refused([&] { sparse(0); });
  expect_reaches([&] { sparse(TN_OPSET); });
}

// A provider whose table is too old leaves the call to the device, which knows the opcode.
TEST_F(Opset, OfProviders) {
  static int provided = 0;
  tn_pointwise_table table = {sizeof table, 0,
                              [](void*, const tn_services*, const tn_errors*, const tn_pointwise_site*, tn_prepared*) {
                                ++provided;
                                return tn_status{TN_BAD_DATA};
                              }};
  Graph graph;
  GraphWriter(graph, 0, false, TN_F32).pointwise(sine(), {graph.add_external(floats(2, 3), "in")}, 1);
  const auto prepare = [&](uint32_t of_provider) {
    table.opset = of_provider;
    Provider provider;
    provider.plugin = "test.provider";
    provider.table = {sizeof(tn_provider), 1, "old", TN_POINTWISE, "quick", &table, nullptr};
    old_.pointwise.opset = TN_OPSET;
    Device made(type_, services_, 0, [&](const std::string& id, std::vector<RefusedProvider>& /*refused*/) {
      return id == TN_POINTWISE ? std::vector<const Provider*>{&provider} : std::vector<const Provider*>();
    });
    Prepared prepared;
    (void)prepare_call(graph, graph.nodes[0], {}, made, prepared, sink_);
  };
  expect_reaches([&] { prepare(0); });
  EXPECT_EQ(provided, 0);
  EXPECT_THROW(prepare(TN_OPSET), Error);
  EXPECT_EQ(provided, 1);
}

// The devices of this repository know every opcode of the headers.
TEST_F(Opset, OfCpu) {
  const Device cpu(registry_.device("cpu"), services_, 0);
  EXPECT_EQ(cpu.primitives<tn_pointwise_table>(TN_POINTWISE)->opset, uint32_t{TN_OPSET});
  EXPECT_EQ(cpu.primitives<tn_gemm_epilogue_table>(TN_GEMM_EPILOGUE)->opset, uint32_t{TN_OPSET});
  EXPECT_EQ(cpu.primitives<tn_conv_epilogue_table>(TN_CONV_EPILOGUE)->opset, uint32_t{TN_OPSET});
  EXPECT_EQ(cpu.primitives<tn_row_sparse_table>(TN_ROW_SPARSE_TABLE)->opset, uint32_t{TN_OPSET});
}

}  // namespace
}  // namespace tenon_tests
