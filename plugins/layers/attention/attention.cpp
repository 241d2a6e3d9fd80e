// Attention with its projections. SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "dense.h"
#include "positions.h"

namespace {

using tenon::attention::checked;
using tenon::attention::connected;
using tenon::attention::kBias;
using tenon::attention::kKey;
using tenon::attention::kMask;
using tenon::attention::kQuery;
using tenon::attention::kValue;

struct MultiHeadAttention : tenon::attention::SinceBias {
  static void describe(tn::LayerDescription& d) {
    d.type("multi_head_attention",
           "Attention of projected inputs (Vaswani et al., \"Attention is all you need\", 2017, section 3.2.2): fully "
           "connected layers make query, key and value, and one more makes the output of the heads' results. Of "
           "sequences each row attends to the rows of its sequence, as in sequence_attention.");
    d.input("query", "[samples, Q, D], or sequences of [rows, D]");
    d.input("key", "[samples, K, D]; the query when absent; [rows, D] of the same sequences", TN_PORT_OPTIONAL);
    d.input("value", "[samples, K, V]; the key when absent; [rows, V] of the same sequences", TN_PORT_OPTIONAL);
    tenon::attention::describe_mask(d);
    tenon::attention::describe_bias(d, "score_bias");
    d.output("output", "[samples, Q, output_size], of sequences [rows, output_size]");
    tenon::attention::describe_heads(d);
    tenon::attention::describe_dropout(d);
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
      for (uint32_t port = kMask; port < tenon::attention::inputs_end(expander); ++port)
        inputs.push_back(expander.input(port));
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
    for (const uint32_t port : {uint32_t{kMask}, uint32_t{kBias}})
      if (planner.has_input(port))
        throw planner.bad_input(port, "is for dense inputs; of sequences all rows count", TN_UNSUPPORTED);
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
  plugin.layer<MultiHeadAttention>();
  tenon::attention::add_dense(plugin);
  tenon::attention::add_over_sequences(plugin);
  tenon::attention::add_rows(plugin);
  tenon::attention::add_positions(plugin);
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
