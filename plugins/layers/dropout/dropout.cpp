// Dropout. SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.hpp>

namespace {

struct Dropout {
  static void describe(tn::LayerDescription& d) {
    d.type("dropout",
           "In training, each element is 0 with probability rate, else input / (1 - rate), so that its mean stays; "
           "otherwise output = input (Srivastava et al., \"Dropout: a simple way to prevent neural networks from "
           "overfitting\", 2014, in the inverted form).");
    d.input("input", "[samples, ...]");
    d.output("output", "the shape of the input");
    d.attribute(tn::float_attribute("rate", 0.5).at_least(0).at_most(0.999).doc("probability of an element to be 0"));
  }

  static void plan(tn::Planner& planner) {
    if (planner.input(0).rank() == 0) throw planner.bad_input(0, "must have a dimension for the samples");
    planner.output(0, planner.input(0));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const double rate = attributes.number("rate");
    if (!body.training() || rate == 0) {
      body.output(0, body.input(0).view(body.input(0).spec()));
      return;
    }
    const double scale = 1 / (1 - rate);
    tn::Program forward;
    const tn::Float x = forward.full();
    forward.output(select(forward.uniform(0) < rate, 0.0, scale * x));
    tn::GradientProgram backward(forward);  // draws the same numbers again, so nothing is saved
    const tn::Float dy = backward.result_gradient();
    backward.output(select(backward.uniform(0) < rate, 0.0, scale * dy));
    body.output(0, body.pointwise(forward, {body.input(0)}, 1, &backward).front());
  }
};

struct SpatialDropout {
  static void describe(tn::LayerDescription& d) {
    d.type("spatial_dropout",
           "Dropout of whole channels: in training, a channel, a place along the last dimension, is 0 at all positions "
           "of a sample with probability rate, else input / (1 - rate); otherwise output = input (Tompson et al., "
           "\"Efficient object localization using convolutional networks\", 2015). It is the product with a dropout "
           "of ones.");
    d.input("input", "[samples, positions..., channels]");
    d.output("output", "the shape of the input");
    d.attribute(tn::float_attribute("rate", 0.5).at_least(0).at_most(0.999).doc("probability of a channel to be 0"));
  }

  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() < 3) throw planner.bad_input(0, "must be [samples, positions..., channels]");
    planner.elements(0, 1);
    planner.output(0, input);
  }

  static bool expand(tn::Expander& expander) {
    const tn::Spec input = expander.spec(0);
    std::vector<int64_t> channels(static_cast<size_t>(input.rank()) - 1, 1);
    channels.back() = input.back().offset;
    const std::vector<double> one{1};
    const tn_ref kept = expander.layer("constant", {expander.input(0)},
                                       {{"shape", tn::ints_value(channels)}, {"value", tn::floats_value(one)}});
    const tn_value rate = tn::float_value(expander.attributes().number("rate"));
    const tn_ref mask = expander.layer("dropout", {kept}, {{"rate", rate}});
    expander.output(0, expander.layer("mul", {expander.input(0), mask}));
    return true;
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.dropout", "0.1.0", "Dropout", "Apache-2.0");
  plugin.layer<Dropout>();
  plugin.layer<SpatialDropout>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
