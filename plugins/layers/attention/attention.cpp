// Scaled dot-product attention, alone and with its projections. SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "positions.h"

namespace {

using tn::Float;
using tn::Int;
using tn::Logical;

enum Port : uint32_t { kQuery = 0, kKey = 1, kValue = 2, kMask = 3 };

void describe_inputs(tn::LayerDescription& d) {
  d.input("query", "[samples, Q, D]");
  d.input("key", "[samples, K, D]; the query when absent", TN_PORT_OPTIONAL);
  d.input("value", "[samples, K, V]; the key when absent", TN_PORT_OPTIONAL);
  d.input("mask", "[samples, K] or [samples, Q, K]: a key is visible where it is not 0. Without a derivative",
          TN_PORT_OPTIONAL | TN_PORT_ANY);
}

void describe_attributes(tn::LayerDescription& d) {
  d.attribute(tn::int_attribute("heads", 1).at_least(1).doc("parts of the features that attend on their own"));
  d.attribute(tn::bool_attribute("causal", false)
                  .doc("query q sees the keys up to q + K - Q: with as many queries as keys, up to its own place"));
  d.attribute(tn::float_attribute("dropout", 0)
                  .at_least(0)
                  .at_most(1)
                  .doc("in training: the share of the weights that are set to 0, while the others grow in proportion"));
}

// Inputs that are not connected are those before them: the key is the query, the value the key.
uint32_t connected(const tn::Planner& planner, uint32_t port) {
  while (port > kQuery && !planner.has_input(port)) --port;
  return port;
}

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

// Checks the shapes of query, key, value and mask against each other.
struct Shapes {
  tn::Spec query, key, value;
};
Shapes checked(const tn::Planner& planner) {
  const uint32_t key_port = connected(planner, kKey), value_port = connected(planner, kValue);
  Shapes shapes = {positions_of(planner, kQuery), positions_of(planner, key_port), positions_of(planner, value_port)};
  if (!shapes.key[0].same(shapes.query[0]))
    throw planner.bad_input(key_port, "has other samples than the query").expected(shapes.query);
  if (!shapes.value[0].same(shapes.key[0]) || !shapes.value[1].same(shapes.key[1]))
    throw planner.bad_input(value_port, "must have as many positions as the key").expected(shapes.key);
  if (!planner.has_input(kMask)) return shapes;
  const tn::Spec mask = planner.input(kMask);
  const tn::Spec padding({shapes.key[0], shapes.key[1]}), whole({shapes.query[0], shapes.query[1], shapes.key[1]});
  if (!mask.same_shape(padding) && !mask.same_shape(whole))
    throw planner.bad_input(kMask, "must have one number for each key, or for each query and key").expected(whole);
  return shapes;
}

// Throws unless the features of an input can be divided among the heads.
void check_heads(const tn::Planner& planner, uint32_t port, int64_t heads) {
  if (planner.input(port)[2].offset % heads != 0)
    throw planner.bad_input(port, "has features that cannot be divided among " + std::to_string(heads) + " heads");
}

struct Attention {
  static void describe(tn::LayerDescription& d) {
    d.type("attention",
           "Each query gets the sum of the values, weighted by softmax(scale query key^T) over the visible keys "
           "(Vaswani et al., \"Attention is all you need\", 2017, equation 1). A query that sees no key gets 0.");
    describe_inputs(d);
    d.output("output", "[samples, Q, V]");
    d.output("weights", "[samples, heads, Q, K]: sums to 1 over the keys");
    describe_attributes(d);
    d.attribute(tn::float_attribute("scale").doc("1 / sqrt(D / heads) when absent"));
  }

  static void plan(tn::Planner& planner) {
    const Shapes shapes = checked(planner);
    const int64_t heads = planner.attributes().integer("heads");
    if (!shapes.key[2].same(shapes.query[2]))
      throw planner.bad_input(connected(planner, kKey), "must have as many features as the query")
          .expected(shapes.query);
    check_heads(planner, kQuery, heads);
    check_heads(planner, connected(planner, kValue), heads);
    planner.output(0, tn::Spec({shapes.query[0], shapes.query[1], shapes.value[2]}));
    planner.output(1, tn::Spec({shapes.query[0], heads, shapes.query[1], shapes.key[1]}));
  }

  static void lower(const tn::Attributes& attributes, tn::Builder& body) {
    const tn::Tensor query = body.input(kQuery);
    const tn::Tensor key = body.optional_input(kKey).value_or(query);
    const tn::Tensor value = body.optional_input(kValue).value_or(key);
    const int64_t heads = attributes.integer("heads");
    const double depth = static_cast<double>(query.spec()[2].offset / heads);
    const double scale = attributes.has("scale") ? attributes.number("scale") : 1 / std::sqrt(depth);
    const tn::Tensor scores = body.gemm(split(body, query, heads), split(body, key, heads), TN_TRANSPOSE_B, scale);
    const tn::Tensor shares = weights(body, scores, attributes.flag("causal"));
    body.output(
        0, joined(body, body.gemm(dropped(body, shares, attributes.number("dropout")), split(body, value, heads))));
    body.output(1, shares);
  }

