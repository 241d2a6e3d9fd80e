// One point of a curve of benchmarks/curves: a training step of models of any size. MODE is one of
//   layers:SIDE:COUNT          COUNT layers of SIDE x SIDE with relu, 32 samples, SGD
//   parameters:COUNT:TENSORS   the update of COUNT parameters in TENSORS tensors by Adam
//   batch:SAMPLES              784-128-10, Adam
// SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

namespace {

constexpr double kSeconds = 0.3;  // that a point is measured for, at least

bench::Result layers(const tenon::Host& host, int64_t side, int64_t count) {
  constexpr int64_t kBatch = 32;
  tenon::Layer last = bench::data(host, "x", TN_F32, {side});
  for (int64_t i = 0; i < count; ++i)
    last = host.layer("fc", {last}, {{"size", side}, {"act", "relu"}}, "fc" + std::to_string(i));
  const tenon::Layer cost = host.layer("square_error", {last, bench::data(host, "target", TN_F32, {side})});
  const tenon::Parameters parameters = host.parameters({cost}, 1);
  // Unit matrices: numbers keep their size through any number of layers.
  std::vector<float> unit(static_cast<size_t>(side * side));
  for (int64_t i = 0; i < side; ++i) unit[static_cast<size_t>(i * side + i)] = 1;
  for (int64_t i = 0; i < count; ++i)
    parameters.set("fc" + std::to_string(i) + ".weight", {TN_F32, {side, side}, unit.data()});
  const tenon::Machine machine = bench::machine(host, parameters, {cost}, kBatch, true);
  const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 1e-6}});
  const std::vector<float> x = bench::numbers(static_cast<size_t>(kBatch * side), 1);
  const std::vector<tenon::Feed> feeds = {{"x", {TN_F32, {kBatch, side}, x.data()}},
                                          {"target", {TN_F32, {kBatch, side}, x.data()}}};
  const auto step = [&] {
    machine.forward(feeds);
    machine.backward();
    updater.update(machine);
  };
  step();
  bench::Result result;
  result.seconds = bench::long_mean_seconds(kSeconds, step);
  // The first layer computes no gradient of the data.
  result.flops = 2.0 * static_cast<double>(kBatch * side * side) * (3.0 * static_cast<double>(count) - 1);
  return result;
}

bench::Result parameters(const tenon::Host& host, int64_t count, int64_t tensors) {
  const tenon::Layer one = bench::data(host, "one", TN_F32, {1});
  tenon::Layers costs;
  for (int64_t i = 0; i < tensors; ++i) {
    const tenon::Layer x = host.layer("fc", {one}, {{"size", count / tensors}, {"bias", false}});
    costs.push_back(host.layer("square_error", {x, x}));
  }
  const tenon::Machine machine = bench::machine(host, host.parameters(costs, 1), costs, 1, true);
  const tenon::Updater updater = host.updater("adam");
  const float value = 1;
  // An update takes the gradients of a backward; its time alone counts.
  double spent = 0;
  int updates = 0;
  for (const double end = bench::now() + 3 * kSeconds; bench::now() < end || updates < 3; ++updates) {
    machine.forward({{"one", {TN_F32, {1, 1}, &value}}});
    machine.backward();
    const double began = bench::now();
    updater.update(machine);
    if (updates > 0) spent += bench::now() - began;
  }
  bench::Result result;
  result.seconds = spent / (updates - 1);
  result.bytes = 28.0 * static_cast<double>(count);  // four arrays read, three written
  return result;
}

bench::Result batch(const tenon::Host& host, int64_t samples) {
  const tenon::Layer hidden =
      host.layer("fc", {bench::data(host, "image", TN_F32, {784})}, {{"size", 128}, {"act", "relu"}});
  const tenon::Layer logits = host.layer("fc", {hidden}, {{"size", 10}});
  const tenon::Layer cost =
      host.layer("cross_entropy", {logits, bench::data(host, "label", TN_U8)}, {{"from_logits", true}});
  const tenon::Machine machine = bench::machine(host, host.parameters({cost}, 1), {cost}, samples, true);
  const tenon::Updater updater = host.updater("adam");
  const std::vector<float> images = bench::numbers(static_cast<size_t>(samples * 784), 1);
  const auto labels = bench::integers<uint8_t>(static_cast<size_t>(samples), 10, 2);
  const auto step = [&] {
    machine.forward({{"image", {TN_F32, {samples, 784}, images.data()}}, {"label", {TN_U8, {samples}, labels.data()}}});
    machine.backward();
    updater.update(machine);
  };
  step();
  bench::Result result;
  result.seconds = bench::long_mean_seconds(kSeconds, step);
  result.flops = 2.0 * static_cast<double>(samples) * (2 * 784 * 128 + 3 * 128 * 10);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    long long first = 0, second = 0;
    const char* const mode = arguments.mode.c_str();
    if (std::sscanf(mode, "layers:%lld:%lld", &first, &second) == 2) return layers(host, first, second);
    if (std::sscanf(mode, "parameters:%lld:%lld", &first, &second) == 2) return parameters(host, first, second);
    if (std::sscanf(mode, "batch:%lld", &first) == 1) return batch(host, first);
    throw tenon::Error(TN_INVALID, "no curve \"" + arguments.mode + "\"");
  });
}
