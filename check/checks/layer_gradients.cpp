// SPDX-License-Identifier: Apache-2.0
#include "check/checks/layer_gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>

#include "check/checks/each_case.h"

namespace tenon::check {

namespace {

// The objective of a layer as a function of one element of a fed input or of a parameter.
class Slope {
 public:
  Slope(Bench& bench, tn_dtype compute) : bench_(bench), compute_(compute), machine_(bench.machine(compute, true)) {}

  void choose_input(size_t i) { input_ = i, parameter_.clear(); }
  void choose_parameter(const std::string& name) {
    parameter_ = name;
    const Numbers stored = numbers_of(bench_.parameters().get(name));
    values_.assign(stored.begin(), stored.end());
  }
  double at(size_t element, double moved_by) {
    if (parameter_.empty()) {
      double& value = bench_.values(input_)[element];
      const double kept = value;
      value = kept + moved_by;
      const double result = objective();
      value = kept;
      return result;
    }
    const float kept = values_[element];
    values_[element] = static_cast<float>(static_cast<double>(kept) + moved_by);
    store();
    const double result = objective();
    values_[element] = kept;
    store();
    return result;
  }

  // Whether moves by multiples of this are exact: parameters are stored in fp32.
  [[nodiscard]] bool is_exact(size_t element, double moved_by) const {
    if (parameter_.empty()) return true;
    const double kept = static_cast<double>(values_[element]), moved = kept + moved_by;
    return static_cast<double>(static_cast<float>(moved)) == moved;
  }

 private:
  void store() {
    bench_.parameters().set(parameter_, {TN_F32, bench_.parameters().get(parameter_).shape, values_.data()});
  }
  double objective() {
    bench_.forward(machine_, compute_, Bench::all());
    return bench_.objective(machine_);
  }

