// Classes that a model draws, and the rows of sequences that take them in a training.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <tenon/draft/numbers.hpp>
#include <tenon/plugin.hpp>

namespace {

using tn::Float;
using tn::Int;

struct DrawClass : tn::DeclaresNumbers<DrawClass> {
  static void describe(tn::LayerDescription& d) {
    d.type("draw_class",
           "A class, drawn anew at each step from the probabilities that the input has along its last dimension: the "
           "one of the largest log p + g, where each g = -log(-log u), with u uniform in [0, 1), is drawn on its own "
           "(the Gumbel-max trick; Maddison, Tarlow and Minka, \"A* sampling\", 2014). Probabilities need not add up "
           "to 1. A machine that only answers draws as well. No derivative. Other names: sampling_id, multinomial.");
    d.input("input", "[samples, ..., classes]: probabilities or, with from_logits, numbers before a softmax");
    d.output("output", "[samples, ...], integers: the class, from 0");
    d.attribute(tn::bool_attribute("from_logits", false).doc("whether the input is before a softmax"));
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec input = planner.input(0);
    if (input.rank() < 2) throw planner.bad_input(0, "must be [samples, ..., classes]");
    planner.elements(0, 1);
    planner.output(0, input.leading(input.rank() - 1).as(TN_I64));
  }
  static void numbers(tn::NumberDeclarer& declarer) {
    if (!declarer.attributes().flag("from_logits"))
      declarer.input(0, tn::Numbers::at_least(0).advice("for numbers before a softmax set from_logits = true"));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Spec input = body.input(0).spec();
    const int32_t axis = input.rank() - 1;
    tn::Program noisy;
    const Float x = noisy.full();
    noisy.output((attributes.flag("from_logits") ? x : log(x)) - log(-log(noisy.uniform(0))));
    const tn::Tensor largest =
        body.argsort(body.pointwise(noisy, {body.input(0)}, axis).front(), TN_SORT_DESCENDING, 1);
    body.output(0, largest.view(input.leading(axis)));
  }
};

struct ScheduledSampling {
  static void describe(tn::LayerDescription& d) {
    d.type("scheduled_sampling",
           "Which rows of sequences a decoder is to read as it has written them itself, in place of the right ones "
           "(Bengio, Vinyals, Jaitly and Shazeer, \"Scheduled sampling for sequence prediction with recurrent neural "
           "networks\", 2015): 1 for a row that is, 0 for one that is not. In training each row but the first of its "
           "sequence is 1 with probability p (1 - e), drawn anew at each step, where e goes from about 1 to 0 with the "
           "number i of updates so far, a buffer: linear e = max(0, 1 - i / k); exponential e = exp(-i / k); "
           "inverse_sigmoid e = k / (k + exp(i / k)); constant e = 0. p is the attribute probability and k steps. "
           "Otherwise, and of integers that are not sequences, all are 0. No derivative.");
    d.input("ids", "[rows], integers: sequences, the ids that the steps read", TN_PORT_INTEGER);
    d.output("output", "[rows]: 1 or 0 for each row");
    d.attribute(tn::float_attribute("probability", 1).at_least(0).at_most(1).doc("the most, p"));
    d.attribute(tn::string_attribute("decay", "linear")
                    .one_of({"constant", "linear", "exponential", "inverse_sigmoid"})
                    .doc("how the share of right rows falls with the updates"));
    d.attribute(tn::float_attribute("steps").at_least(1).doc("k, in updates; unless the decay is constant"));
    d.parameter("updates");
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec ids = planner.input(0);
    if (ids.rank() != 1) throw planner.bad_input(0, "must be an integer for each row, [rows]");
    const bool constant = decay(planner.attributes()) == "constant";
    if (constant == planner.attributes().has("steps"))
      throw tn::Failure(TN_INVALID, "steps", constant ? "is for a decay that is not constant" : "is missing");
    planner.buffer("updates", tn::Spec({1}), tn::constant_initializer(0));
    planner.output(0, ids.as(TN_COMPUTE));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor ids = body.input(0);
    tn::Program program;
    if (!body.training() || !ids.spec().is_ragged()) {
      const Int id = program.full<Int>();
      program.output(to_float(id < id));
      body.output(0, body.pointwise(program, {ids}).front());
      return;
    }
    const Int position = program.full<Int>();
    const Float updates = program.scalar();
    const Float probability = attributes.number("probability") * (1 - rest(attributes, updates));
    program.output(to_float(position > 0 && program.uniform(0) < probability));
    program.output(updates + 1);
    const std::vector<tn::Tensor> made =
        body.pointwise(program, {body.segment(TN_SEGMENT_POSITION, ids.spec()[0]), body.buffer(0)});
    body.output(0, made[0]);
    body.buffer_next(0, made[1].view(tn::Spec({1})));
  }

 private:
  static std::string decay(const tn::Attributes& attributes) { return attributes.text("decay"); }

  // e after so many updates.
  static Float rest(const tn::Attributes& attributes, const Float& updates) {
    const std::string kind = decay(attributes);
    if (kind == "constant") return 0 * updates;
    const double steps = attributes.number("steps");
    if (kind == "linear") return max(1 - updates / steps, 0);
    if (kind == "exponential") return exp(-updates / steps);
    return steps / (steps + exp(updates / steps));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.draws", "0.1.0", "Classes that are drawn, and scheduled sampling", "Apache-2.0");
  plugin.layer<DrawClass>();
  plugin.layer<ScheduledSampling>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
