// The published formulas of the updaters in plain fp64, for comparison in tests. Each works on one tensor, or on one
// row of it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/support/update_model.h"

namespace tenon_tests {

// A parameter and its states, which begin with 0.
struct Tensor {
  Tensor() = default;
  explicit Tensor(std::vector<double> values)
      : value(std::move(values)), first(value.size()), second(value.size()), third(value.size()) {}
  std::vector<double> value, first, second, third;
};
// Computes one step. t is the number of the step, from 1.
using Rule = std::function<void(Tensor&, const std::vector<double>& gradient, double t)>;

inline Rule sgd(double rate, double momentum, bool nesterov, double decay) {
  return [=](Tensor& x, const std::vector<double>& gradient, double) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double g = gradient[i] + decay * x.value[i];
      x.first[i] = momentum * x.first[i] + g;
      x.value[i] -= rate * (nesterov ? g + momentum * x.first[i] : x.first[i]);
    }
  };
}

// Kingma & Ba 2015, algorithm 1; decoupled: Loshchilov & Hutter 2019, algorithm 2.
inline Rule adam(double rate, double decay, bool decoupled, double epsilon = 1e-8) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
  return [=](Tensor& x, const std::vector<double>& gradient, double t) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double g = gradient[i] + (decoupled ? 0 : decay * x.value[i]);
      x.first[i] = kBeta1 * x.first[i] + (1 - kBeta1) * g;
      x.second[i] = kBeta2 * x.second[i] + (1 - kBeta2) * g * g;
      const double first = x.first[i] / (1 - std::pow(kBeta1, t));
      const double second = x.second[i] / (1 - std::pow(kBeta2, t));
      const double shrink = decoupled ? rate * decay * x.value[i] : 0;
      x.value[i] -= rate * first / (std::sqrt(second) + epsilon) + shrink;
    }
  };
}

// The rules below work on one element: its value, its states, the gradient and the step.
using ElementRule = std::function<void(double& x, double& a, double& b, double& c, double gradient, double t)>;
inline Rule each(const ElementRule& rule, double decay) {
  return [=](Tensor& x, const std::vector<double>& gradient, double t) {
    for (size_t i = 0; i < gradient.size(); ++i)
      rule(x.value[i], x.first[i], x.second[i], x.third[i], gradient[i] + decay * x.value[i], t);
  };
}

// Duchi, Hazan & Singer 2011.
inline Rule adagrad(double rate, double initial, double decay, double epsilon = 1e-10) {
  const auto rule = [=](double& x, double& v, double&, double&, double g, double) {
    v += g * g;
    x -= rate * g / (std::sqrt(initial + v) + epsilon);
  };
  return each(rule, decay);
}

// One sum for each of `rows` rows of a tensor: Mudigere et al. 2022, section 4.1.4.
inline Rule rowwise_adagrad(double rate, double initial, double decay, size_t rows = 1, double epsilon = 1e-10) {
  return [=](Tensor& x, const std::vector<double>& gradient, double) {
    const size_t width = gradient.size() / rows;
    for (size_t row = 0; row < rows; ++row) {
      double& sum = x.first[row * width];
      const auto decayed = [&](size_t i) { return gradient[i] + decay * x.value[i]; };
      for (size_t i = row * width; i < (row + 1) * width; ++i)
        sum += decayed(i) * decayed(i) / static_cast<double>(width);
      for (size_t i = row * width; i < (row + 1) * width; ++i)
        x.value[i] -= rate * decayed(i) / (std::sqrt(initial + sum) + epsilon);
    }
  };
}

// Tieleman & Hinton 2012; Graves 2013.
inline Rule rmsprop(double rate, bool centered, double momentum, double decay, double epsilon = 1e-8) {
  constexpr double kRho = 0.9;
  const auto rule = [=](double& x, double& v, double& m, double& b, double g, double) {
    v = kRho * v + (1 - kRho) * g * g;
    m = kRho * m + (1 - kRho) * g;
    b = momentum * b + g / (std::sqrt(centered ? std::max(v - m * m, 0.0) : v) + epsilon);
    x -= rate * b;
  };
  return each(rule, decay);
}

