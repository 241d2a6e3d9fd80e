// Row 11: Adam alone over 50 million parameters; MODE is the number of tensors. Each is the weight of a layer without
// bias that maps one number to many. SPDX-License-Identifier: Apache-2.0
#include "../support/bench.h"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Arguments& arguments) {
    const int64_t parameters = arguments.size(50'000'000, 200'000);
    const int64_t tensors = arguments.mode.empty() ? 1 : std::atoll(arguments.mode.c_str());
    const tenon::Host host = bench::host(arguments.threads);
    const tenon::Layer one = bench::data(host, "one", TN_F32, {1});
    tenon::Layers costs;
    for (int64_t i = 0; i < tensors; ++i) {
      const std::string number = std::to_string(i);
      const tenon::Layer x = host.layer("fc", {one}, {{"size", parameters / tensors}, {"bias", false}}, "x" + number);
      costs.push_back(host.layer("square_error", {x, x}, {}, "cost" + number));
    }
    const tenon::Machine machine = bench::machine(host, host.parameters(costs, 1), costs, 1, true, arguments.device);
    const tenon::Updater updater = host.updater("adam");
    const float value = 1;
    const auto pass = [&] {
      machine.forward({{"one", {TN_F32, {1, 1}, &value}}});
      machine.backward();
    };
    if (arguments.calls > 0)  // an update takes the gradients of a pass, which are there once
      return bench::count_calls(arguments, [&] { pass(), updater.update(machine); });
    bench::Result result;
    result.seconds = 1e30;
    for (int round = 0; round < 10; ++round) {
      pass();
      const double began = bench::now();
      updater.update(machine);
      if (round > 0) result.seconds = std::min(result.seconds, bench::now() - began);
    }
    result.bytes = 28.0 * static_cast<double>(parameters);  // four arrays read, three written
    return result;
  });
}
