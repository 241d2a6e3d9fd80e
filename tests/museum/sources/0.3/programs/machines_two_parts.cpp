#include <cstdio>
#include <tenon/tenon_machine.hpp>
#include <vector>

int main() try {
  const tenon::Host host;
  const auto data = [&](const char* name, int64_t size) {
    tenon::DataOptions options;
    options.name = name, options.shape = {size};
    return host.data(options);
  };
  const tenon::Layer features = host.layer("fc", {data("x", 3)}, {{"size", 4}, {"act", "tanh"}}, "features");
  const tenon::Layer score = host.layer("fc", {data("features_in", 4)}, {{"size", 1}}, "score");
  const tenon::Layer cost = host.layer("square_error", {score, data("y", 1)}, {}, "cost");
  const tenon::Parameters lower = host.parameters({features}, 1), upper = host.parameters({cost}, 2);
  tenon::MachineOptions options;
  options.max_samples = 2, options.training = true;
  options.flags = TN_MACHINE_GIVEN_GRADIENTS;
  const tenon::Machine first = host.machine(lower, {features}, options);
  options.flags = TN_MACHINE_DATA_GRADIENTS;
  const tenon::Machine second = host.machine(upper, {cost}, options);
  const tenon::Updater of_first = host.updater("sgd", {{"learning_rate", 0.1}});
  const tenon::Updater of_second = host.updater("sgd", {{"learning_rate", 0.1}});

  const std::vector<float> x = {1, 0, -1, 2, 1, 0}, y = {1, -1};
  double before = 0;
  for (int step = 0; step < 100; ++step) {
    first.forward({{"x", {TN_F32, {2, 3}, x.data()}}});
    second.forward({{"features_in", first.output(features)}, {"y", {TN_F32, {2, 1}, y.data()}}});
    if (step == 0) before = second.cost();
    second.backward();
    tenon::backward_from(first, {{features, tenon::data_gradient(second, "features_in")}});
    of_first.update(first);
    of_second.update(second);
  }
  std::printf("cost %.4f, at first %.4f\n", second.cost(), before);
  return second.cost() < before / 10 ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