  Bench& bench_;
  tn_dtype compute_;
  Machine machine_;
  size_t input_ = 0;
  std::string parameter_;
  std::vector<float> values_;
};

struct Precision {
  double step, tolerance;
  double kink;   // share by which the slopes on both sides of a kink differ
  bool is_wide;  // enough for small steps
};
constexpr Precision kWide = {1.0 / 256, 2e-6, 1e-2, true}, kNarrow = {1.0 / 16, 3e-2, 0.1, false};

// The derivative by central differences of fourth order, and the size of their error.
struct Estimate {
  double slope, error;
};
Estimate estimate(Slope& slope, size_t element, double step) {
  const double one = slope.at(element, step) - slope.at(element, -step);
  const double two = slope.at(element, 2 * step) - slope.at(element, -2 * step);
  const double half = slope.at(element, step / 2) - slope.at(element, -step / 2);
  const double coarse = (8 * one - two) / (12 * step), fine = (8 * half - one) / (6 * step);
  return {fine, std::abs(fine - coarse)};
}

// Whether the gradient lies between the slopes on both sides, as it may at a kink.
bool between_slopes(Slope& slope, size_t element, double gradient, double room) {
  constexpr double kStep = 1.0 / 1024;
  const double here = slope.at(element, 0);
  const double left = (here - slope.at(element, -kStep)) / kStep, right = (slope.at(element, kStep) - here) / kStep;
  if (!std::isfinite(left) || !std::isfinite(right)) return true;  // at the edge of the domain
  return gradient >= std::min(left, right) - room && gradient <= std::max(left, right) + room;
}

// Whether the slopes on both sides, of second order, differ: the layer has no derivative there, and its gradient may be
// that of either side, or another where several inputs are equal. Central differences do not see a kink.
bool is_kink(Slope& slope, size_t element, const Precision& precision, double scale) {
  const double step = precision.step / 4, here = slope.at(element, 0);
  const double left = (3 * here - 4 * slope.at(element, -step) + slope.at(element, -2 * step)) / (2 * step);
  const double right = (4 * slope.at(element, step) - 3 * here - slope.at(element, 2 * step)) / (2 * step);
  return std::abs(left - right) > precision.kink * std::max({scale, std::abs(left), std::abs(right)});
}

// Whether the gradient is the slope on one side over steps that cross no kink. Where thousands of elements are ordered,
// longer ones cross changes of rank, each of which is too small for a kink.
bool is_slope_nearby(Slope& slope, size_t element, double gradient, double room) {
  const double here = slope.at(element, 0);
  for (const int exponent : {-12, -16, -20})
    for (const double step : {std::ldexp(1, exponent), -std::ldexp(1, exponent)}) {
      if (!slope.is_exact(element, step / 2)) continue;
      const double half = slope.at(element, step / 2), one = slope.at(element, step), two = slope.at(element, 2 * step);
      const double coarse = (4 * one - 3 * here - two) / (2 * step), fine = (4 * half - 3 * here - one) / step;
      if (std::abs(coarse - fine) <= room && std::abs(gradient - fine) <= room) return true;
    }
  return false;
}

constexpr size_t kMost = 10;  // elements that are compared

// The element to compare as number `n`. Of long rows each part is compared, so that no block of a loop is left out.
size_t chosen(size_t n, size_t size, size_t row, std::mt19937_64& random) {
  constexpr size_t kLongRow = 1024;
  if (size <= kMost) return n;
  if (row < kLongRow) return random() % size;
  const size_t column = row * n / kMost + random() % (row / kMost);
  return random() % (size / row) * row + column;
}

// row: elements of a row. Returns the number of elements that were left out, since the layer has a kink there.
size_t compare(Context& context, Slope& slope, const Numbers& gradient, size_t row, const std::string& name,
               const Precision& precision, std::mt19937_64& random) {
  size_t kinks = 0;
  const double scale = std::max(largest_of(gradient), 1e-2);
  for (size_t n = 0; n < std::min(kMost, gradient.size()); ++n) {
    const size_t element = chosen(n, gradient.size(), row, random);
    const Estimate differences = estimate(slope, element, precision.step);
    const double off = std::abs(gradient[element] - differences.slope);
    const double room = precision.tolerance * std::max(scale, std::abs(differences.slope));
    const bool smooth = differences.error <= 100 * room;
    bool good = off <= room + 4 * (smooth ? differences.error : 0) ||
                (!smooth && between_slopes(slope, element, gradient[element], 0.02 * std::max(scale, 1.0)));
    if (!good && is_kink(slope, element, precision, scale)) {
      ++kinks;
      continue;
    }
    if (!good && precision.is_wide && off <= precision.kink * std::max(scale, std::abs(differences.slope)))
      good = is_slope_nearby(slope, element, gradient[element], room);
    context.expect(good,
                   "the gradient of " + name + "[" + std::to_string(element) + "] is " + shown(gradient[element]) +
                       "; differences of its forward give " + shown(differences.slope) +
                       (largest_of(gradient) > 0 ? ""
                                                 : "; if it has no derivative there on purpose, a case of --cases "
                                                   "says so by gradient = false"));
  }
  return kinks;
}

// Changes every float that is fed and every parameter by up to `share` of itself.
void move_all(Bench& bench, double share, std::mt19937_64& random) {
  const auto moved = [&](double value) { return value * (random() % 2 == 0 ? 1 + share : 1 - share); };
  for (const size_t i : bench.variables())
    for (double& value : bench.values(i)) value = moved(value);
  for (const std::string& name : bench.trained()) {
    const Array stored = bench.parameters().get(name);
    std::vector<float> values;
    for (const double value : numbers_of(stored)) values.push_back(static_cast<float>(moved(value)));
    bench.parameters().set(name, {TN_F32, stored.shape, values.data()});
  }
}

// Changes every float that is fed by up to 2^-6, so that no two are equal.
void separate(Bench& bench, std::mt19937_64& random) {
  for (const size_t i : bench.variables())
    for (double& value : bench.values(i)) value += static_cast<double>(random() % 1024) / 65536;
}

double root_mean_square(const Numbers& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// Compares fp32 with fp64: each element within what the moves change, and rounding of numbers of the usual size.
void expect_near(Context& context, const Numbers& narrow, const Numbers& wide, const std::vector<const Numbers*>& moved,
                 double floor, const std::string& name) {
  context.expect(narrow.size() == wide.size(), name + " has another size in fp32");
  const double usual = root_mean_square(wide);
  for (size_t i = 0; i < wide.size(); ++i) {
    double room = std::max(floor, 2e-5 * std::max(std::abs(wide[i]), usual));
    for (const Numbers* other : moved) room = std::max(room, 16 * std::abs(other->at(i) - wide[i]));
    context.expect(std::abs(narrow[i] - wide[i]) <= room + 1e-30, "element " + std::to_string(i) + " of " + name +
                                                                      " is " + shown(narrow[i]) + " in fp32 and " +
                                                                      shown(wide[i]) + " in fp64");
  }
}

// Compares the gradients of all inputs and parameters. Returns the number of elements that were left out.
size_t compare_all(Context& context, Bench& bench, std::mt19937_64& random) {
  const LayerCase& layer_case = bench.layer_case();
  const tn_dtype compute = offers_fp64(bench) ? TN_F64 : TN_F32;
  const Precision& precision = compute == TN_F64 ? kWide : kNarrow;
  const Step step = bench.step(compute, Bench::all());
  Slope slope(bench, compute);
  size_t kinks = 0;
  for (const size_t i : bench.variables()) {
    if (!layer_case.inputs[i].gradient) continue;
    slope.choose_input(i);
    const std::vector<int64_t>& shape = layer_case.inputs[i].shape;
    kinks +=
        compare(context, slope, step.gradients.at(input_name(i)), shape.empty() ? 1 : static_cast<size_t>(shape.back()),
                "input " + std::to_string(i), precision, random);
  }
  for (const std::string& name : bench.trained()) {
    slope.choose_parameter(name);
    const Numbers& gradient = step.gradients.at(name);
    kinks += compare(context, slope, gradient, gradient.size(), "parameter " + name, precision, random);
  }
  return kinks;
}

}  // namespace

void check_gradient(Context& context) {
  each_case(context, CaseKind::kLarge, [&](const LayerCase& layer_case) {
    if (!layer_case.differentiable) throw Skip("the author's cases say that its gradient is not the derivative");
    Bench bench = bench_of(context, layer_case);
    if (!bench.can_go_back()) throw Skip("it has no derivative");
    if (bench.variables().empty() && bench.trained().empty()) throw Skip("it has neither float inputs nor parameters");
    std::mt19937_64 random(context.subject().seed);
    if (compare_all(context, bench, random) == 0) return;
    separate(bench, random);  // where inputs are equal, a sort or a maximum has a kink
    (void)compare_all(context, bench, random);
  });
}

void check_request(Context& context) {
  each_case(context, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case);
    if (!bench.can_go_back() || bench.trained().empty()) throw Skip("it has no parameters");
    const std::map<std::string, Numbers> all = bench.step(TN_F32, Bench::all()).gradients;
    const auto near = [](const Numbers& a, const Numbers& b, double factor) {
      if (a.size() != b.size()) return false;
      const double room = 1e-5 * std::max(root_mean_square(b), 1e-6);
      for (size_t i = 0; i < a.size(); ++i)
        if (!(std::abs(a[i] - factor * b[i]) <= factor * (room + 1e-5 * std::abs(b[i])))) return false;
      return true;
    };
    const Machine machine = bench.machine(TN_F32, true);
    for (int times = 0; times < 2; ++times) {
      bench.forward(machine, TN_F32, Bench::all());
      bench.backward(machine, TN_F32);
    }
    for (const auto& [name, gradient] : bench.gradients(machine)) {
      const bool parameter = name.rfind("checked", 0) == 0;
      context.expect(near(gradient, all.at(name), parameter ? 2 : 1),
                     parameter ? "a second backward does not add to the gradient of parameter " + name
                               : "a second backward changes the gradient of " + name);
    }
    for (const std::string& name : bench.trained()) {
      std::vector<std::string> others = bench.trained();
      others.erase(std::find(others.begin(), others.end(), name));
      const Machine alone = bench.machine(TN_F32, true, false, others, false);
      bench.forward(alone, TN_F32, Bench::all());
      bench.backward(alone, TN_F32);
      context.expect(near(numbers_of(alone.gradient(name)), all.at(name), 1),
                     "the gradient of parameter " + name + " differs where it alone is wanted");
    }
    if (bench.variables().empty()) return;
    const Machine none = bench.machine(TN_F32, true, false, bench.trained());
    bench.forward(none, TN_F32, Bench::all());
    bench.backward(none, TN_F32);
    for (const size_t i : bench.variables())
      context.expect(near(bench.gradients(none).at(input_name(i)), all.at(input_name(i)), 1),
                     "the gradient of input " + std::to_string(i) + " differs where no parameter's is wanted");
  });
}

