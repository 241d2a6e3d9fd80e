// Scaled dot-product attention of dense inputs. SPDX-License-Identifier: Apache-2.0
#include "dense.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tenon/kernel.hpp>
#include <vector>

#include "heads.h"
#include "positions.h"

namespace tenon::attention {

namespace {

using tn::Float;
using tn::Int;
using tn::Logical;

// An input [samples, length, features], dense and constant but for the samples.
tn::Spec positions_of(const tn::Planner& planner, uint32_t port) {
  tn::Spec spec = planner.input(port);
  if (spec.is_ragged())
    throw planner.bad_input(port,
                            "is made of sequences of different lengths; those are for the layer sequence_attention, "
                            "or sequence_pad makes dense ones of them",
                            TN_UNSUPPORTED);
  if (spec.rank() != 3) throw planner.bad_input(port, "must be [samples, positions, features]");
  planner.elements(port, 1);
  return spec;
}

void describe_scale(tn::LayerDescription& d) {
  d.attribute(tn::float_attribute("scale").doc("1 / sqrt(D / heads) when absent"));
}

// Throws unless the features of an input can be divided among the heads.
void check_heads(const tn::Planner& planner, uint32_t port) {
  const int64_t heads = planner.attributes().integer("heads");
  if (planner.input(port)[2].offset % heads != 0)
    throw planner.bad_input(port, "has features that cannot be divided among " + std::to_string(heads) + " heads");
}

// Checks that the mask is of the positions of query and key.
void check_mask(const tn::Planner& planner, uint32_t port, const tn::Spec& query, const tn::Spec& key) {
  if (!planner.has_input(port)) return;
  const tn::Spec mask = planner.input(port);
  const tn::Spec padding({key[0], key[1]}), whole({query[0], query[1], key[1]});
  if (!mask.same_shape(padding) && !mask.same_shape(whole))
    throw planner.bad_input(port, "must have one number for each key, or for each query and key").expected(whole);
}

void declare_mask(tn::NumberDeclarer& declarer, uint32_t port) {
  if (!declarer.has_input(port)) return;
  declarer.input(port, tn::Numbers::zero_or_one().advice(
                           "1 makes a key visible; numbers that are added to the scores are a bias"));
}

// Checks that the bias has a number for each score of a sample, or one that all heads share.
void check_bias(const tn::Planner& planner, uint32_t port, const tn::Spec& query, const tn::Spec& key) {
  if (!planner.has_input(port)) return;
  const tn::Spec each({query[0], planner.attributes().integer("heads"), query[1], key[1]});
  if (!planner.input(port).same_shape(each) && !planner.input(port).same_shape(tn::Spec({query[0], query[1], key[1]})))
    throw planner.bad_input(port, "must have one number for each query and key, or for each head, query and key")
        .expected(each);
}

// Checks that query and key have the same features, which the heads divide.
void check_features(const tn::Planner& planner, uint32_t key_port, const tn::Spec& query, const tn::Spec& key) {
  if (!key[2].same(query[2]))
    throw planner.bad_input(key_port, "must have as many features as the query").expected(query);
  check_heads(planner, kQuery);
}

tn::Spec weights_of(const tn::Planner& planner, const tn::Spec& query, const tn::Spec& key) {
  return tn::Spec({query[0], planner.attributes().integer("heads"), query[1], key[1]});
}

// [samples, P, D] -> [samples, heads, P, D / heads], and back.
tn::Tensor split(tn::Builder& body, const tn::Tensor& value, int64_t heads) {
  const tn::Spec shape = value.spec();
  const int64_t depth = shape[2].offset / heads;
  if (heads == 1) return value.view(tn::Spec({shape[0], 1, shape[1], depth}, shape.dtype()));
  return body.transpose(value.view(tn::Spec({shape[0], shape[1], heads, depth}, shape.dtype())), {0, 2, 1, 3});
}
tn::Tensor joined(tn::Builder& body, const tn::Tensor& value) {
  const tn::Spec shape = value.spec();
  const int64_t heads = shape[1].offset;
  const tn::Tensor rows = heads == 1 ? value : body.transpose(value, {0, 2, 1, 3});
  return rows.view(tn::Spec({shape[0], shape[2], heads * shape[3].offset}, shape.dtype()));
}

// The mask or bias for each row of the scores [samples, heads, Q, K]: itself if the shapes agree, else gathered.
tn::Tensor of_scores(tn::Builder& body, const tn::Tensor& mask, const tn::Tensor& scores) {
  const tn::Spec shape = scores.spec(), given = mask.spec();
  if (given.rank() == shape.rank()) return mask;
  const int64_t heads = shape[1].offset, queries = shape[2].offset;
  const bool each_query = given.rank() == 3;
  if (heads == 1 && (each_query || queries == 1))
    return mask.view(tn::Spec({shape[0], 1, shape[2], shape[3]}, given.dtype()));
  const tn::Dim rows = each_query ? given[0].times(queries) : given[0];
  tn::Program place;
  place.full();  // gives the grid its rows
  const Int sample = floor_div(place.row(), heads * queries);
  place.output(each_query ? sample * queries + mod(place.row(), queries) : sample);
  const tn::Tensor ids = body.pointwise(place, {scores}, 3).front();
  return body.gather(mask.view(tn::Spec({rows, shape[3]}, given.dtype())), ids);
}

// What tells visible keys from others. A bias that is -infinity hides a key, too.
struct Sight {
  bool causal;
  std::optional<tn::Tensor> mask;
  bool biased;
};

// Softmax of scores [samples, heads, Q, K] over the visible keys; 0 for the others, and where no key is visible.
tn::Tensor softmax(tn::Builder& body, const tn::Tensor& scores, const Sight& sight) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const bool all = !sight.causal && !sight.mask && !sight.biased;
  const int64_t queries = scores.spec()[2].offset, keys = scores.spec()[3].offset;
  std::vector<tn::Tensor> operands = {scores};
  tn::Program forward;
  const Float score = forward.full();
  Float e = score;
  if (all) {
    e = exp(score - max_per_row(score));
  } else {
    std::vector<Logical> conditions;
    if (sight.causal) conditions.push_back(forward.column() <= mod(forward.row(), queries) + (keys - queries));
    if (sight.mask) {
      conditions.push_back(forward.full() != 0);
      operands.push_back(of_scores(body, *sight.mask, scores));
    }
    if (sight.biased) conditions.push_back(score != kNever);
    Logical visible = conditions[0];
    for (size_t i = 1; i < conditions.size(); ++i) visible = visible && conditions[i];
    const Float largest = max_per_row(select(visible, score, kNever));
    e = select(visible, exp(score - largest), 0.0);
  }
  const Float sum = sum_per_row(e);
  forward.output(all ? e / sum : select(sum > 0, e / sum, 0.0));

