#include <cmath>
#include <cstdio>
#include <tenon/tenon.hpp>

namespace {

const std::vector<double> kPoints = {-3, -0.5, 0, 0.25, 1, 2};  // two samples of three values
const std::vector<int64_t> kLabels = {2, 0};

std::vector<tenon::Feed> feeds() {
  return {{"x", {TN_F64, {2, 3}, kPoints.data()}}, {"label", {TN_I64, {2}, kLabels.data()}}};
}

// Returns the largest difference between the layer and its formula.
double forward_error(const tenon::Machine& machine, const tenon::Layer& swish) {
  machine.forward(feeds());
  const auto* y = static_cast<const double*>(machine.output(swish).data);
  double error = 0;
  for (size_t i = 0; i < kPoints.size(); ++i)
    error = std::fmax(error, std::fabs(y[i] - kPoints[i] / (1 + std::exp(-1.5 * kPoints[i]))));
  return error;
}

// Returns the largest difference between the gradient of the weights and central differences of the cost.
double gradient_error(const tenon::Machine& machine, const tenon::Parameters& parameters) {
  machine.forward(feeds());
  machine.backward();
  const tenon::Array gradient = machine.gradient("score.weight");
  const auto* from = static_cast<const double*>(gradient.data);
  const std::vector<double> derived(from, from + gradient.count());
  const auto* first = static_cast<const float*>(parameters.get("score.weight").data);
  const std::vector<float> weight(first, first + gradient.count());
  double error = 0;
  for (size_t i = 0; i < weight.size(); ++i) {
    double at[2], cost[2];
    for (int side = 0; side < 2; ++side) {
      std::vector<float> moved = weight;
      moved[i] += side == 0 ? -1e-3F : 1e-3F;
      at[side] = static_cast<double>(moved[i]);  // parameters are kept in float32
      parameters.set("score.weight", {TN_F32, gradient.shape, moved.data()});
      machine.forward(feeds());
      cost[side] = machine.cost();
    }
    error = std::fmax(error, std::fabs((cost[1] - cost[0]) / (at[1] - at[0]) - derived[i]));
  }
  return error;
}

}  // namespace

int main() {
  tenon::HostOptions checked;
  checked.check = TN_CHECK_ON;  // also reports violations of the rules of threads and lifetimes
  const tenon::Host host(checked);
  const tenon::Layer x = host.data({"x", TN_F64, {3}});
  const tenon::Layer label = host.data({"label", TN_I64, {}});
  const tenon::Layer swish = host.layer("example.swish", {x}, {{"beta", 1.5}});
  const tenon::Layer score = host.layer("fc", {swish}, {{"size", 3}, {"act", "example.swish"}}, "score");
  const tenon::Layer cost = host.layer("cross_entropy", {score, label}, {{"from_logits", true}});
  const tenon::Parameters parameters = host.parameters({cost}, 1);
  tenon::MachineOptions options;
  options.max_samples = 2;
  options.training = true;
  options.keep_all = true;  // the test reads the output of "swish"
  options.compute = TN_F64;
  const tenon::Machine machine = host.machine(parameters, {cost}, options);
  const double forward = forward_error(machine, swish);
  const double gradient = gradient_error(machine, parameters);
  std::printf("forward %.1e  gradient %.1e\n", forward, gradient);
  return forward < 1e-12 && gradient < 1e-5 ? 0 : 1;
}
