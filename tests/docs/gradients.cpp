// Tests the gradients of the layers in docs/write-a-layer.md: fp64 against central differences, fp32 (with the native
// kernel) against fp64. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <tenon/tenon.hpp>

namespace {

const std::vector<double> kWide = {0.5, -1, 2, 0.25, -0.75, 1.5, 1, -2};  // two samples of four values
const std::vector<float> kNarrow(kWide.begin(), kWide.end());
const std::vector<int64_t> kLabels = {2, 0};

// x, fc, the layer under test, fc, the cost. The gradient of the first fc depends on that of the layer under test.
struct Model {
  Model(const tenon::Host& host, tn_dtype compute, const std::string& type, const tenon::Attributes& attributes,
        const std::string& cost_type)
      : dtype(compute) {
    const tenon::Layer x = host.data({"x", compute, {4}});
    const tenon::Layer label = host.data({"label", TN_I64, {}});
    const tenon::Layer below = host.layer("fc", {x}, {{"size", 3}}, "below");
    const tenon::Layer above =
        host.layer("fc", {host.layer(type, {below}, attributes, "tested")}, {{"size", 3}}, "above");
    const tenon::Layer cost = host.layer(cost_type, {above, label}, {});
    parameters = host.parameters({cost}, 3);
    tenon::MachineOptions options;
    options.max_samples = 2;
    options.training = true;
    options.compute = compute;
    machine = host.machine(parameters, {cost}, options);
  }
  void forward() const {
    const void* data = dtype == TN_F64 ? static_cast<const void*>(kWide.data()) : kNarrow.data();
    machine.forward({{"x", {dtype, {2, 4}, data}}, {"label", {TN_I64, {2}, kLabels.data()}}});
  }
  std::vector<double> gradient() const {
    forward();
    machine.backward();
    const tenon::Array array = machine.gradient("below.weight");
    const auto count = static_cast<size_t>(array.count());
    if (dtype == TN_F64)
      return {static_cast<const double*>(array.data), static_cast<const double*>(array.data) + count};
    return {static_cast<const float*>(array.data), static_cast<const float*>(array.data) + count};
  }

  tn_dtype dtype;
  tenon::Parameters parameters;
  tenon::Machine machine;
};

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::fmax(most, std::fabs(a[i] - b[i]));
  return most;
}

std::vector<double> central_differences(const Model& model) {
  const auto* first = static_cast<const float*>(model.parameters.get("below.weight").data);
  const std::vector<float> weight(first, first + 12);
  std::vector<double> result;
  for (size_t i = 0; i < weight.size(); ++i) {
    double at[2], cost[2];
    for (int side = 0; side < 2; ++side) {
      std::vector<float> moved = weight;
      moved[i] += side == 0 ? -1e-3F : 1e-3F;
      at[side] = static_cast<double>(moved[i]);
      model.parameters.set("below.weight", {TN_F32, {4, 3}, moved.data()});
      model.forward();
      cost[side] = model.machine.cost();
    }
    result.push_back((cost[1] - cost[0]) / (at[1] - at[0]));
  }
  return result;
}

bool check(const tenon::Host& host, const std::string& type, const tenon::Attributes& attributes,
           const std::string& cost = "example.smooth_cross_entropy") {
  const Model wide(host, TN_F64, type, attributes, cost);
  const Model narrow(host, TN_F32, type, attributes, cost);
  const std::vector<double> derived = wide.gradient();
  const double precision = difference(derived, narrow.gradient());
  const double error = difference(derived, central_differences(wide));
  std::printf("%-17s gradient %.1e  float32 %.1e\n", type.c_str(), error, precision);
  return error < 2e-6 && precision < 1e-6 && difference(derived, std::vector<double>(12, 0)) > 1e-3;
}

}  // namespace

int main() {
  tenon::HostOptions options;
  options.check = TN_CHECK_ON;
  const tenon::Host host(options);
  bool right = check(host, "example.swish", {{"beta", 1.5}});
  right = check(host, "example.softsign", {}) && right;
  right = check(host, "example.gated", {{"size", 3}}) && right;
  return right ? 0 : 1;
}