void check_float32(Context& context) {
  each_case(context, [&](const LayerCase& layer_case) {
    const Bench bench = bench_of(context, layer_case);
    if (!offers_fp64(bench)) throw Skip("it does not compute in fp64");
    if (bench.is_metric()) throw Skip("the states of a metric are fp64");
    std::mt19937_64 random(context.subject().seed);
    const Step wide = bench.step(TN_F64, Bench::all()), narrow = bench.step(TN_F32, Bench::all());
    std::vector<Step> moved;
    for (int times = 0; times < 3; ++times) {
      Bench other = bench_of(context, layer_case);
      move_all(other, std::ldexp(1, -20), random);
      moved.push_back(other.step(TN_F64, Bench::all()));
    }
    for (size_t k = 0; k < wide.outputs.size(); ++k) {
      std::vector<const Numbers*> others;
      for (const Step& step : moved) others.push_back(&step.outputs[k]);
      expect_near(context, narrow.outputs[k], wide.outputs[k], others, 0, "output " + std::to_string(k));
    }
    double floor = 1e-6;  // gradients whose terms cancel each other are small beside others
    for (const auto& [name, gradient] : wide.gradients) floor = std::max(floor, 1e-5 * root_mean_square(gradient));
    for (const auto& [name, gradient] : wide.gradients) {
      std::vector<const Numbers*> others;
      for (const Step& step : moved) others.push_back(&step.gradients.at(name));
      expect_near(context, narrow.gradients.at(name), gradient, others, floor, "the gradient of " + name);
    }
  });
}

}  // namespace tenon::check
