#include <atomic>
#include <cstdio>
#include <tenon/tenon.hpp>
#include <tenon/tenon_lease.hpp>
#include <tenon/tenon_predictor.hpp>
#include <thread>
#include <vector>

int main() {
  const tenon::Host host;
  const auto x = host.data({"x", TN_F32, {1}});
  const auto y = host.data({"y", TN_F32, {1}});
  const auto line = host.layer("fc", {x}, {{"size", 1}}, "line");
  const auto cost = host.layer("square_error", {line, y}, {}, "cost");
  const auto parameters = host.parameters({cost}, 1);

  std::vector<float> xs, ys;  // y = 3 x - 1
  for (int i = 0; i < 64; ++i) {
    xs.push_back(static_cast<float>(i % 8) / 4 - 1);
    ys.push_back(3 * xs.back() - 1);
  }
  const tenon::Predictor predictor(parameters, {line});
  std::atomic<bool> trained{false};
  std::atomic<long> answers{0};
  const auto serve = [&] {
    while (!trained) {
      const float at = 2;
      predictor.predict({{"x", {TN_F32, {1, 1}, &at}}},
                        [&](const std::vector<tenon::Array>&) { ++answers; });
    }
  };
  std::thread first(serve), second(serve);

  tenon::MachineOptions options;
  options.max_samples = 64;
  options.training = true;
  const auto machine = host.machine(parameters, {cost}, options);
  const auto updater = host.updater("sgd", {{"learning_rate", 0.1}});
  for (int step = 0; step < 400; ++step) {
    machine.forward({{"x", {TN_F32, {64, 1}, xs.data()}}, {"y", {TN_F32, {64, 1}, ys.data()}}});
    machine.backward();
    updater.update(machine);
    if (step % 100 == 99) predictor.refresh(parameters);
  }
  trained = true;
  first.join();
  second.join();

  const float at = 2;
  predictor.predict({{"x", {TN_F32, {1, 1}, &at}}}, [](const std::vector<tenon::Array>& outputs) {
    std::printf("f(2) = %.2f\n", static_cast<const float*>(outputs[0].data)[0]);
  });
  std::printf("weight %.2f\n", tenon::read(parameters, "line.weight")[0]);
}
