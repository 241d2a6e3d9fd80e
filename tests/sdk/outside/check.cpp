// Trains with the plugins of this folder, which are among those of the installed Tenon, and compares their results with
// their definitions and their gradients with finite differences; prints a line for each plugin.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <tenon/tenon.hpp>

namespace {

using Numbers = std::vector<double>;
constexpr int64_t kSamples = 8;

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// Returns `count` numbers in [-1, 1), the same ones for the same seed.
Numbers draw(int64_t count, uint64_t seed) {
  Numbers result(static_cast<size_t>(count));
  for (double& number : result) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    number = static_cast<double>(seed >> 33U) / 1073741824.0 - 1;
  }
  return result;
}

// Returns the elements of an array of float32 or float64.
Numbers numbers(const tenon::Array& array) {
  Numbers result(static_cast<size_t>(array.count()));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = array.dtype == TN_F64 ? static_cast<const double*>(array.data)[i]
                                      : static_cast<double>(static_cast<const float*>(array.data)[i]);
  return result;
}

// Returns the largest difference of two lists of equal length, relative to the largest number of the second.
double difference(const Numbers& a, const Numbers& b) {
  double error = 0, largest = 0;
  expect(a.size() == b.size() && !a.empty(), "two lists of different lengths");
  for (size_t i = 0; i < a.size(); ++i) {
    error = std::max(error, std::isfinite(a[i]) ? std::fabs(a[i] - b[i]) : INFINITY);
    largest = std::max(largest, std::fabs(b[i]));
  }
  return error / largest;
}

// One minibatch: x [samples, ...] and target [samples].
struct Batch {
  Numbers x, target;
};

tenon::Layer data(const tenon::Host& host, const std::string& name, std::vector<int64_t> shape) {
  tenon::DataOptions options;
  options.name = name, options.dtype = TN_COMPUTE, options.shape = std::move(shape);
  return host.data(options);
}

// x -> ... -> the tested layer -> fc with one output -> the squared distance from target.
struct Model {
  Model(const tenon::Host& of, const tenon::Layer& tested)
      : host(of),
        layer(tested),
        cost(host.layer("square_error",
                        {host.layer("fc", {tested}, {{"size", 1}}, "score"), data(host, "target", {1})})),
        parameters(host.parameters({cost}, 1)) {}

  tenon::Host host;
  tenon::Layer layer, cost;
  tenon::Parameters parameters;
};

// A machine on a model, in float32 or float64.
class Machine {
 public:
  Machine(const Model& model, tn_dtype compute, bool training) : compute_(compute), model_(model) {
    tenon::MachineOptions options;
    options.max_samples = kSamples, options.training = training, options.keep_all = true, options.compute = compute;
    machine_ = model.host.machine(model.parameters, {model.cost}, options);
  }
  // Returns the cost of a minibatch.
  double forward(const Batch& batch) const {
    const auto samples = static_cast<int64_t>(batch.target.size());
    const auto features = static_cast<int64_t>(batch.x.size()) / samples;
    const std::vector<float> x(batch.x.begin(), batch.x.end()), target(batch.target.begin(), batch.target.end());
    const auto values = [&](const auto& wide, const auto& narrow, std::vector<int64_t> shape) -> tenon::Array {
      if (compute_ == TN_F64) return {TN_F64, std::move(shape), wide.data()};
      return {TN_F32, std::move(shape), narrow.data()};
    };
    machine_.forward(
        {{"x", values(batch.x, x, {samples, features})}, {"target", values(batch.target, target, {samples, 1})}});
    return machine_.cost();
  }
  [[nodiscard]] Numbers output(const tenon::Layer& layer) const { return numbers(machine_.output(layer)); }
  [[nodiscard]] Numbers output() const { return output(model_.layer); }
  [[nodiscard]] const tenon::Machine& get() const { return machine_; }

 private:
  tn_dtype compute_;
  const Model& model_;
  tenon::Machine machine_;
};

// Returns the sum of `times` equal gradients of a parameter, each after the minibatches of `history`, whose own
// gradients are left out.
Numbers gradient(const Model& model, tn_dtype compute, const std::string& name, const std::vector<Batch>& history,
                 const Batch& batch, int times = 1) {
  const Machine machine(model, compute, true);
  for (int i = 0; i < times; ++i) {
    machine.get().reset_carried();
    for (const Batch& before : history) machine.forward(before);
    machine.forward(batch);
    machine.get().backward();
  }
  return numbers(machine.get().gradient(name));
}