  tn::GradientProgram backward(forward);  // from the result alone: it is 0 where a key is not visible
  const Float y = backward.result();
  const Float dy = backward.result_gradient();
  backward.output(y * (dy - sum_per_row(dy * y)));
  if (sight.mask) backward.output(backward.constant(0));
  return body.pointwise(forward, operands, 3, &backward).front();
}

// scores [samples, heads, Q, K] + bias.
tn::Tensor biased(tn::Builder& body, const tn::Tensor& scores, const tn::Tensor& bias) {
  tn::Program sum;
  const Float score = sum.full();
  sum.output(score + sum.full());
  return body.pointwise(sum, {scores, of_scores(body, bias, scores)}, 3).front();
}

// The weights of a layer with the attributes heads, causal and scale; mask, bias: its ports.
tn::Tensor weights(const tn::Attributes& attributes, tn::Builder& body, uint32_t mask, uint32_t bias) {
  const tn::Tensor query = body.input(kQuery), key = body.input(kKey);
  const int64_t heads = attributes.integer("heads");
  const int64_t depth = query.spec()[2].offset / heads;
  const double scale = attributes.has("scale") ? attributes.number("scale") : 1 / std::sqrt(static_cast<double>(depth));
  tn::Tensor scores = body.gemm(split(body, query, heads), split(body, key, heads), TN_TRANSPOSE_B, scale);
  const std::optional<tn::Tensor> added = body.optional_input(bias);
  if (added) scores = biased(body, scores, *added);
  return softmax(body, scores, {attributes.flag("causal"), body.optional_input(mask), added.has_value()});
}

tn::Tensor dropped(tn::Builder& body, const tn::Tensor& shares, double rate) {
  if (rate == 0 || !body.training()) return shares;
  tn::Program forward;
  const Float share = forward.full();
  const double kept = rate == 1 ? 0 : 1 / (1 - rate);
  forward.output(select(forward.uniform(0) >= rate, share * kept, 0.0));
  return body.pointwise(forward, {shares}, 3).front();
}

// A layer for each output, so that weights that nobody reads are never in memory.
struct Attention : SinceBias {
  static void describe(tn::LayerDescription& d) {
    d.type("attention",
           "Each query gets the sum of the values, weighted by softmax(scale query key^T + bias) over the visible keys "
           "(Vaswani et al., \"Attention is all you need\", 2017, equation 1). A query that sees no key gets 0. The "
           "layers attention_sum and attention_weights compute the outputs.");
    d.input("query", "[samples, Q, D]");
    d.input("key", "[samples, K, D]; the query when absent", TN_PORT_OPTIONAL);
    d.input("value", "[samples, K, V]; the key when absent", TN_PORT_OPTIONAL);
    describe_mask(d);
    describe_bias(d, "bias");
    d.output("output", "[samples, Q, V]");
    d.output("weights", "[samples, heads, Q, K]: sums to 1 over the keys");
    describe_heads(d);
    describe_dropout(d);
    describe_scale(d);
  }

