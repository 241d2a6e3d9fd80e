#include <cstdio>
#include <tenon/tenon.hpp>
#include <vector>

// Points of a parabola, which are read by index.
struct Points {
  static std::int64_t size() { return 100; }
  static void read(std::int64_t index, tenon::Sample& sample) {
    const double x = static_cast<double>(index) / 50 - 1;
    sample.set("x", {x});
    sample.set("y", {x * x});
  }
};

// Everything that each process makes in the same way.
tenon::TrainOptions training() {
  const tenon::Host host;
  tenon::DataOptions x, y;
  x.name = "x", x.shape = {1};
  y.name = "y", y.shape = {1};
  const tenon::Layer hidden = host.layer("fc", {host.data(x)}, {{"size", 8}, {"act", "tanh"}}, "hidden");
  const tenon::Layer fit = host.layer("fc", {hidden}, {{"size", 1}}, "fit");
  tenon::TrainOptions options;
  options.outputs = {host.layer("square_error", {fit, host.data(y)}, {}, "cost")};
  options.parameters = host.parameters(options.outputs, 1);
  options.updater = host.updater("adam", {{"learning_rate", 0.01}});
  options.reader = host.reader({{"x", TN_F32, {1}}, {"y", TN_F32, {1}}}, Points()).shuffle(1).batch(10);
  options.passes = 4;
  return options;
}

int main() try {
  tenon::TrainOptions whole = training();
  tenon::train(whole);

  tenon::TrainOptions first = training();
  first.checkpoint.emplace();
  first.checkpoint->folder = "parabola";
  first.checkpoint->every_batches = 100;
  first.handler = [](tenon::Event& event) {
    if (event.kind() == TN_END_ITERATION && event.pass() == 1 && event.batch() == 4) event.stop();
    if (event.kind() == TN_CHECKPOINT) std::printf("wrote %s\n", event.checkpoint().c_str());
  };
  tenon::train(first);  // wrote parabola/checkpoint-1-5.safetensors

  tenon::TrainOptions rest = training();
  rest.checkpoint = first.checkpoint;
  rest.checkpoint->start = TN_START_RESUME;
  tenon::train(rest);
  const auto weight = [](const tenon::TrainOptions& of) {
    return *static_cast<const float*>(of.parameters.get("hidden.weight").data);
  };
  std::printf("%.9g and %.9g\n", weight(whole), weight(rest));  // equal
  return weight(whole) == weight(rest) ? 0 : 1;
} catch (const tenon::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