// Returns the central differences of the cost: the parameter has other values in the last minibatch alone.
Numbers differences(const Model& model, const std::string& name, const std::vector<Batch>& history,
                    const Batch& batch) {
  const Machine machine(model, TN_F64, true);
  const tenon::Array array = model.parameters.get(name);
  const std::vector<int64_t> shape = array.shape;
  const auto* first = static_cast<const float*>(array.data);
  const std::vector<float> values(first, first + array.count());
  Numbers result;
  for (size_t i = 0; i < values.size(); ++i) {
    double at[2], cost[2];
    for (int side = 0; side < 2; ++side) {
      std::vector<float> moved = values;
      moved[i] += side == 0 ? -1e-4F : 1e-4F;
      at[side] = static_cast<double>(moved[i]);
      machine.get().reset_carried();
      for (const Batch& before : history) machine.forward(before);
      model.parameters.set(name, {TN_F32, shape, moved.data()});
      cost[side] = machine.forward(batch);
      model.parameters.set(name, {TN_F32, shape, values.data()});
    }
    result.push_back((cost[1] - cost[0]) / (at[1] - at[0]));
  }
  return result;
}

// Compares the gradients of the parameters; returns the largest error of those in float64.
double check_gradients(const Model& model, const std::vector<std::string>& names, const std::vector<Batch>& history,
                       const Batch& batch) {
  double worst = 0;
  for (const std::string& name : names) {
    const Numbers exact = gradient(model, TN_F64, name, history, batch);
    const double error = difference(exact, differences(model, name, history, batch));
    expect(error < 1e-5, name + ": the gradient differs from finite differences by " + std::to_string(error));
    const double narrow = difference(gradient(model, TN_F32, name, history, batch), exact);
    expect(narrow < 1e-4, name + ": the gradient in float32 differs by " + std::to_string(narrow));
    Numbers twice = exact;
    for (double& number : twice) number *= 2;
    for (const tn_dtype compute : {TN_F32, TN_F64}) {
      const double sum = difference(gradient(model, compute, name, history, batch, 2), twice);
      expect(sum < 1e-4, name + ": the sum of two gradients differs by " + std::to_string(sum));
    }
    worst = std::max(worst, error);
  }
  return worst;
}

// Trains on minibatches in turn; returns the mean costs of the first and last tenth of the steps.
struct Costs {
  double first = 0, last = 0;
};
Costs train(const Model& model, const std::vector<Batch>& batches, int steps, const std::string& kernel) {
  const Machine machine(model, TN_F32, true);
  expect(machine.get().plan().find("\"" + kernel + "\"") != std::string::npos, "the plan lacks " + kernel);
  const tenon::Updater updater = model.host.updater("adam", {{"learning_rate", 0.02}});
  Costs costs;
  for (int step = 0; step < steps; ++step) {
    const double cost = machine.forward(batches[static_cast<size_t>(step) % batches.size()]);
    machine.get().backward();
    updater.update(machine.get());
    if (step < steps / 10) costs.first += cost * 10 / steps;
    if (step >= steps - steps / 10) costs.last += cost * 10 / steps;
  }
  expect(costs.last < 0.2 * costs.first,
         kernel + ": the cost goes from " + std::to_string(costs.first) + " to " + std::to_string(costs.last));
  return costs;
}

void print(const char* name, const Costs& costs, double error) {
  std::printf("%-10s cost %.4f to %.4f, gradients within %.1e\n", name, costs.first, costs.last, error);
}

// ---- batch norm