 private:
  // [samples, P, D] -> [samples, heads, P, D / heads], and back.
  static tn::Tensor split(tn::Builder& body, const tn::Tensor& value, int64_t heads) {
    const tn::Spec shape = value.spec();
    const int64_t depth = shape[2].offset / heads;
    if (heads == 1) return value.view(tn::Spec({shape[0], 1, shape[1], depth}, shape.dtype()));
    return body.transpose(value.view(tn::Spec({shape[0], shape[1], heads, depth}, shape.dtype())), {0, 2, 1, 3});
  }
  static tn::Tensor joined(tn::Builder& body, const tn::Tensor& value) {
    const tn::Spec shape = value.spec();
    const int64_t heads = shape[1].offset;
    const tn::Tensor rows = heads == 1 ? value : body.transpose(value, {0, 2, 1, 3});
    return rows.view(tn::Spec({shape[0], shape[2], heads * shape[3].offset}, shape.dtype()));
  }

  // The mask for each row of the scores [samples, heads, Q, K]: itself if the shapes agree, else gathered.
  static tn::Tensor mask_of(tn::Builder& body, const tn::Tensor& mask, const tn::Tensor& scores) {
    const tn::Spec shape = scores.spec(), given = mask.spec();
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

  // Softmax of scores [samples, heads, Q, K] over the visible keys; 0 for the others, and where no key is visible.
  static tn::Tensor weights(tn::Builder& body, const tn::Tensor& scores, bool causal) {
    const int64_t queries = scores.spec()[2].offset, keys = scores.spec()[3].offset;
    const std::optional<tn::Tensor> mask = body.optional_input(kMask);
    std::vector<tn::Tensor> operands = {scores};
    tn::Program forward;
    const Float score = forward.full();
    Float e = score;
    if (!causal && !mask) {
      e = exp(score - max_per_row(score));
    } else {
      std::vector<Logical> conditions;
      if (causal) conditions.push_back(forward.column() <= mod(forward.row(), queries) + (keys - queries));
      if (mask) {
        conditions.push_back(forward.full() != 0);
        operands.push_back(mask_of(body, *mask, scores));
      }
      const Logical visible = conditions.size() == 1 ? conditions[0] : conditions[0] && conditions[1];
      const Float largest = max_per_row(select(visible, score, -std::numeric_limits<double>::infinity()));
      e = select(visible, exp(score - largest), 0.0);
    }
    const Float sum = sum_per_row(e);
    forward.output(causal || mask ? select(sum > 0, e / sum, 0.0) : e / sum);

    tn::GradientProgram backward(forward);  // from the result alone: it is 0 where a key is not visible
    const Float y = backward.result();
    const Float dy = backward.result_gradient();
    backward.output(y * (dy - sum_per_row(dy * y)));
    if (mask) backward.output(backward.constant(0));
    return body.pointwise(forward, operands, 3, &backward).front();
  }

  static tn::Tensor dropped(tn::Builder& body, const tn::Tensor& shares, double rate) {
    if (rate == 0 || !body.training()) return shares;
    tn::Program forward;
    const Float share = forward.full();
    const double kept = rate == 1 ? 0 : 1 / (1 - rate);
    forward.output(select(forward.uniform(0) >= rate, share * kept, 0.0));
    return body.pointwise(forward, {shares}, 3).front();
  }
};

struct MultiHeadAttention {
  static void describe(tn::LayerDescription& d) {
    d.type("multi_head_attention",
           "Attention of projected inputs (Vaswani et al., \"Attention is all you need\", 2017, section 3.2.2): fully "
           "connected layers make query, key and value, and one more makes the output of the heads' results. Of "
           "sequences each row attends to the rows of its sequence, as in sequence_attention.");
    d.input("query", "[samples, Q, D], or sequences of [rows, D]");
    d.input("key", "[samples, K, D]; the query when absent; [rows, D] of the same sequences", TN_PORT_OPTIONAL);
    d.input("value", "[samples, K, V]; the key when absent; [rows, V] of the same sequences", TN_PORT_OPTIONAL);
    d.input(
        "mask",
        "[samples, K] or [samples, Q, K]: a key is visible where it is not 0. Without a derivative; not of sequences",
        TN_PORT_OPTIONAL | TN_PORT_ANY);
    d.output("output", "[samples, Q, output_size], of sequences [rows, output_size]");
    describe_attributes(d);
    d.attribute(tn::int_attribute("size").at_least(1).doc(
        "features of the projected query, key and value, over all heads; D when absent"));
    d.attribute(tn::int_attribute("output_size").at_least(1).doc("features of the output; D when absent"));
    d.attribute(tn::bool_attribute("bias", true).doc("whether the projections add a bias"));
    for (const char* suffix : {"query.weight", "query.bias", "key.weight", "key.bias", "value.weight", "value.bias",
                               "output.weight", "output.bias"})
      d.parameter(suffix);
  }

