// Row 13: the answer of 784-128-10 to one image; with mode "predictor" by a predictor, with "serving" by a predictor
// that as many threads as it has machines share: the seconds for one answer of all. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tenon/tenon_predictor.hpp>
#include <thread>

#include "../support/bench.h"

namespace {

// The wall time of `count` calls on each of `threads` threads, for one call.
template <typename Step>
double shared_seconds(int threads, int count, const Step& step) {
  std::vector<std::thread> running;
  const double began = bench::now();
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&] {
      for (int i = 0; i < count; ++i) step();
    });
  for (std::thread& thread : running) thread.join();
  return (bench::now() - began) / (static_cast<double>(threads) * count);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer x = bench::data(host, "x", TN_F32, {784});
    const tenon::Layer hidden = host.layer("fc", {x}, {{"size", 128}, {"act", "relu"}}, "hidden");
    const tenon::Layer logits = host.layer("fc", {hidden}, {{"size", 10}}, "logits");
    const tenon::Parameters parameters = host.parameters({logits}, 1);
    const std::vector<float> input = bench::numbers(784, 1);
    bench::write(arguments.folder, parameters, {"hidden.weight", "hidden.bias", "logits.weight", "logits.bias"});
    bench::write(arguments.folder, "x", input);
    const std::vector<tenon::Feed> feeds = {{"x", {TN_F32, {1, 784}, input.data()}}};

    bench::Result result;
    float answer[2] = {};
    const auto keep = [&](const tenon::Array& logits_of) {
      std::copy_n(static_cast<const float*>(logits_of.data), 2, answer);
    };
    if (arguments.mode.empty()) {
      const tenon::Machine machine = bench::machine(host, parameters, {logits}, 1, false);
      const auto step = [&] { machine.forward(feeds); };
      bench::mean_seconds(1000, step);
      result = bench::single_calls(50000, step);
      keep(machine.output(logits));
    } else {
      constexpr int kThreads = 8;
      tenon::PredictorOptions options;
      options.machines = kThreads;
      const tenon::Predictor predictor(parameters, {logits}, options);
      const auto step = [&] { predictor.predict(feeds, [](const std::vector<tenon::Array>&) {}); };
      bench::mean_seconds(1000, step);
      if (arguments.mode == "serving")
        result.seconds = shared_seconds(arguments.threads == 1 ? 1 : kThreads, 100000, step);
      else
        result = bench::single_calls(50000, step);
      predictor.predict(feeds, [&](const std::vector<tenon::Array>& outputs) { keep(outputs[0]); });
    }
    result.loss = static_cast<double>(answer[0]) - static_cast<double>(answer[1]);
    result.flops = 2.0 * (784 * 128 + 128 * 10);
    return result;
  });
}
