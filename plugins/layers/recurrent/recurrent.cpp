// Recurrent layers over sequences, and the simplest of them. SPDX-License-Identifier: Apache-2.0
#include "recurrent.h"

#include <cmath>
#include <string>

namespace tenon::recurrent {

void describe_common(tn::LayerDescription& d) {
  d.input("input", "[rows, D]: sequences");
  d.input("initial", "[samples, size]: the state before the first row; zeros when absent", TN_PORT_OPTIONAL);
  d.attribute(tn::int_attribute("size").required().at_least(1).doc("numbers in the state"));
  d.attribute(tn::bool_attribute("reverse", false).doc("whether it goes from the last row of a sequence to its first"));
  d.attribute(tn::bool_attribute("bias", true).doc("whether a bias is added"));
  d.parameter("weight");
  d.parameter("recurrent_weight");
  d.parameter("bias");
}

void plan_common(tn::Planner& planner, int64_t gates, uint32_t outputs) {
  const tn::Spec input = planner.input_of_rank(0, 2, "sequences (ragged), [rows, D]");
  if (!input.is_ragged()) throw planner.bad_input(0, "must be sequences (ragged), [rows, D]");
  const int64_t size = planner.attributes().integer("size"), depth = planner.elements(0, 1);
  if (size > INT64_MAX / gates / std::max<int64_t>(size, depth)) throw planner.bad_input(0, "makes a weight too large");
  const tn::Spec state({input.outer(0), size});
  for (uint32_t port = 1; port < planner.inputs_count(); ++port)
    if (planner.has_input(port)) planner.require_shape(port, state);
  const double limit = 1 / std::sqrt(static_cast<double>(size));
  planner.parameter("weight", tn::Spec({depth, gates * size}), tn::uniform_initializer(-limit, limit));
  plan_recurrent_weight(planner, gates, size);
  if (planner.attributes().flag("bias"))
    planner.parameter("bias", tn::Spec({gates * size}), tn::constant_initializer(0));
  planner.output(0, tn::Spec({input[0], size}));
  for (uint32_t i = 1; i < outputs; ++i) planner.output(i, state);
}

int64_t plan_step(tn::Planner& planner, int64_t gates) {
  const tn::Spec sums = planner.input_of_rank(0, 2, "[samples, gates * size]");
  const tn::Spec state = planner.input_of_rank(1, 2, "[samples, size]");
  const int64_t size = planner.elements(1, 1);
  if (size > INT64_MAX / gates / size) throw planner.bad_input(1, "is too large");
  const tn::Spec expected({state[0], gates * size});
  if (!sums.same_shape(expected))
    throw planner.bad_input(0, "must have " + std::to_string(gates) + " parts of the size of the state")
        .expected(expected);
  return size;
}

void plan_recurrent_weight(tn::Planner& planner, int64_t gates, int64_t size) {
  const double limit = 1 / std::sqrt(static_cast<double>(size));
  planner.parameter("recurrent_weight", tn::Spec({size, gates * size}), tn::uniform_initializer(-limit, limit));
}

StepStart begin_step(tn::Stepper& stepper, int64_t gates) {
  const tn::Attributes attributes = stepper.attributes();
  if (attributes.flag("reverse"))
    throw tn::Failure(TN_INVALID, "reverse",
                      "goes from the last row to the first, and the rows come from the first on");
  const int64_t size = attributes.integer("size");
  StepStart start;
  start.state_spec = tn::Spec({stepper.spec(0)[0], size});
  start.state = stepper.memory(start.state_spec, 1);
  start.gates =
      stepper.layer("fc", {stepper.input(0)},
                    {{"size", tn::int_value(gates * size)}, {"bias", tn::bool_value(attributes.flag("bias"))}});
  return start;
}

Recurrence::Recurrence(const tn::Attributes& attributes, tn::Builder& body, int64_t gates)
    : body_(body), size_(attributes.integer("size")) {
  const tn::Tensor rows = body.input(0);
  body.scan_begin(rows.spec()[0], attributes.flag("reverse") ? TN_SCAN_REVERSE : 0);
  const tn::Tensor input = body.scan_input(rows);
  for (int64_t k = 0; k < gates; ++k) {
    weights_.push_back(part(body.parameter(1), k));
    const tn::Tensor product = body.gemm(input, part(body.parameter(0), k));
    if (!attributes.flag("bias")) {
      inputs_.push_back(product);
      continue;
    }
    tn::Program add;
    const tn::Float x = add.full();
    add.output(x + add.per_column());
    inputs_.push_back(body.pointwise(add, {product, part(body.parameter(2), k)}).front());
  }
}

tn::Tensor Recurrence::product(const tn::Tensor& value, int64_t k) {
  return body_.gemm(value, weights_[static_cast<size_t>(k)]);
}

tn::Tensor Recurrence::gate(const tn::Tensor& value, int64_t k) { return sum(body_, product(value, k), input(k)); }

tn::Tensor Recurrence::memory(uint32_t port) {
  return body_.scan_memory(tn::Spec({size_}), body_.optional_input(port));
}

void Recurrence::end(const tn::Tensor& value, const std::vector<tn::Tensor>& memories) {
  body_.scan_end();
  body_.output(0, body_.scan_output(value));
  for (uint32_t i = 0; i < memories.size(); ++i) body_.output(i + 1, body_.scan_last(memories[i]));
}

namespace {

void describe_activation(tn::LayerDescription& d) {
  d.attribute(tn::string_attribute("activation", "tanh").one_of({"tanh", "relu", "sigmoid"}).doc("f"));
}

// f of the attribute.
tn::Tensor activated(const tn::Attributes& attributes, tn::Builder& body, const tn::Tensor& value) {
  const std::string activation = attributes.text("activation");
  tn::Program apply;
  const tn::Float x = apply.full();
  apply.output(activation == "tanh" ? tanh(x) : activation == "relu" ? max(x, 0) : sigmoid(x));
  return body.pointwise(apply, {value}).front();
}

struct Rnn {
  static void describe(tn::LayerDescription& d) {
    d.type("rnn",
           "Recurrent layer: h_t = f(x_t weight + h_{t-1} recurrent_weight + bias), for each row x_t of a sequence "
           "(Elman, \"Finding structure in time\", 1990). Both weights start uniform in +-1 / sqrt(size), the bias at "
           "0.");
    describe_common(d);
    describe_activation(d);
    d.output("output", "[rows, size]: h_t of each row");
    d.output("last", "[samples, size]: h after the last row; of an empty sequence the initial state");
  }
  static void plan(tn::Planner& planner) { plan_common(planner, 1, 2); }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    Recurrence recurrence(attributes, body, 1);
    const tn::Tensor h = recurrence.memory(1);
    const tn::Tensor next = activated(attributes, body, recurrence.gate(h, 0));
    recurrence.next(h, next);
    recurrence.end(next, {h});
  }
  static void step(tn::Stepper& stepper) {
    const StepStart start = begin_step(stepper, 1);
    const tn_ref next = stepper.layer("rnn_step", {start.gates, start.state},
                                      {{"activation", tn::string_value(stepper.attributes().text("activation"))}});
    stepper.next(start.state, next);
    stepper.output(0, next);
  }
};

// One step of it, for scans that users write.
struct RnnStep {
  static void describe(tn::LayerDescription& d) {
    d.type("rnn_step",
           "One step of the layer rnn, for use inside of a scan: output = f(gates + state recurrent_weight), where the "
           "input gates is x W + b, such as an fc of the row. recurrent_weight starts uniform in +-1 / sqrt(size).");
    d.input("gates", "[samples, size]: x W + b");
    d.input("state", "[samples, size]: what the step before left");
    describe_activation(d);
    d.parameter("recurrent_weight");
    d.output("output", "[samples, size]: the state for the next step");
  }
  static void plan(tn::Planner& planner) {
    plan_recurrent_weight(planner, 1, plan_step(planner, 1));
    planner.output(0, planner.input(1));
  }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor product = body.gemm(body.input(1), body.parameter(0));
    body.output(0, activated(attributes, body, sum(body, product, body.input(0))));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.recurrent", "0.1.0", "Recurrent layers over sequences", "Apache-2.0");
  plugin.layer<Rnn>();
  plugin.layer<RnnStep>();
  add_gru(plugin);
  add_lstm(plugin);
}

}  // namespace

}  // namespace tenon::recurrent

const tn_plugin* tenon_plugin() { return tn::entry<tenon::recurrent::describe>(); }
