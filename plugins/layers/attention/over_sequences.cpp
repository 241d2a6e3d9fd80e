// Attention of one query for each sequence over the rows of the sequence. SPDX-License-Identifier: Apache-2.0
#include <string>

#include "positions.h"

namespace tenon::attention {

namespace {

void describe_ports(tn::LayerDescription& d, const char* query) {
  d.input("query", query);
  d.input("key", "[rows, D]: sequences");
  d.input("value", "[rows, V] of the same sequences; the key when absent", TN_PORT_OPTIONAL);
  d.output("output", "[samples, V]: of an empty sequence 0");
  d.output("weights", "[rows, 1]: sums to 1 over the rows of a sequence");
}

// Checks the shapes, and declares the outputs. Returns the spec of the key.
tn::Spec planned(tn::Planner& planner) {
  const tn::Spec key = planner.input(kKey), query = planner.input(kQuery);
  if (!key.is_ragged() || key.rank() != 2) throw planner.bad_input(kKey, "must be sequences of rows [rows, D]");
  planner.elements(kKey, 1);
  if (query.rank() < 2 || query.is_ragged() != (key.levels() > 1) || !query[0].same(key.outer(0)))
    throw planner.bad_input(kQuery, "must have one vector for each sequence of the key");
  planner.elements(kQuery, 1);
  const uint32_t of = planner.has_input(kValue) ? kValue : kKey;
  const tn::Spec value = planner.input(of);
  if (value.rank() != 2 || !value[0].same(key[0]))
    throw planner.bad_input(kValue, "must have a row for each row of the key");
  planner.elements(of, 1);
  planner.output(0, tn::Spec({query[0], value[1]}));
  planner.output(1, tn::Spec({key[0], 1}));
  return key;
}

// Records the softmax of scores [rows, 1] over each sequence, and the sum of the values with these weights.
void finish(tn::Expander& expander, tn_ref scores) {
  const tn_ref value = expander.input(expander.has_input(kValue) ? kValue : kKey);
  const tn_ref weights = expander.layer("sequence_softmax", {scores});
  const tn_ref weighted = expander.layer("mul", {value, weights});
  expander.output(0, expander.layer("sequence_pool", {weighted}, {{"kind", tn::string_value("sum")}}));
  expander.output(1, weights);
}

struct AdditiveAttention {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "additive_attention",
        "The sum of the values of a sequence, weighted by the softmax over its rows of the scores v . tanh(W q + k), "
        "where q is the query and k the key of a row (Bahdanau, Cho and Bengio, \"Neural machine translation by "
        "jointly learning to align and translate\", 2015, A.1.2). The keys are given projected to D numbers, so that "
        "they are projected once for all steps of a scan. query.weight [Q, D] and score.weight [D, 1] start as those "
        "of fc. Other names: simple_attention.");
    describe_ports(d, "[samples, Q]: one for each sequence");
    for (const char* suffix : {"query.weight", "score.weight"}) d.parameter(suffix);
  }
  static void plan(tn::Planner& planner) { planned(planner); }

  static bool expand(tn::Expander& expander) {
    const auto product = [&](tn_ref of, int64_t size, const char* suffix) {
      return expander.layer("fc", {of}, {{"size", tn::int_value(size)}, {"bias", tn::bool_value(false)}}, suffix);
    };
    const tn_ref key = expander.input(kKey);
    const tn_ref query = product(expander.input(kQuery), expander.spec(kKey)[1].offset, "query");
    const tn_ref spread = expander.layer("sequence_expand", {query, key});
    const tn_ref bent = expander.layer("tanh", {expander.layer("add", {spread, key})});
    finish(expander, product(bent, 1, "score"));
    return true;
  }
};

struct DotAttention {
  static void describe(tn::LayerDescription& d) {
    d.type(
        "dot_attention",
        "The sum of the values of a sequence, weighted by the softmax over its rows of the scores scale q . k, where "
        "q is the query and k the key of a row (Luong, Pham and Manning, \"Effective approaches to attention-based "
        "neural machine translation\", 2015, equation 8). Other names: dot_product_attention.");
    describe_ports(d, "[samples, D]: one for each sequence");
    d.attribute(tn::float_attribute("scale", 1).doc("a factor of the scores"));
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec key = planned(planner), query = planner.input(kQuery);
    if (query.rank() != 2 || !query[1].same(key[1]))
      throw planner.bad_input(kQuery, "must have as many features as the key");
  }

  static bool expand(tn::Expander& expander) {
    const double scale = expander.attributes().number("scale");
    const tn_ref key = expander.input(kKey);
    const tn_ref spread = expander.layer("sequence_expand", {expander.input(kQuery), key});
    tn_ref scores = expander.layer("dot", {spread, key});
    if (scale != 1) scores = expander.layer("scale_shift", {scores}, {{"scale", tn::float_value(scale)}});
    finish(expander, expander.layer("reshape", {scores}, {{"shape", tn::ints_value({1})}}));
    return true;
  }
};

}  // namespace

void add_over_sequences(tn::Plugin& plugin) {
  plugin.layer<AdditiveAttention>();
  plugin.layer<DotAttention>();
}

}  // namespace tenon::attention
