// SPDX-License-Identifier: Apache-2.0
#include "host/compile/call_sites.h"

namespace tenon::host {

namespace {

// Returns the product of the batch dimensions of a gemm operand: all but the last two.
Dim batch_of(const Shape& shape) { return elements(shape.data(), shape.size() - 2); }

}  // namespace

PointwiseSite pointwise_site(const Graph& graph, const Pointwise& pointwise, const std::vector<ValueId>& inputs,
                             const std::vector<ValueId>& outputs, const std::vector<int64_t>& bounds) {
  const auto types = [&](const std::vector<ValueId>& values) {
    std::vector<tn_dtype> result;
    result.reserve(values.size());
    for (const ValueId value : values) result.push_back(graph.spec(value).dtype);
    return result;
  };
  return {*pointwise.program,
          graph.compute,
          types(inputs),
          types(outputs),
          bounded(pointwise.rows, bounds),
          bounded(pointwise.columns, bounds)};
}

PointwiseSite epilogue_site(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds) {
  std::vector<ValueId> inputs;
  inputs.reserve(node.inputs.size() - 1);
  inputs.assign(node.inputs.begin() + 2, node.inputs.end());
  inputs.insert(inputs.begin() + node.epilogue->product, node.outputs[0]);
  return pointwise_site(graph, node.epilogue->pointwise, inputs, {node.outputs.begin() + 1, node.outputs.end()},
                        bounds);
}

tn_gemm gemm_of(const Graph& graph, const Node& node, const Gemm& product, const std::vector<int64_t>& bounds) {
  const Shape a = matrix_shape(graph, node, 0);
  const Shape& c = graph.spec(node.outputs[0]).shape;
  tn_gemm gemm = {};
  gemm.size = sizeof gemm;
  gemm.dtype = graph.spec(node.outputs[0]).dtype;
  gemm.batch = bounded(batch_of(c), bounds);
  gemm.m = bounded(c[c.size() - 2], bounds);
  gemm.n = bounded(c[c.size() - 1], bounds);
  gemm.k = bounded(a[a.size() - ((product.flags & TN_TRANSPOSE_A) != 0 ? 2 : 1)], bounds);
  gemm.flags = product.flags;
  gemm.precision = graph.precision;
  gemm.alpha = product.alpha;
  return gemm;
}

tn_gemm packed_gemm_of(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds) {
  const Spec& b = graph.spec(node.inputs[0]);
  const uint32_t flags = node.as<Pack>()->flags;
  const size_t along = (flags & TN_TRANSPOSE_B) != 0 ? 1 : 0;
  tn_gemm gemm = {};
  gemm.size = sizeof gemm;
  gemm.dtype = b.dtype;
  gemm.batch = tn_dim_constant(1);
  gemm.m = tn_dim_constant(1);
  gemm.n = bounded(b.shape[1 - along], bounds);
  gemm.k = bounded(b.shape[along], bounds);
  gemm.flags = flags;
  gemm.precision = graph.precision;
  gemm.alpha = 1;
  return gemm;
}

tn_conv conv_of(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds) {
  const Conv& conv = *node.as<Conv>();
  // Of the images, and of the weights, one may be the output.
  const ValueId images = conv.op == TN_CONV_IMAGES ? node.outputs[0] : node.inputs[0];
  const ValueId weights = conv.op == TN_CONV_WEIGHTS ? node.outputs[0] : node.inputs[1];
  const Spec& spec = graph.spec(images);
  tn_conv site = {};
  site.size = sizeof site;
  site.dtype = spec.dtype;
  site.op = conv.op;
  site.samples = bounded(spec.shape[0], bounds);
  site.channels = spec.shape.back().offset;
  site.filters = graph.spec(weights).shape[0].offset;
  site.groups = conv.groups;
  site.window = &conv.window;
  return site;
}

GatherGemmSite::GatherGemmSite(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds)
    : gemm(gemm_of(graph, node, node.as<GatherGemm>()->gemm, bounds)), site{sizeof site, 0, &gemm, nullptr, nullptr} {
  for (size_t i = 0; i < 2; ++i) {
    const ValueId ids = node.inputs[2 + i];
    if (ids == kNoValue) continue;
    tables[i] = {sizeof(tn_gathered), graph.spec(ids).dtype, bounded(graph.spec(node.inputs[i]).shape[0], bounds)};
    (i == 0 ? site.a : site.b) = &tables[i];
  }
}

CoalesceProductsSite::CoalesceProductsSite(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds) {
  const std::vector<double>& alphas = node.as<Coalesce>()->alphas;
  const Spec& whole = graph.spec(node.outputs[0]);
  tables.reserve(alphas.size());
  parts.reserve(alphas.size());
  for (size_t i = 0; i < alphas.size(); ++i) {
    const ValueId* const inputs = node.inputs.data() + 5 * i;  // values or table, ids, offsets, weights, value ids
    const Spec& ids = graph.spec(inputs[1]);
    const Spec& values = graph.spec(inputs[0]);
    const Spec& rows = inputs[4] == kNoValue ? values : graph.spec(inputs[4]);
    // With weights each matrix of the product has a row; without them and offsets each id has a row of its own.
    const size_t leading = inputs[4] != kNoValue   ? rows.shape.size()
                           : inputs[2] != kNoValue ? 1
                           : inputs[3] != kNoValue ? rows.shape.size() - 2
                                                   : ids.shape.size();
    tn_product_part part = {};
    part.size = sizeof part;
    part.ids = ids.dtype;
    part.count = bounded(elements(ids.shape), bounds);
    part.segments = bounded(elements(rows.shape.data(), leading), bounds);
    part.has_offsets = inputs[2] == kNoValue ? 0 : 1;
    part.has_weights = inputs[3] == kNoValue ? 0 : 1;
    part.alpha = alphas[i];
    if (inputs[4] != kNoValue) {
      tables.push_back({sizeof(tn_gathered), rows.dtype, bounded(values.shape[0], bounds)});
      part.values = &tables.back();
    }
    parts.push_back(part);
    pointers.push_back(&parts.back());
  }
  site = {sizeof site,
          whole.dtype,
          bounded(whole.shape[0], bounds),
          bounded(elements(whole.shape.data() + 1, whole.shape.size() - 1), bounds),
          static_cast<uint32_t>(parts.size()),
          0,
          pointers.data()};
}

}  // namespace tenon::host