  static void plan(tn::Planner& planner) {
    const bool sequences = planner.input(kQuery).is_ragged();
    const tn::Spec query = sequences ? sequences_of(planner) : checked(planner).query;
    const tn::Attributes attributes = planner.attributes();
    const int64_t features = query.back().offset;
    const int64_t size = attributes.has("size") ? attributes.integer("size") : features;
    if (size % attributes.integer("heads") != 0)
      throw tn::Failure(
          TN_INVALID, "heads",
          "of " + std::to_string(attributes.integer("heads")) + " cannot divide a size of " + std::to_string(size));
    tn::Spec output = query.leading(query.rank() - 1);
    output.push_back(attributes.has("output_size") ? attributes.integer("output_size") : features);
    planner.output(0, output);
  }

  static bool expand(tn::Expander& expander) {
    const tn::Attributes attributes = expander.attributes();
    const bool sequences = expander.spec(kQuery).is_ragged();
    project(expander, [&](std::vector<tn_ref> inputs) {
      std::vector<tn::Setting> settings = {{"heads", tn::int_value(attributes.integer("heads"))},
                                           {"causal", tn::bool_value(attributes.flag("causal"))}};
      if (sequences) return expander.layer("sequence_attention", inputs, settings);
      if (expander.has_input(kMask)) inputs.push_back(expander.input(kMask));
      settings.push_back({"dropout", tn::float_value(attributes.number("dropout"))});
      return expander.layer("attention", inputs, settings);
    });
    return true;
  }

  static void step(tn::Stepper& stepper) {
    const tn::Attributes attributes = stepper.attributes();
    project(stepper, [&](const std::vector<tn_ref>& inputs) {
      return tenon::attention::attend_step(stepper, attributes.flag("causal"), inputs[0], inputs[1], inputs[2],
                                           {{"heads", tn::int_value(attributes.integer("heads"))}});
    });
  }

 private:
  // Checks inputs that are sequences; returns the spec of the query.
  static tn::Spec sequences_of(const tn::Planner& planner) {
    const tn::Spec query =
        planner.input_of_rank(kQuery, 2, "[samples, positions, features] or sequences [rows, features]");
    for (const uint32_t port : {uint32_t{kQuery}, connected(planner, kKey), connected(planner, kValue)}) {
      if (planner.input(port).rank() != 2 || !planner.input(port)[0].same(query[0]))
        throw planner.bad_input(port, "must have a row for each row of the query").expected(query);
      planner.elements(port, 1);
    }
    if (planner.has_input(kMask))
      throw planner.bad_input(kMask, "is for dense inputs; of sequences all rows count", TN_UNSUPPORTED);
    if (planner.attributes().number("dropout") > 0)
      throw tn::Failure(TN_UNSUPPORTED, "dropout", "of the weights is for dense inputs");
    return query;
  }

  // Adds the layers around the heads. attend: from projected query, key and value to the results of the heads.
  template <typename Attend>
  static void project(tn::Expander& expander, const Attend& attend) {
    const tn::Attributes attributes = expander.attributes();
    const int64_t features = expander.spec(kQuery).back().offset;
    const auto projected = [&](tn_ref value, const char* size, const char* suffix) {
      return expander.layer("fc", {value},
                            {{"size", tn::int_value(attributes.has(size) ? attributes.integer(size) : features)},
                             {"axis", tn::int_value(-1)},
                             {"bias", tn::bool_value(attributes.flag("bias"))}},
                            suffix);
    };
    const tn_ref query = expander.input(kQuery);
    const tn_ref key = expander.has_input(kKey) ? expander.input(kKey) : query;
    const tn_ref value = expander.has_input(kValue) ? expander.input(kValue) : key;
    const tn_ref attended =
        attend({projected(query, "size", "query"), projected(key, "size", "key"), projected(value, "size", "value")});
    expander.output(0, projected(attended, "output_size", "output"));
  }
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.attention", "0.1.0", "Attention and the order of positions", "Apache-2.0");
  plugin.requires_minor(3);  // names of parameters with dots
  plugin.layer<Attention>();
  plugin.layer<MultiHeadAttention>();
  tenon::attention::add_over_sequences(plugin);
  tenon::attention::add_rows(plugin);
  tenon::attention::add_positions(plugin);
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
