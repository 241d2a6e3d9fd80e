#include <cstdio>
#include <tenon/tenon_machine.hpp>
#include <vector>

int main() try {
  const tenon::Host host;
  tenon::DataOptions x, label;
  x.name = "x", x.shape = {2};
  label.name = "label", label.dtype = TN_I64, label.index_limit = 2;
  const tenon::Layer score = host.layer("fc", {host.data(x)}, {{"size", 2}}, "score");
  const tenon::Layer cost = host.layer("cross_entropy", {score, host.data(label)}, {{"from_logits", true}}, "cost");
  const tenon::Parameters parameters = host.parameters({cost}, 1);
  tenon::MachineOptions options;
  options.max_samples = 4, options.training = true;
  const tenon::Machine machine = host.machine(parameters, {cost}, options);
  const tenon::Updater updater = host.updater("sgd", {{"learning_rate", 1.0}});

  const std::vector<float> points = {1, 2, -1, -3, 2, -1, -2, 1};
  const std::vector<unsigned char> signs = {1, 0, 1, 0};  // widened to int64
  double first = 0;
  for (int step = 0; step < 50; ++step) {
    machine.forward({{"x", {TN_F32, {4, 2}, points.data()}}, {"label", {TN_U8, {4}, signs.data()}}});
    if (step == 0) first = machine.cost();
    machine.backward();
    updater.update(machine);
  }
  std::printf("cost %.3f, at first %.3f\n", machine.cost(), first);

  tenon::InferOptions infer;  // all samples in one call
  infer.outputs = {score}, infer.parameters = parameters;
  infer.feeds = {{"x", {TN_F32, {4, 2}, points.data()}}};
  const tenon::Inferred<float> result = tenon::infer_arrays(infer).at(0);
  for (size_t i = 0; i < 4; ++i)
    std::printf("%g %g: %s\n", double{points[2 * i]}, double{points[2 * i + 1]},
                result.values[2 * i + 1] > result.values[2 * i] ? "+" : "-");
  return machine.cost() < first ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