// One step moves the buffers by a tenth of the way to the statistics of the minibatch.
void check_moving(const Model& model, const tenon::Layer& in, const Batch& batch, int64_t channels) {
  const Machine machine(model, TN_F32, true);
  const Numbers old_mean = numbers(model.parameters.get("norm.moving_mean"));
  const Numbers old_variance = numbers(model.parameters.get("norm.moving_variance"));
  machine.forward(batch);
  const Numbers x = machine.output(in);
  machine.get().backward();
  model.host.updater("sgd", {{"learning_rate", 0.01}}).update(machine.get());
  Numbers mean, variance;
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < kSamples; ++i) sum += x[static_cast<size_t>(i * channels + c)];
    for (int64_t i = 0; i < kSamples; ++i)
      squares += std::pow(x[static_cast<size_t>(i * channels + c)] - sum / kSamples, 2);
    const auto at = static_cast<size_t>(c);
    mean.push_back(0.9 * old_mean[at] + 0.1 * sum / kSamples);
    variance.push_back(0.9 * old_variance[at] + 0.1 * squares / kSamples);
  }
  expect(difference(numbers(model.parameters.get("norm.moving_mean")), mean) < 1e-5, "the moving mean");
  expect(difference(numbers(model.parameters.get("norm.moving_variance")), variance) < 1e-5, "the moving variance");
}

// A machine that does not train normalises by the buffers, a sample at a time too, and leaves them as they are.
void check_answers(const Model& model, const tenon::Layer& in, const Batch& batch, int64_t channels) {
  for (const tn_dtype compute : {TN_F32, TN_F64}) {
    const Machine machine(model, compute, false);
    const auto read = [&](const char* name) { return numbers(model.parameters.get(name)); };
    const Numbers mean = read("norm.moving_mean"), variance = read("norm.moving_variance");
    const Numbers scale = read("norm.scale"), shift = read("norm.shift");
    machine.forward({{batch.x.begin(), batch.x.begin() + 4}, {batch.target.front()}});
    const Numbers x = machine.output(in), out = machine.output();
    expect(out.size() == static_cast<size_t>(channels), "one sample");
    Numbers right;
    for (size_t c = 0; c < out.size(); ++c)
      right.push_back(scale[c] * (x[c] - mean[c]) / std::sqrt(variance[c] + 1e-5) + shift[c]);
    expect(difference(out, right) < 1e-5, "an answer of the batch norm");
    expect(read("norm.moving_mean") == mean && read("norm.moving_variance") == variance, "an answer moved the buffers");
  }
}

void batch_norm(const tenon::Host& host) {
  const tenon::Layer in = host.layer("fc", {data(host, "x", {4})}, {{"size", 3}}, "in");
  const Model model(host, host.layer("outside.batch_norm", {in}, {}, "norm"));
  Batch batch = {draw(kSamples * 4, 1), {}};
  for (size_t i = 0; i < kSamples; ++i) batch.target.push_back(batch.x[4 * i] - 3 * batch.x[4 * i + 1] + 2);
  const double error = check_gradients(model, {"in.weight", "norm.scale", "norm.shift", "score.weight"}, {}, batch);
  check_moving(model, in, batch, 3);
  const Costs costs = train(model, {batch}, 300, "outside_batch_norm");
  check_answers(model, in, batch, 3);
  print("batch norm", costs, error);
}

// ---- max pool

// Windows of 3 x 3 pixels of two channels, every second pixel, of an image [7, 5, 2].
void check_maxima(const tenon::Host& host) {
  const Model model(host, host.layer("outside.max_pool", {data(host, "x", {7 * 5 * 2})},
                                     {{"height", 7}, {"width", 5}, {"channels", 2}, {"window", 3}, {"stride", 2}}));
  const Batch batch = {draw(kSamples * 70, 5), Numbers(kSamples)};
  Numbers right;
  for (size_t i = 0; i < kSamples * 3 * 2 * 2; ++i) {
    const size_t sample = i / 12, row = i / 4 % 3 * 2, column = i / 2 % 2 * 2, channel = i % 2;
    double best = -1;
    for (size_t y = row; y < row + 3; ++y)
      for (size_t x = column; x < column + 3; ++x)
        best = std::max(best, batch.x[((sample * 7 + y) * 5 + x) * 2 + channel]);
    right.push_back(best);
  }
  for (const tn_dtype compute : {TN_F32, TN_F64}) {
    const Machine machine(model, compute, false);
    machine.forward(batch);
    expect(difference(machine.output(), right) < 1e-6, "the maxima");
  }
}

