// A metric: the ratio of signal to noise in decibels, 10 log10(sum of signal^2 / sum of (signal - guess)^2), over a
// whole pass. Its sums are added over minibatches, so the value does not depend on their size.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <tenon/plugin.hpp>

namespace {

struct Snr {
  static void describe(tn::LayerDescription& d) {
    d.type("example.snr", "Signal to noise in dB: 10 log10(sum signal^2 / sum (signal - guess)^2)");
    d.role(TN_ROLE_METRIC);
    d.input("guess", "[samples, ...]");
    d.input("signal", "as guess: what is right");
  }

  static void plan(tn::Planner& planner) {
    planner.require_values(1);
    planner.state(2);  // power of signal, of noise
  }

  static void lower(const tn::Attributes&, tn::Builder& body) {
    const tn::Tensor guess = body.input(0), signal = body.input(1).view(guess.spec());
    tn::Program p;
    const tn::Float x = p.full(), y = p.full();
    p.output(sum_all(y * y));
    p.output(sum_all((y - x) * (y - x)));
    const std::vector<tn::Tensor> sums = body.pointwise(p, {guess, signal});
    body.state(0, sums[0]);
    body.state(1, sums[1]);
  }

  static void finalize(const tn::Attributes&, const double* state, tn::Results& results) {
    results.add("snr", state[1] > 0 && state[0] > 0 ? 10 * std::log10(state[0] / state[1]) : 0);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("org.example.snr", "1.0.0", "The ratio of signal to noise", "Apache-2.0");
  plugin.layer<Snr>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
