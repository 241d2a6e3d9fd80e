#include <cstdio>
#include <tenon/tenon.hpp>
#include <thread>

// Points of a parabola, from the first one on.
struct Points {
  double from;
  static std::int64_t size() { return 50; }
  void read(std::int64_t index, tenon::Sample& sample) const {
    const double x = (from + static_cast<double>(index)) / 50 - 1;
    sample.set("x", {x});
    sample.set("y", {x * x});
  }
};

int main() try {
  const tenon::Host host;
  tenon::DataOptions x, y;
  x.name = "x", x.shape = {1};
  y.name = "y", y.shape = {1};
  const tenon::Layer hidden = host.layer("fc", {host.data(x)}, {{"size", 8}, {"act", "tanh"}}, "hidden");
  const tenon::Layer fit = host.layer("fc", {hidden}, {{"size", 1}}, "fit");
  const tenon::Schema schema = {{"x", TN_F32, {1}}, {"y", TN_F32, {1}}};
  tenon::TrainOptions options;
  options.outputs = {host.layer("square_error", {fit, host.data(y)}, {}, "cost"), fit};
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("adam", {{"learning_rate", 0.01}});
  options.reader = host.reader(schema, Points{0}).shuffle(1).batch(10);
  options.passes = 1000;

  options.average.emplace();
  options.average->parameters = host.parameters(options.outputs, 1);
  options.average->decay = 0.9;
  options.test.emplace();  // of the averages, after each pass
  options.test->reader = host.reader(schema, Points{50}).batch(50);
  options.early_stop.emplace();
  options.early_stop->patience = 20;

  options.cancel = tenon::Cancel::make();
  std::thread other;
  options.handler = [&](const tenon::Event& event) {
    if (event.kind() == TN_END_ITERATION && event.pass() == 0)
      std::printf("a prediction: %g\n", *static_cast<const float*>(event.machine().output(fit).data));
    if (event.kind() == TN_TEST && event.pass() == 0) other = std::thread([&] { options.cancel.request(); });
    if (event.kind() == TN_END_TRAINING && event.reason() == TN_REASON_CANCEL) std::puts("cancelled");
  };
  tenon::train(options);
  other.join();
  options.average->parameters.save({fit}, "parabola.safetensors");
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
