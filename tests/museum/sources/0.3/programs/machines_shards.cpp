#include <cstdio>
#include <tenon/tenon_machine.hpp>
#include <vector>

int main() try {
  const tenon::Host host;
  tenon::DataOptions x, y;
  x.name = "x", x.shape = {2};
  y.name = "y", y.shape = {1};
  const tenon::Layer score = host.layer("fc", {host.data(x)}, {{"size", 1}}, "score");
  const tenon::Layer cost = host.layer("square_error", {score, host.data(y)}, {}, "cost");
  const tenon::Parameters parameters = host.parameters({cost}, 1);
  tenon::MachineOptions options;
  options.max_samples = 5, options.training = true;
  options.devices = {"cpu", "cpu"};  // with GPUs {"cuda:0", "cuda:1"}: here 3 and 2 samples on one device
  const tenon::Machine machine = host.machine(parameters, {cost, score}, options);
  const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 0.1}});

  const std::vector<float> points = {1, 2, 2, 0, -1, -3, 2, -1, -2, 1}, sums = {3, 2, -4, 1, -1};
  for (int step = 0; step < 100; ++step) {
    machine.forward({{"x", {TN_F32, {5, 2}, points.data()}}, {"y", {TN_F32, {5, 1}, sums.data()}}});
    machine.backward();
    updater.update(machine);
  }
  std::printf("cost %.4f of %d samples\n", machine.cost(), static_cast<int>(machine.output(score).shape[0]));
  return machine.cost() < 0.01 ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
