// Plugins that rely on operands at multiples of 64 bytes, as interface 0.2 promised, in the steps of scans, whose rows
// may begin anywhere. SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <tenon/base.hpp>
#include <tenon/tenon.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_scan.hpp>

#include "tests/support/bare_plugin.h"
#include "tests/support/paths.h"
#include "tests/support/released/aligned.h"

namespace tenon_tests {

using namespace tenon;

namespace {

const std::vector<int64_t> kEnds = {0, 3, 3, 8, 10, 17};  // of the sequences

// ---- a device of another kind: the tables of the cpu, with calls that need aligned operands

int64_t device_calls = 0;

const tn_device_type& cpu() {
  static void* const library = dlopen((plugin_folder() + "/devices/cpu.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return *reinterpret_cast<tn_entry>(dlsym(library, TN_ENTRY_NAME))()->devices[0];
}

bool is_aligned(const tn_tensor* tensor) {
  return tensor == nullptr || (tensor->alignment >= 64 && reinterpret_cast<uintptr_t>(tn_data(tensor)) % 64 == 0);
}
tn_status run_aligned(void* binding, const tn_execution* execution, const tn_call* call) {
  const auto& inner = *static_cast<const tn_prepared*>(binding);
  bool all = true;
  for (uint32_t i = 0; i < call->inputs_count; ++i) all = all && is_aligned(call->inputs[i]);
  for (uint32_t i = 0; i < call->outputs_count; ++i) all = all && is_aligned(call->outputs[i]);
  if (!all) return tn_fail(execution->errors, TN_PLUGIN_FAULT, nullptr, "an operand is not aligned to 64 bytes");
  ++device_calls;
  return inner.run(inner.binding, execution, call);
}
void destroy_aligned(void* binding) {
  auto* const inner = static_cast<tn_prepared*>(binding);
  if (inner->destroy != nullptr) inner->destroy(inner->binding);
  delete inner;
}

template <typename Table, typename Site>
struct Aligned {
  static inline Table given, made;
  static tn_status prepare(void* device, const tn_services* services, const tn_errors* errors, const Site* site,
                           tn_prepared* prepared) {
    tn_prepared inner = {};
    inner.size = sizeof inner;
    const tn_status status = given.prepare(device, services, errors, site, &inner);
    if (status != TN_OK) return status;
    prepared->workspace_bytes = inner.workspace_bytes;
    prepared->binding = new tn_prepared(inner);
    prepared->run = run_aligned;
    prepared->destroy = destroy_aligned;
    return TN_OK;
  }
  static const void* of(const void* table) {
    made = given = *static_cast<const Table*>(table);
    made.prepare = prepare;
    return &made;
  }
};

const void* aligned_table(void* user, const char* id) {
  const std::string name = id;
  const void* const given = cpu().extension(user, id);
  if (given == nullptr) return nullptr;
  if (name == TN_GEMM) return Aligned<tn_gemm_table, tn_gemm>::of(given);
  if (name == TN_GEMM_EPILOGUE) return Aligned<tn_gemm_epilogue_table, tn_gemm_epilogue>::of(given);
  if (name == TN_POINTWISE) return Aligned<tn_pointwise_table, tn_pointwise_site>::of(given);
  if (name == TN_GATHER) return Aligned<tn_gather_table, tn_gather>::of(given);
  if (name == TN_MOVE) return Aligned<tn_move_table, tn_move>::of(given);
  return given;
}

// ---- models

struct Answers {
  std::vector<float> output, weight, x;
};

// Trains one step of the model that `make` makes of sequences of rows [width].
template <typename Make>
Answers answers(const Host& host, const std::string& device, int64_t width, const Make& make) {
  DataOptions data;
  data.name = "x", data.dtype = TN_COMPUTE, data.shape = {width}, data.storage = TN_RAGGED;
  const Layer out = make(host, host.data(data));
  const Layer cost = host.layer("sum_cost", {host.layer("tanh", {out}, {}, "squashed")}, {}, "cost");
  const Parameters parameters = host.parameters({cost, out}, 7);
  MachineOptions options;
  options.max_samples = 8, options.training = true, options.device = device;
  options.flags = TN_MACHINE_DATA_GRADIENTS;
  const Machine machine = host.machine(parameters, {cost, out}, options);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> x(static_cast<size_t>(kEnds.back() * width));
  for (float& each : x) each = number(random);
  const auto samples = static_cast<int64_t>(kEnds.size()) - 1;
  machine.forward({{"x", Array::sequences(TN_F32, {kEnds.back(), width}, x.data(), samples, kEnds.data())}});
  machine.backward();
  const auto copy = [](const Array& array) {
    const auto* const values = static_cast<const float*>(array.data);
    return std::vector<float>(values, values + array.count());
  };
  return {copy(machine.output(out)), copy(machine.gradient("net.weight")), copy(data_gradient(machine, "x"))};
}

void expect_near(const Answers& actual, const Answers& expected) {
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b, const char* what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << what << " " << i;
  };
  same(actual.output, expected.output, "output");
  same(actual.weight, expected.weight, "gradient of the weight");
  same(actual.x, expected.x, "gradient of x");
}

Host host_with(uint32_t check) {
  HostOptions options;
  options.threads = 2;
  options.plugin_paths = {plugin_folder()};
  options.check = check;
  return Host(options);
}

Layer recurrent(const Host& host, const Layer& x, const char* type, int64_t width, bool reverse) {
  return host.layer(type, {x}, {{"size", width}, {"reverse", reverse}}, "net");
}
// A scan with a layer that doubles the rows of x, `doubling` or one of Tenon. No memory leads through it, since native
// kernels do not run step by step.
Layer twice_in_scan(const Host& host, const Layer& x, int64_t width, const char* doubling) {
  ScanOptions options;
  options.name = "steps";
  const auto step = [&](Step& inside) {
    const Layer h = inside.memory({width}, 0, "h"), row = inside.input(0);
    const Layer twice =
        doubling == nullptr ? host.layer("add", {row, row}, {}, "twice") : host.layer(doubling, {row}, {}, "twice");
    const Layer next = host.layer("fc", {twice, h}, {{"size", width}, {"act", "tanh"}, {"parameter_name", "net"}}, "z");
    inside.next(h, next);
    return Layers{next};
  };
  return scan({x}, step, options).results[0];
}

class OldPlugins : public testing::TestWithParam<uint32_t> {};

// Widths whose rows begin at multiples of 4, 8, 16, 32 and 64 bytes, and a width of one element.
TEST_P(OldPlugins, ProductsOfAProviderGetAlignedOperands) {
  const Host plain = host_with(GetParam()), host = host_with(GetParam());
  host.add_plugin(aligned_plugin());
  for (const char* type : {"rnn", "lstm", "gru"})
    for (const int64_t width : {5, 1, 2, 4, 8, 16, 17}) {
      SCOPED_TRACE(std::string(type) + " of " + std::to_string(width));
      const int64_t before = aligned_products();
      const auto make = [&](const Host& on, const Layer& x) { return recurrent(on, x, type, width, width == 17); };
      const Answers expected = answers(plain, "cpu", width, make);
      expect_near(answers(host, "cpu", width, make), expected);
      EXPECT_GT(aligned_products(), before + 10);
    }
}

TEST_P(OldPlugins, NativeKernelsGetAlignedOperands) {
  const Host plain = host_with(GetParam()), host = host_with(GetParam());
  host.add_plugin(aligned_plugin());
  for (const int64_t width : {5, 3, 16}) {
    const int64_t before = aligned_doubled();
    const Answers expected = answers(
        plain, "cpu", width, [&](const Host& on, const Layer& x) { return twice_in_scan(on, x, width, nullptr); });
    const Answers actual = answers(
        host, "cpu", width, [&](const Host& on, const Layer& x) { return twice_in_scan(on, x, width, "old.twice"); });
    expect_near(actual, expected);
    EXPECT_EQ(aligned_doubled(), before + 2) << "forward and backward";
  }
}

TEST_P(OldPlugins, TablesOfADeviceGetAlignedOperands) {
  const Host plain = host_with(GetParam()), host = host_with(GetParam());
  tn_device_description description = *cpu().description;
  description.kind = "org.aligned";
  tn_device_type type = cpu();
  type.description = &description;
  type.extension = aligned_table;
  const tn_device_type* const devices[] = {&type};
  tn_plugin plugin = bare_plugin("org.example.aligned_device");
  plugin.devices = devices;
  plugin.devices_count = 1;
  host.add_plugin(&plugin);
  for (const char* doubling : {"", "rnn", "gru"})
    for (const int64_t width : {5, 7, 16}) {
      SCOPED_TRACE(std::string(doubling) + " of " + std::to_string(width));
      const auto make = [&](const Host& on, const Layer& x) {
        return *doubling == '\0' ? twice_in_scan(on, x, width, nullptr) : recurrent(on, x, doubling, width, true);
      };
      const int64_t before = device_calls;
      const Answers expected = answers(plain, "cpu", width, make);
      expect_near(answers(host, "org.aligned", width, make), expected);
      EXPECT_GT(device_calls, before + 10);
    }
}

INSTANTIATE_TEST_SUITE_P(Checked, OldPlugins, testing::Values(TN_CHECK_OFF, TN_CHECK_ON));

}  // namespace

}  // namespace tenon_tests
