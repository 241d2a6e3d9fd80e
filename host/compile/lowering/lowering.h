// Lowers a topology: the leaves become primitives, or native kernels, in one graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/topology.h"
#include "host/compile/lowering/number_checks.h"
#include "host/plugins/device.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// The options of a lowering.
struct LoweringOptions {
  tn_dtype compute = TN_F32;
  std::vector<int64_t> bounds;             // bounds[symbol]: the largest size, for native kernels
  uint32_t precision = TN_PRECISION_FULL;  // of products: TN_PRECISION_*
  bool training = false;
  bool data_gradients = false;  // in training: gradients of data layers of floats are wanted
  std::function<bool(const std::string& parameter)> is_immutable;
};

// A data layer: its values in the graph, and the requirements that arrays are checked against.
struct Feed {
  std::string name;
  ValueId value = kNoValue;     // the fed array; of a sparse feed (TN_CSR) the ids of its entries
  ValueId weights = kNoValue;   // of a sparse feed: the values of its entries
  ValueId gradient = kNoValue;  // in the compute type; set by differentiate_machine; kNoValue if there is none
  std::vector<int32_t> rows;    // ragged symbols by level, as in tn_array.offsets; empty: dense
  Spec spec;                    // of the layer's output
  bool channels_first = false;  // arrays have the channels before the other dimensions; `spec` has them last
  std::vector<std::pair<IndexLimit, std::string>> limits;  // of its integers, with the layers that state them
};

// A parameter of the machine, and its values in the graph.
struct ParameterUse {
  std::string name;
  ValueId stored = kNoValue;    // external, in the type of the set
  ValueId computed = kNoValue;  // in the compute type; equal to `stored` if the types agree
  ValueId gradient = kNoValue;  // set by differentiate_machine; kNoValue if there is none
  bool row_sparse = false;      // every layer that uses it allows a row-sparse gradient
};

// A buffer of the machine, and its values in the graph.
struct BufferUse {
  std::string name;
  ValueId stored = kNoValue;
  ValueId computed = kNoValue;
  ValueId next = kNoValue;  // its value after the step; kNoValue if the layer does not change it
};

// A carried state of the machine, and its values in the graph.
struct CarriedUse {
  ValueId now = kNoValue;   // external: as the minibatch before left it
  ValueId next = kNoValue;  // for the next minibatch; kNoValue if the layer does not set it
};

// A constant of a recorded body: an external value, and its elements in row-major order.
struct ConstantUse {
  ValueId value = kNoValue;
  std::vector<std::byte> bytes;
};

struct MetricUse {
  LayerRef layer;
  std::vector<ValueId> state;  // one scalar per declared accumulator
};

// A ragged dimension of the machine.
struct RaggedUse {
  int32_t symbol = 0;
  std::string name;     // of the first data layer that has it; empty if a layer makes it
  DerivedRows derived;  // if a layer makes it: how
  RaggedDim of;

  // Whether a call writes the number of rows: until then the host knows their bound alone.
  [[nodiscard]] bool is_written() const { return name.empty() && derived.rule == TN_ROWS_DATA; }
};

// The result of lowering: the forward graph, and the values in it that the machine binds or reads.
struct Lowered {
  Graph graph;
  std::vector<RaggedUse> rows;  // each after the dimension that is its `outer`
  std::vector<Feed> feeds;
  std::vector<ParameterUse> parameters;
  std::vector<BufferUse> buffers;
  std::vector<CarriedUse> carried;
  std::vector<ConstantUse> constants;
  std::vector<MetricUse> metrics;
  std::vector<NumberCheck> number_checks;
  std::map<std::pair<const Layer*, uint32_t>, ValueId> outputs;  // of every leaf
  std::map<ValueId, ValueId> converted;                          // values of other types -> in the compute type
  std::map<const Layer*, std::vector<PassedOver>> passed_over;   // native kernels that do not compute a leaf

  [[nodiscard]] ValueId value_of(const LayerOutput& output) const;  // follows expansions; kNoValue if not here
};

// Lowers all leaves for a device, and prepares the native kernels. Errors name the layer.
Lowered lower(const Topology& topology, Registry& registry, Device& device, const LoweringOptions& options);

}  // namespace tenon::host
