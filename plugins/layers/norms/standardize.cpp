// Standardisation of columns by statistics of the training data. SPDX-License-Identifier: Apache-2.0
#include <string>

#include "norms.h"

namespace tenon::norms {

namespace {

using tn::Float;

struct Standardize {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "standardize",
        "Columns, the places along the last dimension, in units of the training data. deviation: output = (x - "
        "mean) / sqrt(variance), with the mean and the variance (divided by the number of values) of the column; "
        "range: output = (x - low) / (high - low), so that the training data lies in [0, 1]. A constant column, "
        "which is one of which the deviation is at most a millionth of the mean, or of which low = high, is divided "
        "by 1. The statistics are buffers. A step of a training adds its minibatch to them (Chan, Golub and LeVeque, "
        "\"Updating formulae and a pairwise algorithm for computing sample variances\", 1979), so that they are those "
        "of all values so far; the output is computed with those of the steps before, in the first step with its "
        "own. A job lists the layer in the key fit: then one pass over the training data finds the statistics "
        "before the training, which keeps them. Where a minibatch is divided among devices, mean and variance become "
        "the means of those of the parts.");
    d.input("input", "[samples, ..., columns]; [samples] is one column");
    d.output("output", "the shape of the input");
    d.attribute(tn::string_attribute("kind", "deviation")
                    .one_of({"deviation", "range"})
                    .doc("in which units: of the standard deviation, around the mean; or of the range"));
    for (const char* suffix : {"mean", "variance", "high", "negative_low", "count"}) d.parameter(suffix);
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() == 0) throw planner.bad_input(0, "must be [samples, ..., columns]");
    const tn::Spec columns({input.rank() == 1 ? 1 : planner.elements(0, input.rank() - 1)});
    if (is_range(planner.attributes())) {  // -low, so that both merge as the largest
      planner.buffer("high", columns, tn::constant_initializer(1), TN_MERGE_MAX);
      planner.buffer("negative_low", columns, tn::constant_initializer(0), TN_MERGE_MAX);
    } else {
      planner.buffer("mean", columns, tn::constant_initializer(0));
      planner.buffer("variance", columns, tn::constant_initializer(1));
    }
    planner.buffer("count", tn::Spec({1}), tn::constant_initializer(0));
    planner.output(0, input.as(TN_COMPUTE));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor input = body.input(0);
    const tn::Tensor rows = input.spec().rank() == 1 ? input.view(tn::Spec({input.spec()[0], 1})) : input;
    tn::Program program;
    const Float x = program.full();
    const Statistics kept = {program.per_column(), program.per_column()};
    const bool range = is_range(attributes);
    std::vector<tn::Tensor> operands{rows, body.buffer(0), body.buffer(1)};
    if (!body.training()) {
      program.output(units(range, x, kept));
    } else {
      const Float count = program.scalar();
      operands.push_back(body.buffer(2));
      const Float added = sum_all(select(program.row() >= 0, 1.0, 0.0));
      const Statistics next = range ? widened(x, kept, count, added) : merged(x, kept, count, added);
      const auto used = [&](const Float& before, const Float& now) { return select(count > 0, before, now); };
      program.output(units(range, x, {used(kept.first, next.first), used(kept.second, next.second)}));
      program.output(next.first);
      program.output(next.second);
      program.output(count + added);
    }
    const std::vector<tn::Tensor> made = body.pointwise(program, operands, rows.spec().rank() - 1);
    body.output(0, input.spec().rank() == 1 ? made[0].view(made[0].spec().leading(1)) : made[0]);
    for (uint32_t buffer = 0; buffer + 1 < made.size(); ++buffer)
      body.buffer_next(buffer, buffer == 2 ? made[3].view(tn::Spec({1})) : made[buffer + 1]);
  }

 private:
  // Of each column: mean and variance, or the highest value and the highest negative value.
  struct Statistics {
    Float first, second;
  };

  static bool is_range(const tn::Attributes& attributes) { return attributes.text("kind") == std::string("range"); }

  static Float units(bool range, const Float& x, const Statistics& of) {
    if (range) {
      const Float span = of.first + of.second;
      return (x + of.second) * (1 / select(span > 0, span, 1.0));
    }
    // float32 rounds the mean, so that the variance of a constant column need not be exactly 0. Where it is 0, its root
    // has an infinite derivative, so that select chooses among the variances.
    const Float divided = select(sqrt(of.second) > 1e-6 * abs(of.first), of.second, 1.0);
    return (x - of.first) * (1 / sqrt(divided));
  }

  // The statistics of all values so far and those of the minibatch. A minibatch without rows leaves them.
  static Statistics merged(const Float& x, const Statistics& kept, const Float& count, const Float& added) {
    const Float share = 1 / max(added, 1);
    const Float rough = sum_per_column(x) * share;
    const Float mean = rough + sum_per_column(x - rough) * share;  // once more, against rounding of the first sum
    const Float centred = x - mean;
    const Float variance = sum_per_column(centred * centred) * share;
    const Float weight = added / max(count + added, 1);
    const Float step = mean - kept.first;
    const Float before = select(count > 0, kept.second, 0.0);
    // In float32 adding differences rounds less than a weighted sum.
    return {kept.first + weight * step, before + weight * (variance - before + (1 - weight) * step * step)};
  }
  static Statistics widened(const Float& x, const Statistics& kept, const Float& count, const Float& added) {
    const auto wider = [&](const Float& before, const Float& now) {
      return select(added > 0, select(count > 0, max(before, now), now), before);
    };
    return {wider(kept.first, max_per_column(x)), wider(kept.second, max_per_column(-x))};
  }
};

}  // namespace

void add_standardize(tn::Plugin& plugin) { plugin.layer<Standardize>(); }

}  // namespace tenon::norms
