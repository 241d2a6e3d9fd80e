// SPDX-License-Identifier: Apache-2.0
#include "core/graph/work.h"

namespace tenon::core {

namespace {

class NodeWork {
 public:
  NodeWork(const Graph& graph, const Node& node, const int64_t* symbols)
      : graph_(graph), node_(node), symbols_(symbols) {}

  [[nodiscard]] double operations() const {
    double sum = product();
    if (const Pointwise* const program = node_.pointwise(); program != nullptr)
      sum += static_cast<double>(program->program->instructions.size()) * size(program->rows) * size(program->columns);
    return sum;
  }

  [[nodiscard]] double bytes() const {
    double sum = 0;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const ValueId ids = ids_of(i);
      sum += ids != kNoValue ? rows_of(node_.inputs[i], ids) : bytes_of(node_.inputs[i]);
    }
    for (const ValueId output : node_.outputs)
      sum += node_.is<ScatterAdd>() ? rows_of(output, node_.inputs[1]) : bytes_of(output);
    return sum;
  }

 private:
  [[nodiscard]] double size(const Dim& dim) const { return static_cast<double>(tn_dim_value(&dim, symbols_)); }
  [[nodiscard]] double elements_of(ValueId value) const {
    double product = 1;
    for (const Dim& dim : graph_.spec(value).shape) product *= size(dim);
    return product;
  }
  [[nodiscard]] double bytes_of(ValueId value) const {
    if (value == kNoValue || graph_.spec(value).storage == TN_ROW_SPARSE) return 0;
    const tn_dtype dtype = graph_.spec(value).dtype;
    return elements_of(value) * (has_whole_bytes(dtype) ? static_cast<double>(tn_dtype_bytes(dtype)) : 1);
  }
  // The ids by which the node reads rows of input number i; kNoValue if that is no table.
  [[nodiscard]] ValueId ids_of(size_t i) const {
    if (node_.is<Gather>() && i == 0) return node_.inputs[1];
    return node_.is<GatherGemm>() && i < 2 ? node_.inputs[2 + i] : kNoValue;
  }
  // As many rows of a table as there are ids.
  [[nodiscard]] double rows_of(ValueId table, ValueId ids) const {
    const double height = size(graph_.spec(table).shape[0]);
    return height == 0 ? 0 : bytes_of(table) / height * elements_of(ids);
  }

  [[nodiscard]] double product() const {
    const auto* const gathers = node_.as<GatherGemm>();
    if (const Gemm* const gemm = gathers != nullptr ? &gathers->gemm : node_.as<Gemm>(); gemm != nullptr) {
      const Shape a = matrix_shape(graph_, node_, 0);
      const Dim& inner = a[a.size() - ((gemm->flags & TN_TRANSPOSE_A) != 0 ? 2 : 1)];
      return 2 * elements_of(node_.outputs[0]) * size(inner);
    }
    if (const Conv* const conv = node_.as<Conv>(); conv != nullptr) {
      const bool sums_weights = conv->op == TN_CONV_WEIGHTS;
      const ValueId weights = sums_weights ? node_.outputs[0] : node_.inputs[1];
      const ValueId results = conv->op == TN_CONV_RESULTS  ? node_.outputs[0]
                              : conv->op == TN_CONV_IMAGES ? node_.inputs[0]
                                                           : node_.inputs[1];
      const double filters = size(graph_.spec(weights).shape[0]);
      return filters == 0 ? 0 : 2 * elements_of(results) * elements_of(weights) / filters;
    }
    return 0;
  }

  const Graph& graph_;
  const Node& node_;
  const int64_t* const symbols_;
};

}  // namespace

Work work_of(const Graph& graph, const Node& node, const int64_t* symbols) {
  const NodeWork work(graph, node, symbols);
  return {work.operations(), work.bytes()};
}

}  // namespace tenon::core
