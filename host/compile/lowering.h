// Lowers a topology: the leaves become primitives, or native kernels, in one graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/fusion.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

struct FusionSite;

// The description of a layer, or of a fused chain of layers, for a native kernel. Bounds are filled in. Owns the arrays
// that `site` points to.
struct KernelSite {
  const Kernel* kernel = nullptr;
  LayerRef layer;
  std::vector<Spec> inputs, outputs, parameters;
  std::vector<bool> absent;  // per input
  std::vector<tn_spec> views;
  std::vector<const tn_spec*> input_pointers, output_pointers, parameter_pointers;
  std::unique_ptr<AttributesView> attributes;
  std::shared_ptr<FusionSite> fusion;  // of a fused chain, which this describes as one layer; else null
  tn_kernel_site site = {};

  // Fills in the pointers and `site` from the other members. `of`: the attributes.
  void seal(tn_dtype compute, const tn_attributes* of);
};

// The layers of a fused chain. Owns the arrays that `site` points to.
struct FusionSite {
  std::vector<std::shared_ptr<KernelSite>> layers;
  std::vector<const tn_kernel_site*> layer_pointers;
  std::vector<std::vector<tn_fusion_source>> sources;
  std::vector<const tn_fusion_source*> source_pointers;
  tn_fusion_site site = {};
};

// A data layer: its values in the graph, and the requirements that arrays are checked against.
struct Feed {
  std::string name;
  ValueId value = kNoValue;    // the fed array; of a sparse feed (TN_CSR) the ids of its entries
  ValueId weights = kNoValue;  // of a sparse feed: the values of its entries
  std::vector<int32_t> rows;   // ragged symbols by level, as in tn_array.offsets; empty: dense
  Spec spec;                   // as declared
  int64_t index_limit = -1;    // the smallest limit of the data layer and its readers; -1: none
  std::string limited_by;      // the layer with that limit
};

// A parameter of the machine, and its values in the graph.
struct ParameterUse {
  std::string name;
  ValueId stored = kNoValue;    // external, in the type of the set
  ValueId computed = kNoValue;  // in the compute type; equal to `stored` if the types agree
  ValueId gradient = kNoValue;  // set by differentiate_parameters; kNoValue if there is none
  bool row_sparse = false;      // every layer that uses it allows a row-sparse gradient
};

// A buffer of the machine, and its values in the graph.
struct BufferUse {
  std::string name;
  ValueId stored = kNoValue;
  ValueId computed = kNoValue;
  ValueId next = kNoValue;  // its value after the step; kNoValue if the layer does not change it
};

struct MetricUse {
  LayerRef layer;
  std::vector<ValueId> state;  // one scalar per declared accumulator
};

// A ragged dimension of the machine.
struct RaggedUse {
  int32_t symbol = 0;
  std::string name;              // of the first data layer that has it; empty if concatenated
  ConcatenatedDim concatenated;  // if concatenated: the symbols of its parts
  RaggedDim of;
};

// The result of lowering: the forward graph, and the values in it that the machine binds or reads.
struct Lowered {
  Graph graph;
  std::vector<RaggedUse> rows;  // each after the dimension that is its `outer`
  std::vector<Feed> feeds;
  std::vector<ParameterUse> parameters;
  std::vector<BufferUse> buffers;
  std::vector<MetricUse> metrics;
  std::map<std::pair<const Layer*, uint32_t>, ValueId> outputs;  // of every leaf

  [[nodiscard]] ValueId value_of(const LayerOutput& output) const;  // follows expansions; kNoValue if not here
};

// Lowers all leaves for a kind of device and a compute type. bounds[symbol]: the largest size, for native kernels.
// Errors name the layer.
Lowered lower(const Topology& topology, Registry& registry, const std::string& device, tn_dtype compute,
              const std::vector<int64_t>& bounds, bool training);

}  // namespace tenon::host
