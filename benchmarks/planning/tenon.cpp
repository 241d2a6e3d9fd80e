// From the layers of a topology to a machine that is ready to train: MODE layers of 8 x 8 in a row. The seconds are for
// one layer. SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

namespace {

void plan(const tenon::Host& host, int64_t layers) {
  tenon::Layer last = bench::data(host, "x", TN_F32, {8});
  for (int64_t i = 0; i < layers; ++i) last = host.layer("fc", {last}, {{"size", 8}, {"act", "relu"}});
  const tenon::Layer cost = host.layer("square_error", {last, bench::data(host, "target", TN_F32, {8})});
  const tenon::Parameters parameters = host.parameters({cost}, 1);
  bench::machine(host, parameters, {cost}, 32, true);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const tenon::Host host = bench::host(arguments.threads);
    const int64_t layers = std::atoll(arguments.mode.c_str());
    plan(host, 1);  // loads the plugins
    if (arguments.calls > 0) return bench::count_calls(arguments, [&] { plan(host, layers); });
    bench::Result result;
    result.seconds = 1e30;
    for (int round = 0; round < 5; ++round) {
      const double began = bench::now();
      plan(host, layers);
      result.seconds = std::min(result.seconds, (bench::now() - began) / static_cast<double>(layers));
    }
    return result;
  });
}
