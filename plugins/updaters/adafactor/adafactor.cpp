// Adafactor. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <tenon/plugin.hpp>

namespace {

using tn::Attributes;
using tn::Float;

struct Adafactor {
  static void describe(tn::UpdaterDescription& d) {
    d.type(
        "adafactor",
        "Adafactor (Shazeer and Stern, \"Adafactor: adaptive learning rates with sublinear memory cost\", 2018, "
        "algorithms 4 and 5) of a parameter p with gradient g, as a matrix of the rows of the first dimension: the "
        "mean squares r of rows and c of columns, 0 at first, take the place of one for each element. In step t, 1 in "
        "the first update: k = 1 - t^-beta2_decay; r = k * r + (1 - k) * the means of g * g over rows, c likewise "
        "over columns; v = r c / the mean of r; u = g / sqrt(max(v, epsilon^2)); u = u / max(1, rms(u) / clip); p = p "
        "- learning_rate * rate_multiplier * weight_decay * decay_multiplier * p; p = p - max(least_scale, rms(p)) * "
        "min(learning_rate, 1 / sqrt(t)) * rate_multiplier * u, where rms is the root of the mean square and rms(p) "
        "that before the update. epsilon has its place as in PyTorch. A vector has a mean square for each element.");
    d.attribute(tn::float_attribute("learning_rate", 0.01)
                    .at_least(0)
                    .doc("the most that p changes by, as a share of "
                         "rms(p)"));
    d.attribute(tn::float_attribute("beta2_decay", 0.8)
                    .at_least(0)
                    .doc("how fast old squares come to be kept; PyTorch has it with a minus"));
    d.attribute(tn::float_attribute("epsilon", 1.1920928955078125e-7).at_least(0).doc("the least root of v; above 0"));
    d.attribute(tn::float_attribute("least_scale", 0.001).at_least(0).doc("a smaller rms(p) counts as this"));
    d.attribute(tn::float_attribute("clip", 1).at_least(0).doc("the most rms(u); above 0"));
    d.attribute(tn::float_attribute("weight_decay", 0).at_least(0).doc("the share of p that decays, times the rate"));
  }

  static void record(tn::UpdateRecorder& update) {
    const Attributes attributes = update.attributes();
    for (const char* name : {"epsilon", "clip"})
      if (attributes.number(name) <= 0) throw tn::Failure(TN_INVALID, name, "must be above 0");
    const double epsilon = attributes.number("epsilon"), decay = attributes.number("weight_decay");

    const Float p = update.parameter();
    const Float g = update.gradient();
    const tn::State r = update.row_state("rows", 0);
    const tn::State c = update.column_state("columns", 0);
    const Float rows = update.matrix();
    const Float columns = update.row_elements();
    const auto rms = [&](const Float& x) { return sqrt(sum_all(x * x) / (rows * columns)); };

    const Float t = update.step();
    const Float fresh = exp(-attributes.number("beta2_decay") * log(t));  // t^-beta2_decay
    const Float squares = g * g;
    const Float r_next = r + fresh * (sum_per_row(squares) / columns - r);
    const Float c_next = c + fresh * (sum_per_column(squares) / rows - c);
    // The root of a product of two roots neither overflows nor underflows where the product would.
    const Float mean = max(sum_all(r_next) / rows, epsilon);
    const Float root = max(sqrt(r_next / mean) * sqrt(c_next), epsilon);
    const Float direction = g / root;
    const Float clipped = direction / max(rms(direction) / attributes.number("clip"), 1.0);
    const Float rate = update.learning_rate();
    const Float scale = max(rms(p), attributes.number("least_scale")) * min(rate, 1 / sqrt(t));
    update.state_next(r, r_next);
    update.state_next(c, c_next);
    Float kept = p;
    if (decay > 0) kept = p - rate * update.rate_multiplier() * decay * update.decay_multiplier() * p;
    update.parameter_next(kept - scale * update.rate_multiplier() * clipped);
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.adafactor", "0.1.0", "Adafactor", "Apache-2.0");
  plugin.updater<Adafactor>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