// Zeiler 2012, algorithm 1.
inline Rule adadelta(double rate, double rho, double decay, double epsilon = 1e-6) {
  const auto rule = [=](double& x, double& v, double& u, double&, double g, double) {
    v = rho * v + (1 - rho) * g * g;
    const double step = std::sqrt(u + epsilon) / std::sqrt(v + epsilon) * g;
    u = rho * u + (1 - rho) * step * step;
    x -= rate * step;
  };
  return each(rule, decay);
}

// Kingma & Ba 2015, algorithm 2.
inline Rule adamax(double rate, double beta1, double decay, double epsilon = 1e-8) {
  const auto rule = [=](double& x, double& m, double& u, double&, double g, double t) {
    m = beta1 * m + (1 - beta1) * g;
    u = std::max(0.999 * u, std::abs(g) + epsilon);
    x -= rate / (1 - std::pow(beta1, t)) * m / u;
  };
  return each(rule, decay);
}

// Chen et al. 2023, program 1.
inline Rule lion(double rate, double decay) {
  return [=](Tensor& x, const std::vector<double>& gradient, double) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double direction = 0.9 * x.first[i] + 0.1 * gradient[i];
      x.first[i] = 0.99 * x.first[i] + 0.01 * gradient[i];
      x.value[i] -= rate * ((direction > 0 ? 1 : 0) - (direction < 0 ? 1 : 0) + decay * x.value[i]);
    }
  };
}

// Dozat 2016 with a constant share of the momentum.
inline Rule nadam(double rate, double decay) {
  const auto rule = [=](double& x, double& m, double& v, double&, double g, double t) {
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double ahead = 0.9 * m / (1 - std::pow(0.9, t + 1)) + 0.1 * g / (1 - std::pow(0.9, t));
    x -= rate * ahead / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  };
  return each(rule, decay);
}

// Liu et al. 2020, algorithm 2.
inline Rule radam(double rate, double decay, double beta2) {
  const auto rule = [=](double& x, double& m, double& v, double&, double g, double t) {
    m = 0.9 * m + 0.1 * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double most = 2 / (1 - beta2) - 1, power = std::pow(beta2, t), length = most - 2 * t * power / (1 - power);
    double step = m / (1 - std::pow(0.9, t));
    if (length > 5)
      step *= std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)) /
              (std::sqrt(v / (1 - power)) + 1e-8);
    x -= rate * step;
  };
  return each(rule, decay);
}

// McMahan et al. 2013, algorithm 1.
inline Rule ftrl(double rate, double l1, double l2) {
  const auto rule = [=](double& x, double& z, double& n, double&, double g, double) {
    z += g - (std::sqrt(n + g * g) - std::sqrt(n)) / rate * x;
    n += g * g;
    if (n > 0) x = std::abs(z) <= l1 ? 0 : -(z - std::copysign(l1, z)) / ((1 + std::sqrt(n)) / rate + l2);
  };
  return each(rule, 0);
}

// Duchi & Singer 2009: the step, then the minimum of the penalties near it, for a step size.
inline double proximal(double x, double gradient, double rate, double l1, double l2) {
  const double u = x - rate * gradient;
  return std::copysign(std::max(std::abs(u) - rate * l1, 0.0), u) / (1 + rate * l2);
}
inline Rule proximal_sgd(double rate, double l1, double l2) {
  return each([=](double& x, double&, double&, double&, double g, double) { x = proximal(x, g, rate, l1, l2); }, 0);
}
inline Rule proximal_adagrad(double rate, double initial, double l1, double l2) {
  const auto rule = [=](double& x, double& v, double&, double&, double g, double) {
    v += g * g;
    x = proximal(x, g, rate / (std::sqrt(initial + v) + 1e-10), l1, l2);
  };
  return each(rule, 0);
}