void max_pool(const tenon::Host& host) {
  check_maxima(host);
  const tenon::Layer flat = host.layer("fc", {data(host, "x", {4})}, {{"size", 4 * 4 * 2}}, "in");
  const tenon::Layer in = host.layer("reshape", {flat}, {{"shape", std::vector<int64_t>{4, 4, 2}}});
  const Model model(host, host.layer("outside.max_pool", {in},
                                     {{"height", 4}, {"width", 4}, {"channels", 2}, {"window", 2}, {"stride", 1}}));
  Batch batch = {draw(kSamples * 4, 2), {}};
  for (size_t i = 0; i < kSamples; ++i) batch.target.push_back(std::fabs(2 * batch.x[4 * i]) + batch.x[4 * i + 1]);
  const double error = check_gradients(model, {"in.weight", "in.bias", "score.weight"}, {}, batch);
  print("max pool", train(model, {batch}, 300, "outside_max_pool"), error);
}

// ---- LSTM

// Minibatch t has number t of kSamples sequences of signs; the target is the sign of the minibatch before.
std::vector<Batch> delayed(int64_t steps) {
  const Numbers signs = draw((steps + 1) * kSamples, 3);
  std::vector<Batch> result(static_cast<size_t>(steps));
  for (size_t i = 0; i < result.size() * kSamples; ++i) {
    result[i / kSamples].x.push_back(signs[i + kSamples] < 0 ? -1 : 1);
    result[i / kSamples].target.push_back(signs[i] < 0 ? -1 : 1);
  }
  return result;
}

// The output depends on the minibatches before, until a reset.
void check_carried(const Model& model, const std::vector<Batch>& batches) {
  for (const tn_dtype compute : {TN_F32, TN_F64})
    for (const bool training : {false, true}) {
      const Machine machine(model, compute, training);
      machine.forward(batches[0]);
      const Numbers first = machine.output();
      machine.forward(batches[0]);
      expect(difference(machine.output(), first) > 0.01, "the state is not carried");
      machine.get().reset_carried();
      machine.forward(batches[0]);
      expect(machine.output() == first, "the state is not reset");
    }
}

void lstm(const tenon::Host& host) {
  const Model model(host, host.layer("outside.lstm", {data(host, "x", {1})}, {{"size", 6}}, "cell"));
  const std::vector<Batch> batches = delayed(50);
  check_carried(model, batches);
  const double error = check_gradients(model, {"cell.weight", "cell.recurrent", "cell.bias", "score.weight"},
                                       {batches[0], batches[1]}, batches[2]);
  print("LSTM", train(model, batches, 500, "outside_lstm"), error);
}

// ---- the plugin in Rust: in float32 its kernel, in float64 its body

void check_panic(const tenon::Host& host) {
  const Model model(host, host.layer("outside.swish", {data(host, "x", {4})}, {{"panic", 1}}, "broken"));
  const Machine machine(model, TN_F32, true);
  try {
    machine.forward({draw(4, 1), {1}});
  } catch (const tenon::Error& error) {
    const std::string text = error.what();
    expect(text.find("broken") != std::string::npos, "the message does not name the layer: " + text);
    expect(text.find("the attribute \"panic\" asks for it, at 4 elements") != std::string::npos, text);
    return;
  }
  expect(false, "a panic is not an error");
}

void swish(const tenon::Host& host) {
  check_panic(host);
  const tenon::Layer in = host.layer("fc", {data(host, "x", {4})}, {{"size", 300}}, "in");  // more than one block
  const Model model(host, host.layer("outside.swish", {in}, {{"beta", 1.5}}, "swish"));
  Batch batch = {draw(kSamples * 4, 4), {}};
  for (size_t i = 0; i < kSamples; ++i) batch.target.push_back(batch.x[4 * i] * batch.x[4 * i + 1]);
  const double error = check_gradients(model, {"in.bias", "score.weight"}, {}, batch);
  print("swish", train(model, {batch}, 50, "outside_swish"), error);
  check_panic(host);
}

}  // namespace

int main() {
  try {
    tenon::HostOptions options;
    options.check = TN_CHECK_ON;
    const tenon::Host host(options);
    batch_norm(host);
    max_pool(host);
    lstm(host);
    swish(host);
    return 0;
  } catch (const std::exception& error) {
    std::printf("check: %s\n", error.what());
    return 1;
  }
}
