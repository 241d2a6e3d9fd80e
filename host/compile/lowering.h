// From layers to primitives: each leaf of a topology records its body into one graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/claim.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon {

struct ClaimSite;

// A layer as a native kernel sees it, with bounds filled in; owns everything that it points to.
struct KernelSite {
  const Kernel* kernel = nullptr;
  LayerRef layer;
  std::vector<Spec> inputs, outputs, parameters;
  std::vector<bool> absent;  // of the inputs
  std::vector<tn_spec> views;
  std::vector<const tn_spec*> input_pointers, output_pointers, parameter_pointers;
  std::unique_ptr<AttributesView> attributes;
  std::shared_ptr<ClaimSite> claim;  // where the kernel claims several layers: then this is all of them as one
  tn_kernel_site site = {};

  // Makes `site` from the rest.
  void seal(tn_dtype compute, const tn_attributes* of);
};

// The layers behind a claim.
struct ClaimSite {
  std::vector<std::shared_ptr<KernelSite>> layers;
  std::vector<const tn_kernel_site*> layer_pointers;
  std::vector<std::vector<tn_claim_source>> sources;
  std::vector<const tn_claim_source*> source_pointers;
  tn_claim_site site = {};
};

// What a data layer needs at feed time.
struct Feed {
  std::string name;
  ValueId value = kNoValue;    // as fed; of a sparse one the ids
  ValueId weights = kNoValue;  // of a sparse one: the values of its entries
  std::vector<int32_t> rows;   // symbols of its rows or entries, by level like tn_array.offsets; none: dense
  Spec spec;                   // as declared
  int64_t index_limit = -1;    // the smallest that any layer needs; -1: none
  std::string limited_by;      // the layer that needs it
};

struct ParameterUse {
  std::string name;
  ValueId stored = kNoValue;    // external: as it lies in the set
  ValueId computed = kNoValue;  // in the compute type; the same value where the types agree
  ValueId gradient = kNoValue;  // filled in when the machine is differentiated
  bool by_rows = false;         // every layer that uses it allows a gradient of rows
};

struct BufferUse {
  std::string name;
  ValueId stored = kNoValue;
  ValueId computed = kNoValue;
  ValueId next = kNoValue;  // kNoValue: the layer leaves it as it is
};

struct MetricUse {
  LayerRef layer;
  std::vector<ValueId> state;  // one scalar per declared accumulator
};

// A dimension of rows of the machine; what those in `RowsOf::outer` are comes before it.
struct RowsUse {
  int32_t symbol = 0;
  std::string name;   // of the data layer that was first to have it; empty: joined
  JoinedRows joined;  // symbols of what it is made of
  RowsOf of;
};

struct Lowered {
  Graph graph;
  std::vector<RowsUse> rows;
  std::vector<Feed> feeds;
  std::vector<ParameterUse> parameters;
  std::vector<BufferUse> buffers;
  std::vector<MetricUse> metrics;
  std::map<std::pair<const Layer*, uint32_t>, ValueId> outputs;  // of every leaf

  [[nodiscard]] ValueId value_of(const Expression& expression) const;  // follows expansions; kNoValue if not here
};

// bounds[symbol]: the largest size, for native kernels. Errors name the layer.
Lowered lower(const Topology& topology, Registry& registry, const std::string& device, tn_dtype compute,
              const std::vector<int64_t>& bounds, bool training);

}  // namespace tenon