// Shazeer & Stern 2018, algorithms 4 and 5, of a matrix of `rows` rows, with the floors of PyTorch. The mean squares of
// rows are the first numbers of `first`, those of columns of `second`.
inline Rule adafactor(double rate, double decay, size_t rows, double multiplier = 1,
                      double epsilon = 1.1920928955078125e-7) {
  return [=](Tensor& x, const std::vector<double>& gradient, double t) {
    const size_t columns = gradient.size() / rows;
    const double fresh = std::pow(t, -0.8);
    const auto rms = [](const std::vector<double>& of) {
      return std::sqrt(std::inner_product(of.begin(), of.end(), of.begin(), 0.0) / static_cast<double>(of.size()));
    };
    std::vector<double> by_row(rows), by_column(columns);
    for (size_t i = 0; i < gradient.size(); ++i) {
      by_row[i / columns] += gradient[i] * gradient[i] / static_cast<double>(columns);
      by_column[i % columns] += gradient[i] * gradient[i] / static_cast<double>(rows);
    }
    double mean = 0;
    for (size_t k = 0; k < rows; ++k) {
      x.first[k] += fresh * (by_row[k] - x.first[k]);
      mean += x.first[k] / static_cast<double>(rows);
    }
    for (size_t k = 0; k < columns; ++k) x.second[k] += fresh * (by_column[k] - x.second[k]);
    std::vector<double> direction = gradient;
    for (size_t i = 0; i < gradient.size(); ++i)
      direction[i] /=
          std::max(std::sqrt(x.first[i / columns] * x.second[i % columns] / std::max(mean, epsilon)), epsilon);
    const double scale = std::max(rms(x.value), 1e-3) * std::min(rate, 1 / std::sqrt(t));
    const double clip = std::max(rms(direction), 1.0);
    for (size_t i = 0; i < gradient.size(); ++i)
      x.value[i] -= rate * multiplier * decay * x.value[i] + scale * multiplier * direction[i] / clip;
  };
}

struct LambOptions {
  double rate = 0.01, decay = 0, least = 0, most = std::numeric_limits<double>::infinity(), epsilon = 1e-6;
};
inline double norm(const std::vector<double>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

// You et al. 2020, algorithm 2.
inline Rule lamb(const LambOptions& options) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999;
  return [=](Tensor& x, const std::vector<double>& gradient, double t) {
    std::vector<double> direction = gradient;
    for (size_t i = 0; i < gradient.size(); ++i) {
      x.first[i] = kBeta1 * x.first[i] + (1 - kBeta1) * gradient[i];
      x.second[i] = kBeta2 * x.second[i] + (1 - kBeta2) * gradient[i] * gradient[i];
      const double first = x.first[i] / (1 - std::pow(kBeta1, t));
      const double second = x.second[i] / (1 - std::pow(kBeta2, t));
      direction[i] = first / (std::sqrt(second) + options.epsilon) + options.decay * x.value[i];
    }
    const double ratio = std::clamp(norm(x.value), options.least, options.most) / norm(direction);
    for (size_t i = 0; i < gradient.size(); ++i) x.value[i] -= options.rate * ratio * direction[i];
  };
}

// Adds a penalty to the gradient of a rule: l1 times the signs of the parameters and l2 times the parameters.
inline Rule with_penalty(const Rule& rule, double l1, double l2) {
  return [=](Tensor& x, const std::vector<double>& gradient, double t) {
    std::vector<double> penalised = gradient;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double p = x.value[i];
      penalised[i] += l2 * p + (p > 0 ? l1 : p < 0 ? -l1 : 0);
    }
    rule(x, penalised, t);
  };
}

// An updater type with its attributes, and its formula for given multipliers.
struct UpdateCase {
  const char* what;
  const char* type;
  tenon::Attributes attributes;
  std::function<Rule(double rate, double decay)> rule;  // of the multipliers
  bool of_tensors = false;                              // updates only whole tensors, not rows
};

