// A metric: the relative squared error, the sum of (prediction - label)^2 over that of (label - mean label)^2. Its
// sums are added over minibatches and devices, so the value does not depend on how the data is split.
// SPDX-License-Identifier: MIT
#include <tenon/plugin.hpp>

TN_RESERVE_NOTE(4096);  // room for the manifest, if the plugin is built without CMake

namespace {

struct Metric {
  static void describe(tn::LayerDescription& d) {
    d.type("example.my_plugin", "Relative squared error: 0 is exact, 1 as good as the mean of the labels");
    d.role(TN_ROLE_METRIC);
    d.input("prediction", "[samples] or [samples, 1]");
    d.input("label", "as the prediction: what is right");
  }

  static void plan(tn::Planner& planner) {
    if (planner.elements(0, 1) != 1) throw planner.bad_input(0, "must be [samples] or [samples, 1]");
    planner.require_values(1);
    planner.state(4);  // values, labels, their squares, squared errors
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor prediction = body.input(0);
    tn::Program p;
    const tn::Float x = p.full(), y = p.full();
    p.output(sum_all(to_float(y == y)));  // 1 for each value
    p.output(sum_all(y));
    p.output(sum_all(y * y));
    p.output(sum_all((x - y) * (x - y)));
    const std::vector<tn::Tensor> sums = body.pointwise(p, {prediction, body.input(1).view(prediction.spec())});
    for (uint32_t i = 0; i < 4; ++i) body.state(i, sums[i]);
  }

  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    const double spread = state[0] > 0 ? state[2] - state[1] * state[1] / state[0] : 0;
    results.add("my_plugin", spread > 0 ? state[3] / spread : 0);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("example.my_plugin", "0.1.0", "The relative squared error", "MIT");
  plugin.layer<Metric>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
