// SPDX-License-Identifier: Apache-2.0
#include "host/machine/tables/table_reads.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "host/machine/compiled_model.h"

namespace tenon::host {

namespace {

// The nodes that read one table.
class TableReaders {
 public:
  TableReaders(Graph& graph, const Lowered& lowered, const ParameterUse& use)
      : graph_(graph), lowered_(lowered), use_(use) {
    for (Node& node : graph.nodes)
      if (std::find(node.inputs.begin(), node.inputs.end(), use.computed) != node.inputs.end()) nodes_.push_back(&node);
  }

  void check(const MachineOptions& options) const {
    if (options.compute != TN_F32 || options.precision != TN_PRECISION_FULL)
      refuse("the machine computes in another type than float32: leave \"compute\" at float32, or ");
    for (const Node* node : nodes_) {
      const std::string layer = "layer \"" + graph_.layers[static_cast<size_t>(node->layer)] + "\" ";
      const bool gathers = node->is<Gather>() && node->inputs[0] == use_.computed && node->loop < 0 &&
                           std::count(node->inputs.begin(), node->inputs.end(), use_.computed) == 1;
      if (!gathers)
        refuse(layer, "reads it by ", primitive_name(node->operation),
               "; tables are read by gather alone, as of embeddings, bags and sparse rows of numbers; ");
      if (feed_of(*node) == lowered_.feeds.size())
        refuse(layer, "reads rows whose ids the model computes; expected those of a data layer, of int32 or int64; ");
      if (!use_.row_sparse)
        refuse("its gradient is dense, since ", layer,
               "or another one that reads it asks for that; set \"param.<suffix>",
               ".sparse\" of its layers to true, or ");
    }
  }

  // Returns the reads, after it has given the gathers places in place of ids.
  [[nodiscard]] std::vector<TableRead> replace_ids() const {
    std::vector<TableRead> reads;
    std::map<ValueId, ValueId> places;  // by the value of the ids
    for (Node* node : nodes_) {
      const ValueId ids = node->inputs[1];
      const auto [known, is_new] = places.try_emplace(ids, kNoValue);
      if (is_new) {
        const Spec spec{TN_I64, graph_.spec(ids).shape, TN_DENSE, 0, {}};
        known->second = graph_.add_external(spec, "rows of " + use_.name);
        reads.push_back({feed_of(*node), known->second});
      }
      node->inputs[1] = known->second;
    }
    return reads;
  }

 private:
  // Returns the number of the data layer that feeds the ids of a gather; that of all if none does.
  [[nodiscard]] size_t feed_of(const Node& gather) const {
    const ValueId ids = graph_.root(gather.inputs[1]);
    size_t feed = 0;
    while (feed < lowered_.feeds.size() && lowered_.feeds[feed].value != ids) ++feed;
    return feed;
  }
  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail_parameter(TN_UNSUPPORTED, use_.name, "table \"", use_.name, "\": ", parts...,
                   "remove the parameter from the tables");
  }

  Graph& graph_;
  const Lowered& lowered_;
  const ParameterUse& use_;
  std::vector<Node*> nodes_;  // in their order
};

}  // namespace

std::vector<MachineTable> read_caches(Graph& graph, const Lowered& lowered, const ParameterSet& set,
                                      const MachineOptions& options) {
  std::vector<MachineTable> tables;
  const std::vector<std::string>& names = set.tables().names;
  for (const ParameterUse& use : lowered.parameters) {
    if (std::find(names.begin(), names.end(), use.name) == names.end()) continue;
    const TableReaders readers(graph, lowered, use);
    readers.check(options);
    const ParameterEntry& entry = set.find(use.name);
    if (!entry.table) continue;
    const int64_t width = std::accumulate(entry.shape.begin() + 1, entry.shape.end(), int64_t{1}, std::multiplies<>());
    tables.push_back(
        {set.index(use.name), set.owned()->index(use.name), use.stored, entry.shape[0], width, readers.replace_ids()});
  }
  return tables;
}

}  // namespace tenon::host
