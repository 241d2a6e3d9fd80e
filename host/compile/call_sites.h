// What a node's call is prepared for: the structs that describe its operation to the device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/device_images.h>

#include <vector>

#include "core/graph/graph.h"
#include "host/compile/pointwise_site.h"

namespace tenon::host {

using namespace core;

// In all of these bounds[symbol] is the largest size.

// Returns the site of a program with these values as inputs and outputs.
[[nodiscard]] PointwiseSite pointwise_site(const Graph& graph, const Pointwise& pointwise,
                                           const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs,
                                           const std::vector<int64_t>& bounds);

// Returns the site of the program of an epilogue, whose input number `product` is the result of the product.
[[nodiscard]] PointwiseSite epilogue_site(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds);

// node: a Gemm or GatherGemm, with these properties.
[[nodiscard]] tn_gemm gemm_of(const Graph& graph, const Node& node, const Gemm& product,
                              const std::vector<int64_t>& bounds);

// Returns the products for which a matrix is packed, whatever their number of rows.
[[nodiscard]] tn_gemm packed_gemm_of(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds);

[[nodiscard]] tn_conv conv_of(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds);

// A site with what it points to.
struct GatherGemmSite : base::NotCopied {
  tn_gemm gemm;
  tn_gathered tables[2];
  tn_gather_gemm site;

  GatherGemmSite(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds);
};

// A site with what it points to.
struct CoalesceProductsSite : base::NotCopied {
  std::vector<tn_gathered> tables;
  std::vector<tn_product_part> parts;
  std::vector<const tn_product_part*> pointers;
  tn_coalesce_products site;

  CoalesceProductsSite(const Graph& graph, const Node& node, const std::vector<int64_t>& bounds);
};

}  // namespace tenon::host