// Returns a learning rate followed by `more`; decayed adds a weight decay of 0.2 between them.
inline tenon::Attributes rate(double value, tenon::Attributes more = {}) {
  more.insert(more.begin(), {"learning_rate", value});
  return more;
}
inline tenon::Attributes decayed(double value, tenon::Attributes more = {}) {
  more.insert(more.begin(), {"weight_decay", 0.2});
  return rate(value, std::move(more));
}

// All updaters and their variants. A new updater needs a row here.
inline std::vector<UpdateCase> update_cases() {
  return {
      {"sgd", "sgd", rate(0.1), [](double r, double) { return sgd(0.1 * r, 0, false, 0); }},
      {"sgd with decay", "sgd", decayed(0.1), [](double r, double d) { return sgd(0.1 * r, 0, false, 0.2 * d); }},
      {"momentum", "sgd", decayed(0.1, {{"momentum", 0.9}}),
       [](double r, double d) { return sgd(0.1 * r, 0.9, false, 0.2 * d); }},
      {"nesterov", "sgd", decayed(0.1, {{"momentum", 0.9}, {"nesterov", true}}),
       [](double r, double d) { return sgd(0.1 * r, 0.9, true, 0.2 * d); }},
      {"adam", "adam", decayed(0.02), [](double r, double d) { return adam(0.02 * r, 0.2 * d, false); }},
      {"adamw", "adam", decayed(0.02, {{"decoupled", true}}),
       [](double r, double d) { return adam(0.02 * r, 0.2 * d, true); }},
      {"adagrad", "adagrad", decayed(0.05), [](double r, double d) { return adagrad(0.05 * r, 0, 0.2 * d); }},
      {"rowwise_adagrad", "rowwise_adagrad", decayed(0.05),
       [](double r, double d) { return rowwise_adagrad(0.05 * r, 0, 0.2 * d, UpdateModel::kSamples); }},
      {"rmsprop", "rmsprop", decayed(0.02), [](double r, double d) { return rmsprop(0.02 * r, false, 0, 0.2 * d); }},
      {"centered rmsprop", "rmsprop", decayed(0.02, {{"centered", true}, {"momentum", 0.5}}),
       [](double r, double d) { return rmsprop(0.02 * r, true, 0.5, 0.2 * d); }},
      {"adadelta", "adadelta", decayed(1), [](double r, double d) { return adadelta(r, 0.95, 0.2 * d); }},
      {"adamax", "adamax", decayed(0.02), [](double r, double d) { return adamax(0.02 * r, 0.9, 0.2 * d); }},
      {"lion", "lion", decayed(0.01), [](double r, double d) { return lion(0.01 * r, 0.2 * d); }},
      {"nadam", "nadam", decayed(0.02), [](double r, double d) { return nadam(0.02 * r, 0.2 * d); }},
      {"radam", "radam", decayed(0.02, {{"beta2", 0.9}}),
       [](double r, double d) { return radam(0.02 * r, 0.2 * d, 0.9); }},
      {"ftrl", "ftrl", rate(0.1, {{"l2_strength", 0.2}}), [](double r, double d) { return ftrl(0.1 * r, 0, 0.2 * d); }},
      {"proximal_sgd", "proximal_sgd", rate(0.1, {{"l1_strength", 0.05}, {"l2_strength", 0.2}}),
       [](double r, double d) { return proximal_sgd(0.1 * r, 0.05 * d, 0.2 * d); }},
      {"proximal_adagrad", "proximal_adagrad", rate(0.05, {{"l1_strength", 0.05}, {"l2_strength", 0.2}}),
       [](double r, double d) { return proximal_adagrad(0.05 * r, 0.1, 0.05 * d, 0.2 * d); }},
      {"adafactor", "adafactor", decayed(0.05),
       [](double r, double d) { return adafactor(0.05, 0.2 * d, UpdateModel::kSamples, r); }, true},
      {"lamb", "lamb", decayed(0.02), [](double r, double d) { return lamb({.rate = 0.02 * r, .decay = 0.2 * d}); },
       true},
  };
}

}  // namespace tenon_tests
