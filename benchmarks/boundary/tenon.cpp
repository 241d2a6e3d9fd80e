// Row 14: the host's part of a call: 64 layers that do nothing, from eight plugins in turn, forward. MODE "training":
// forward and backward, each call counted; "timed": forward, in a host that measures each call.
// SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    constexpr int kLayers = 64;
    const bool training = arguments.mode == "training";
    tenon::HostOptions options{arguments.threads, {TENON_BENCH_PLUGINS, TENON_PLUGINS}, nullptr, {}, TN_CHECK_OFF};
    options.time_calls = arguments.mode == "timed";
    const tenon::Host host(options);
    const tenon::Layer x = bench::data(host, "x", TN_F32, {1});
    // A trained value below, so that there is a gradient to pass down.
    const auto chain = [&](int layers) {
      tenon::Layer last = host.layer("fc", {x}, {{"size", 1}});
      for (int i = 0; i < layers; ++i) last = host.layer("pass" + std::to_string(i % 8), {last}, {});
      return host.layer("should_be_true", {last}, {});
    };
    const float value = 0.5F;
    const std::vector<tenon::Feed> feeds = {{"x", {TN_F32, {1, 1}, &value}}};
    bench::Result result;
    const auto seconds = [&](int layers) {
      const tenon::Layer cost = chain(layers);
      const tenon::Machine machine = bench::machine(host, host.parameters({cost}, 1), {cost}, 1, training);
      const tenon::Updater updater = host.updater("sgd");
      const auto step = [&] {
        machine.forward(feeds);
        if (training) machine.backward(), updater.update(machine);
      };
      if (arguments.calls > 0) return result = bench::count_calls(arguments, step), 0.0;
      bench::mean_seconds(1000, step);
      double best = 1e30;
      for (int attempt = 0; attempt < 5; ++attempt) best = std::min(best, bench::mean_seconds(10000, step));
      return best;
    };
    const double all = seconds(kLayers);
    if (arguments.calls > 0) return result;
    // What 64 layers cost more than none.
    result.seconds = (all - seconds(0)) / kLayers / (training ? 2 : 1);
    return result;
  });
}
