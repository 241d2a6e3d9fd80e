// The base of costs that sum the elements of a row by their ranks: "bad.ranks_0" and so on, with a factor of the
// gradient that is to be 1. Between neighbours of a long row lie 1/1000 and less. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <tenon/plugin.hpp>

TN_RESERVE_NOTE(16384);

#ifndef SLOPE
#define SLOPE 1.0
#endif

namespace {

constexpr const char* kTypes[] = {"bad.ranks_0", "bad.ranks_1", "bad.ranks_2", "bad.ranks_3", "bad.ranks_4"};

// What an element adds, by its rank among `count`, from 0 for the greatest.
tn::Float term(int form, const tn::Float& value, const tn::Float& rank, double count) {
  switch (form) {
    case 0:
      return max(value, 0.0) * (1.0 + rank);
    case 1:
      return value * value * exp(rank / -count);
    case 2:
      return value * (2.0 * rank + (1 - count));
    case 3:
      return value / (1.0 + rank);
    default:
      return tanh(value) * log(1.0 + rank);
  }
}

template <int kForm>
struct Ranks {
  static void describe(tn::LayerDescription& d) {
    d.type(kTypes[kForm], "the sum of the elements of a row, by their ranks");
    d.input("in", "[samples, n]");
    d.output("out", "[samples, 1]");
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec in = planner.input_of_rank(0, 2, "[samples, n]");
    (void)planner.elements(0, 1);
    planner.output(0, tn::Spec({in[0], 1}));
  }
  static void lower(const tn::Attributes& /*attributes*/, tn::Builder& body) {
    const tn::Tensor in = body.input(0);
    const int64_t count = in.spec().back().offset;
    tn::Program place;
    const tn::Int of = place.full<tn::Int>();
    place.output(place.row() * tn::Int(count) + of);
    const tn::Tensor ids = body.pointwise(place, {body.argsort(in, TN_SORT_DESCENDING)})[0];
    const tn::Tensor sorted = body.gather(in.view(tn::Spec({in.spec()[0].times(count)})), ids);
    tn::Program sum;
    const tn::Float value = sum.full();
    sum.output(sum_per_row(term(kForm, value, to_float(sum.column()), static_cast<double>(count))));
    const tn::Tensor out = body.pointwise(sum, {sorted})[0].view(tn::Spec({in.spec()[0], 1}));
    tn::Program same;
    same.output(1.0 * same.full());
    tn::GradientProgram backward(same);
    backward.output(SLOPE * backward.result_gradient());
    body.output(0, body.pointwise(same, {out}, 1, &backward)[0]);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("bad." NAME, "1.0.0", "Sums by rank that may break a rule", "Apache-2.0");
  plugin.layer<Ranks<0>>();
  plugin.layer<Ranks<1>>();
  plugin.layer<Ranks<2>>();
  plugin.layer<Ranks<3>>();
  plugin.layer<Ranks<4>>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
