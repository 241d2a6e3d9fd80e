// Metrics of how far predictions agree with labels: the coefficient of determination, correlation.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "metrics.h"

namespace tenon::metrics {

namespace {

using tn::Float;

// Sums of squares about a mean cancel where the mean is large beside the spread. So a minibatch gives its sums about a
// centre of its own, with what they need to be moved to 0: the host adds in double precision, and so does the result.
// All that a float cannot hold exactly is given as two, whose sum is exact to 48 bits.
struct Parts {
  Float high, low;
};

// a * b, for numbers below 2^115 (Dekker, "A floating-point technique for extending the available precision", 1971).
Parts product(const Float& a, const Float& b) {
  const auto split = [](const Float& x) {
    const Float wide = x * 4097.0;
    const Float high = wide - (wide - x);
    return Parts{high, x - high};
  };
  const Parts p = split(a), q = split(b);
  const Float whole = a * b;
  const Float rest = ((p.high * q.high - whole) + p.high * q.low + p.low * q.high) + p.low * q.low;
  return {whole, rest};
}

// count * a * b
Parts product(const Float& count, const Float& a, const Float& b) {
  const Parts inner = product(a, b);
  const Parts outer = product(count, inner.high);
  return {outer.high, outer.low + count * inner.low};
}

// The state, two numbers for each sum over all elements.
enum : uint32_t { kCount = 0, kX = 2, kY = 4, kXX = 6, kYY = 8, kXY = 10, kDifference = 12, kStates = 14 };

// A sum of squares about a mean that is rounding, of equal numbers: they were squared as `whole`.
double about_mean(double squares, double whole) { return squares <= 1e-13 * whole ? 0 : squares; }  // NaN stays

struct Moments {
  double count, xx, yy, xy, difference;  // sums of products about the means; of (x - y)^2
};

double state_sum(const double* state, uint32_t which) { return state[which] + state[which + 1]; }

Moments moments_of(const double* state) {
  const double n = state_sum(state, kCount);
  if (!(n > 0)) return {};
  const double x = state_sum(state, kX), y = state_sum(state, kY);
  const double xx = state_sum(state, kXX), yy = state_sum(state, kYY);
  return {n, about_mean(xx - x * x / n, xx), about_mean(yy - y * y / n, yy), state_sum(state, kXY) - x * y / n,
          state_sum(state, kDifference)};
}

void describe_pair(tn::LayerDescription& d) {
  d.role(TN_ROLE_METRIC);
  d.input("input", "[samples, ...]: the prediction");
  d.input("label", "the shape of the input, except for trailing ones: what is right");
}

void lower_pair(tn::Builder& body) {
  tn::Program program;
  const Float x = program.full();
  const Float y = program.full();
  const Float count = sum_all(to_float(program.row() >= 0) + 0.0 * to_float(program.column()));
  const Float divisor = max(count, 1.0);
  const Float a = sum_all(x) / divisor, b = sum_all(y) / divisor;  // the centres; any numbers near the means
  const Float dx = x - a, dy = y - b, difference = x - y;
  const Float sx = sum_all(dx), sy = sum_all(dy);
  const auto give = [&](const Parts& moved, const Float& rest) {
    program.output(moved.high, TN_F64);
    program.output(moved.low + rest, TN_F64);
  };
  give({count, count * 0.0}, count * 0.0);
  give(product(count, a), sx);
  give(product(count, b), sy);
  give(product(count, a, a), 2.0 * a * sx + sum_all(dx * dx));
  give(product(count, b, b), 2.0 * b * sy + sum_all(dy * dy));
  give(product(count, a, b), a * sy + b * sx + sum_all(dx * dy));
  give({sum_all(difference * difference), count * 0.0}, count * 0.0);
  const std::vector<tn::Tensor> outputs = body.pointwise(program, pair_of(body));
  for (uint32_t i = 0; i < kStates; ++i) body.state(i, outputs[i]);
}

struct R2 {
  static void describe(tn::LayerDescription& d) {
    d.type("r2",
           "The coefficient of determination over all samples and their elements: 1 - sum (input - label)^2 / sum "
           "(label - mean of the labels)^2; 1 for predictions without error, 0 for the mean of the labels as the "
           "prediction. If the labels are all equal it is 1 for predictions without error, else 0; without samples 0.");
    describe_pair(d);
  }
  static void plan(tn::Planner& planner) { plan_values(planner, true, kStates); }
  static void lower(const tn::Attributes&, tn::Builder& body) { lower_pair(body); }
  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    const Moments m = moments_of(state);
    const double none = m.count > 0 && m.difference == 0 ? 1 : 0;
    results.add("r2", m.yy <= 0 ? none : 1 - m.difference / m.yy);
  }
};

struct Correlation {
  static void describe(tn::LayerDescription& d) {
    d.type("correlation",
           "The correlation of input and label over all samples and their elements (Pearson): the sum of the products "
           "of their differences from their means, divided by the root of the product of the sums of squares of these; "
           "from -1 to 1. If one of them is constant, and without samples, it is 0.");
    describe_pair(d);
  }
  static void plan(tn::Planner& planner) { plan_values(planner, true, kStates); }
  static void lower(const tn::Attributes&, tn::Builder& body) { lower_pair(body); }
  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    const Moments m = moments_of(state);
    const double root = std::sqrt(m.xx) * std::sqrt(m.yy);
    results.add("correlation", root <= 0 ? 0 : std::clamp(m.xy / root, -1.0, 1.0));
  }
};

}  // namespace

void add_agreement(tn::Plugin& plugin) {
  plugin.layer<R2>();
  plugin.layer<Correlation>();
}

}  // namespace tenon::metrics