  static void plan(tn::Planner& planner) {
    const Shapes shapes = checked(planner);
    check_features(planner, connected(planner, kKey), shapes.query, shapes.key);
    check_heads(planner, connected(planner, kValue));
    planner.output(0, tn::Spec({shapes.query[0], shapes.query[1], shapes.value[2]}));
    planner.output(1, weights_of(planner, shapes.query, shapes.key));
  }

  static bool expand(tn::Expander& expander) {
    const tn::Attributes attributes = expander.attributes();
    std::vector<tn::Setting> settings = {{"heads", tn::int_value(attributes.integer("heads"))},
                                         {"causal", tn::bool_value(attributes.flag("causal"))}};
    if (attributes.has("scale")) settings.push_back({"scale", tn::float_value(attributes.number("scale"))});
    const tn_ref query = expander.input(kQuery);
    const tn_ref key = expander.has_input(kKey) ? expander.input(kKey) : query;
    std::vector<tn_ref> of_weights = {query, key};
    std::vector<tn_ref> of_sum = {query, key, expander.has_input(kValue) ? expander.input(kValue) : key};
    const uint32_t last = inputs_end(expander);
    for (uint32_t port = kMask; port < last; ++port) {
      of_weights.push_back(expander.input(port));
      of_sum.push_back(expander.input(port));
    }
    expander.output(1, expander.layer("attention_weights", of_weights, settings));
    settings.push_back({"dropout", tn::float_value(attributes.number("dropout"))});
    expander.output(0, expander.layer("attention_sum", of_sum, settings));
    return true;
  }
};

struct AttentionSum : SinceBias, tn::DeclaresNumbers<AttentionSum> {
  static void describe(tn::LayerDescription& d) {
    d.type("attention_sum", "The first output of the layer attention, which has the formula.");
    d.input("query", "[samples, Q, D]");
    d.input("key", "[samples, K, D]");
    d.input("value", "[samples, K, V]");
    describe_mask(d);
    describe_bias(d, "bias");
    d.output("output", "[samples, Q, V]");
    describe_heads(d);
    describe_dropout(d);
    describe_scale(d);
  }
  static void plan(tn::Planner& planner) {
    const Shapes shapes = checked(planner);
    check_features(planner, kKey, shapes.query, shapes.key);
    check_heads(planner, kValue);
    planner.output(0, tn::Spec({shapes.query[0], shapes.query[1], shapes.value[2]}));
  }
  static void numbers(tn::NumberDeclarer& declarer) { declare_mask(declarer, kMask); }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor shares = dropped(body, weights(attributes, body, kMask, kBias), attributes.number("dropout"));
    body.output(0, joined(body, body.gemm(shares, split(body, body.input(kValue), attributes.integer("heads")))));
  }
};

// The kernel of attention_sum.
class AttendInSamples : public WholeHeads {
 public:
  static void describe(tn::KernelDescription& d) { Heads::describe(d, "attention_sum", "attend_in_samples"); }
  static bool supports(const tn::KernelSite& site, int32_t& score) {
    const bool drops = site->training != 0 && site.attributes().number("dropout") > 0;
    const bool masks = !site.has_input(kMask) || site.input(kMask).dtype() == site->compute;
    return !drops && masks && !site.has_input(kBias) && Heads::supports(site, score);
  }
  static void query(const tn::KernelSite& site, tn::KernelNeeds& needs) {
    const tn::Spec rows = site.input(kQuery);
    WholeHeads::query(site, needs, tn::Spec({rows[0], rows[1], site.attributes().integer("heads")}));
    if (site.has_input(kMask)) needs.read_input(kMask);
  }

  AttendInSamples(const tn::KernelSite& site, int32_t direction)
      : WholeHeads(site, direction),
        samples_(site.input(kQuery)[0]),
        queries_(site.input(kQuery)[1].offset),
        keys_(site.input(kKey)[1].offset),
        backward_(direction == TN_BACKWARD),
        masks_(site.has_input(kMask)),
        mask_row_(masks_ && site.input(kMask).rank() == 3 ? keys_ : 0) {}

