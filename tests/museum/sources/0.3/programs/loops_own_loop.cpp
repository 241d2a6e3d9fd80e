#include <cstdio>
#include <tenon/tenon.hpp>
#include <tenon/tenon_updater.hpp>
#include <vector>

struct Loop {
  explicit Loop(const char* file = nullptr) {
    tenon::DataOptions x, y;
    x.name = "x", x.shape = {2};
    y.name = "y", y.shape = {1};
    if (file == nullptr) {
      const tenon::Layer hidden =
          host.layer("fc", {host.data(x)}, {{"size", 8}, {"act", "tanh"}, {"drop_rate", 0.1}}, "hidden");
      const tenon::Layer fit = host.layer("fc", {hidden}, {{"size", 1}}, "fit");
      outputs = {host.layer("square_error", {fit, host.data(y)}, {}, "cost")};
      parameters = host.parameters(outputs, 1);
    } else {
      const tenon::Model model = host.load(file);
      outputs = model.outputs;
      parameters = model.parameters;
    }
    tenon::MachineOptions options;
    options.max_samples = 4;
    options.training = true;
    machine = host.machine(parameters, outputs, options);
    updater = host.updater("adam", {{"learning_rate", 0.05}});
  }
  // Steps `first` to `last`, the latter not included.
  void run(int first, int last) const {
    const tenon::Metrics metrics(machine);
    for (int step = first; step < last; ++step) {
      std::vector<float> xs, ys;
      for (int i = 0; i < 4; ++i) {
        const float a = 0.1F * static_cast<float>(step), b = 0.25F * static_cast<float>(i);
        xs.insert(xs.end(), {a, b});
        ys.push_back(a * b);
      }
      machine.forward({{"x", {TN_F32, {4, 2}, xs.data()}}, {"y", {TN_F32, {4, 1}, ys.data()}}});
      metrics.append(machine);
      machine.backward();
      updater.update(machine);
    }
    const tenon::Metrics::Values values = metrics.read();
    std::printf("steps %d to %d: cost %.5f of %d samples\n", first, last - 1, values.cost,
                static_cast<int>(values.samples));
  }

  tenon::Host host;
  tenon::Layers outputs;
  tenon::Parameters parameters;
  tenon::Machine machine;
  tenon::Updater updater;
};

int main() try {
  const Loop whole;
  whole.run(0, 10);

  const Loop first;
  first.run(0, 6);
  tenon::UpdaterState(first.updater, first.parameters).save("loop.safetensors", first.outputs);

  const Loop rest("loop.safetensors");
  tenon::UpdaterState(rest.updater, rest.parameters).load("loop.safetensors");
  rest.run(6, 10);
  const auto weight = [](const Loop& of) {
    return *static_cast<const float*>(of.parameters.get("hidden.weight").data);
  };
  std::printf("%.9g and %.9g\n", weight(whole), weight(rest));  // equal
  return weight(whole) == weight(rest) ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
