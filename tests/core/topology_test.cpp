// SPDX-License-Identifier: Apache-2.0
#include "core/topology.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tenon_tests {

using namespace tenon::core;

namespace {

TEST(ExpressionName, NamesOutputsOtherThanTheFirst) {
  Layer layer;
  layer.name = "mine";
  const auto made = std::make_shared<const Layer>(std::move(layer));
  EXPECT_EQ(output_name({made, 0}), "mine");
  EXPECT_EQ(output_name({made, 2}), "mine:2");
  EXPECT_EQ(output_name({nullptr, 0}), "");  // an absent input
}

LayerRef make(const std::string& name, const std::vector<LayerRef>& inputs, const std::vector<LayerRef>& expansion = {},
              std::vector<InnerLayer> inner = {}) {
  Layer layer;
  layer.name = layer.parameter_name = name;
  layer.type = "t";
  layer.type_version = {"p", "1.0", 3};
  for (const LayerRef& input : inputs) layer.inputs.push_back({input, 0});
  for (const LayerRef& each : expansion) layer.expansion.push_back({each, 0});
  layer.inner = std::move(inner);
  return std::make_shared<const Layer>(std::move(layer));
}

TEST(Leaves, AreThoseBetweenInputsAndOutputs) {
  const LayerRef source = make("source", {}), x = make("x", {source});
  EXPECT_EQ(leaves_of(x), std::vector<LayerRef>{x}) << "a layer without an expansion computes itself";
  const LayerRef a = make("a", {x}), b = make("b", {a, x}), first = make("first", {a}, {b});
  const LayerRef c = make("c", {first}), outer = make("outer", {x, nullptr}, {c, a});
  EXPECT_EQ(leaves_of(outer), (std::vector<LayerRef>{a, b, c})) << "those of an inner expansion, too";
  EXPECT_TRUE(leaves_of(make("same", {x}, {x})).empty()) << "an expansion that is the input";
}

TEST(TopologyJson, HoldsVersionsResolvedAttributesAndBuffers) {
  Layer layer = *make("y", {nullptr}, {}, {{"y/u", "u", {"q", "2.0", 1}, {{"deep", true}}}});
  layer.given = {{"act", std::string("u")}, {"size", int64_t{2}}};
  layer.resolved = {{"size", 2.0}, {"rate", 0.5}, {"note", Value()}};
  LayerParameter buffer;
  buffer.name = "y.mean";
  buffer.merge = TN_MERGE_SUM;
  layer.buffers = {buffer};
  const Topology topology = Topology::trace({{std::make_shared<const Layer>(std::move(layer)), 0}});
  EXPECT_EQ(topology.to_json(), nlohmann::json::parse(R"({"version": 1, "outputs": ["y"], "layers": [{
      "name": "y", "type": "t", "inputs": [""],
      "plugin": {"id": "p", "version": "1.0", "state_version": 3},
      "attributes": {"act": "u", "size": 2.0, "rate": 0.5, "note": null, "parameter_name": "y"},
      "inner": [{"name": "y/u", "type": "u", "plugin": {"id": "q", "version": "2.0", "state_version": 1},
                 "attributes": {"deep": true}}],
      "buffers": {"y.mean": "sum"}}]})"));
  EXPECT_FALSE(Topology::trace({{make("z", {}), 0}}).to_json().at("layers")[0].contains("inner"));
}

}  // namespace
}  // namespace tenon_tests