  void run(const tn::Call& call) const {
    if (backward_ && masks_) clear_mask(call);
    WholeHeads::run(call,
                    {call.size(samples_), nullptr, queries_, keys_, masks_ ? call.input(kMask) : nullptr, mask_row_});
  }

 private:
  // The gradient of a mask is 0.
  void clear_mask(const tn::Call& call) const {
    const int64_t count = call.size(samples_) * keys_ * (mask_row_ == 0 ? 1 : queries_);
    const size_t size = wide_ ? sizeof(double) : sizeof(float);
    if (auto* const gradient = call.out<uint8_t>(kMask)) std::memset(gradient, 0, static_cast<size_t>(count) * size);
  }

  tn::Dim samples_;
  int64_t queries_, keys_;
  bool backward_, masks_;
  int64_t mask_row_;  // from a query to the next; 0: all queries have one row
};

struct AttentionWeights : SinceBias, tn::DeclaresNumbers<AttentionWeights> {
  static constexpr uint32_t kMaskPort = 2, kBiasPort = 3;

  static void describe(tn::LayerDescription& d) {
    d.type("attention_weights", "The second output of the layer attention, which has the formula.");
    d.input("query", "[samples, Q, D]");
    d.input("key", "[samples, K, D]");
    describe_mask(d);
    describe_bias(d, "bias");
    d.output("weights", "[samples, heads, Q, K]: sums to 1 over the keys");
    describe_heads(d);
    describe_scale(d);
  }
  static void plan(tn::Planner& planner) {
    const tn::Spec query = positions_of(planner, kQuery), key = positions_of(planner, kKey);
    if (!key[0].same(query[0])) throw planner.bad_input(kKey, "has other samples than the query").expected(query);
    check_mask(planner, kMaskPort, query, key);
    check_bias(planner, kBiasPort, query, key);
    check_features(planner, kKey, query, key);
    planner.output(0, weights_of(planner, query, key));
  }
  static void numbers(tn::NumberDeclarer& declarer) { declare_mask(declarer, kMaskPort); }
  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    body.output(0, weights(attributes, body, kMaskPort, kBiasPort));
  }
};

}  // namespace

void describe_heads(tn::LayerDescription& d) {
  d.attribute(tn::int_attribute("heads", 1).at_least(1).doc("parts of the features that attend on their own"));
  d.attribute(tn::bool_attribute("causal", false)
                  .doc("query q sees the keys up to q + K - Q: with as many queries as keys, up to its own place"));
}

void describe_mask(tn::LayerDescription& d) {
  d.input("mask",
          "[samples, K] or [samples, Q, K]: 1 where a key is visible, 0 where it is not; of sequences none. Without a "
          "derivative",
          TN_PORT_OPTIONAL | TN_PORT_ANY);
}

void describe_bias(tn::LayerDescription& d, const char* name) {
  d.state_version(2);
  d.input(
      name,
      "[samples, Q, K] or [samples, heads, Q, K]: added to the scores before the softmax; -infinity hides a key; of "
      "sequences none",
      TN_PORT_OPTIONAL);
}

void describe_dropout(tn::LayerDescription& d) {
  d.attribute(tn::float_attribute("dropout", 0)
                  .at_least(0)
                  .at_most(1)
                  .doc("in training: the share of the weights that are set to 0, while the others grow in proportion"));
}

uint32_t inputs_end(const tn::Expander& expander) {
  return expander.has_input(kBias) ? kBias + 1 : expander.has_input(kMask) ? kMask + 1 : kMask;
}

uint32_t connected(const tn::Planner& planner, uint32_t port) {
  while (port > kQuery && !planner.has_input(port)) --port;
  return port;
}

Shapes checked(const tn::Planner& planner) {
  const uint32_t key_port = connected(planner, kKey), value_port = connected(planner, kValue);
  Shapes shapes = {positions_of(planner, kQuery), positions_of(planner, key_port), positions_of(planner, value_port)};
  if (!shapes.key[0].same(shapes.query[0]))
    throw planner.bad_input(key_port, "has other samples than the query").expected(shapes.query);
  if (!shapes.value[0].same(shapes.key[0]) || !shapes.value[1].same(shapes.key[1]))
    throw planner.bad_input(value_port, "must have as many positions as the key").expected(shapes.key);
  check_mask(planner, kMask, shapes.query, shapes.key);
  check_bias(planner, kBias, shapes.query, shapes.key);
  return shapes;
}

void add_dense(tn::Plugin& plugin) {
  plugin.layer<Attention>();
  plugin.layer<AttentionSum>();
  plugin.layer<AttentionWeights>();
  plugin.kernel(tn::kernel<AttendInSamples>());
}

}  // namespace tenon::attention
