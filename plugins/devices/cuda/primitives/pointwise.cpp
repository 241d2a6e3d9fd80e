// Prepares pointwise programs. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/device.h"
#include "source.h"
#include "tables.h"

namespace tenon::cuda {

namespace {

// The bounds of a grid.
struct Bounds {
  int64_t rows, columns, elements;
};

Bounds bounds_of(const tn_pointwise_site& site) {
  const int64_t rows = bound_of(site.rows, "rows"), columns = bound_of(site.columns, "columns");
  return {rows, columns, product_of(rows, columns)};
}

int64_t blocks_of(Grid grid, const Bounds& bounds, int64_t group) {
  switch (grid) {
    case Grid::kElements:
      return pieces(bounds.elements, kTile);
    case Grid::kRows:
      return pieces(bounds.rows, kThreads / group);
    case Grid::kStrips:
      return std::min(pieces(bounds.columns, kStripColumns) * pieces(bounds.rows, kStripRows, kMostStrips),
                      kMostBlocks);
    case Grid::kRowVector:
      return pieces(bounds.rows, kTile);
    case Grid::kColumnVector:
      return pieces(bounds.columns, kTile);
    case Grid::kOne:
      break;
  }
  return 1;
}

// Elements of a buffer at the bounds. Smaller sizes need no more.
int64_t buffer_elements(const Buffer& buffer, const Bounds& bounds) {
  switch (buffer.shape) {
    case BufferShape::kOne:
      return 1;
    case BufferShape::kRows:
      return bounds.rows;
    case BufferShape::kColumns:
      return bounds.columns;
    case BufferShape::kParts:
      return kMostParts;
    case BufferShape::kStrips:
      break;
  }
  return bounds.columns * pieces(bounds.rows, kStripRows, kMostStrips);
}

Kernels make_kernels(const tn_pointwise_site& site, const Indexed& indexed) {
  if (site.compute != TN_F32 && site.compute != TN_F64)
    throw tn::Failure(TN_UNSUPPORTED, "",
                      "float values of type " + dtype_text(site.compute) + "; offered are float32, float64");
  for (uint32_t i = 0; i < site.program->instructions_count; ++i)
    if (tn_op_info(site.program->instructions[i].op).op_class == TN_CLASS_NONE)
      throw tn::Failure(TN_UNSUPPORTED, "program", "the program has an operation that CUDA does not know");
  const Bounds bounds = bounds_of(site);
  tn_dtype missing = 0;
  const Source source = generate(site, indexed, &missing);
  if (missing != 0) throw tn::Failure(TN_UNSUPPORTED, "", "no elements of type " + dtype_text(missing) + " on CUDA");

  Kernels kernels;
  kernels.compute = site.compute;
  kernels.text = source.text;
  kernels.sizes = {site.rows, site.columns};
  kernels.inputs_count = site.program->inputs_count;
  kernels.outputs_count = site.program->outputs_count;
  for (const Buffer& buffer : source.buffers)
    kernels.buffers.push_back(static_cast<uint64_t>(buffer_elements(buffer, bounds)) * tn_dtype_bytes(site.compute));
  for (const Grid grid : source.grids)
    kernels.launches.push_back({kernels.launches.size(), blocks_of(grid, bounds, source.group)});
  return kernels;
}

// Refuses programs whose values in a row depend on other rows or on the number of the row.
void check_update(const tn_row_sparse_update& update) {
  const tn_pointwise_site& site = *update.site;
  const auto refuse = [](const char* why) { throw tn::Failure(TN_UNSUPPORTED, "program", why); };
  if (site.columns.symbol != TN_SYMBOL_NONE) refuse("an update of rows needs rows of constant length");
  if (update.rows < 0 || static_cast<uint32_t>(update.rows) >= site.program->inputs_count)
    refuse("an update of rows without rows");
  for (uint32_t i = 0; i < site.program->instructions_count; ++i) {
    const uint16_t op = site.program->instructions[i].op;
    if (tn_op_info(op).op_class == TN_CLASS_RANDOM || op == TN_OP_ROW)
      refuse("an update of rows cannot tell the number of a row");
    if (tn_op_info(op).op_class == TN_CLASS_REDUCTION && site.extents[i] != TN_PER_ROW)
      refuse("an update of rows can reduce along a row alone");
  }
  for (uint32_t i = 0; i < site.program->outputs_count; ++i) {
    const uint8_t extent = site.extents[site.program->outputs[i].value];
    if (extent != TN_FULL && extent != TN_PER_ROW) refuse("an update of rows writes rows alone");
  }
}

}  // namespace

Kernels kernels_of(const tn_pointwise_site& site) { return make_kernels(site, {}); }

Kernels kernels_of(const tn_row_sparse_update& update) {
  check_update(update);
  Kernels kernels = make_kernels(*update.site, {update.indexed_inputs, update.indexed_outputs});
  const size_t check = kernels.launches.size();
  kernels.text +=
      "extern \"C\" __global__ void __launch_bounds__(256, 2) kernel" + std::to_string(check) +
      "(const __grid_constant__ Arguments a) {\n  if (a.fault->code != 0) return;\n  if (threadIdx.x == 0 && "
      "*a.rows.count != used(a.rows)) a.fault->code = 3;\n}\n";
  kernels.launches.insert(kernels.launches.begin(), {check, 1});
  kernels.rows = update.rows;
  kernels.adds = false;
  return kernels;
}

}  // namespace tenon::cuda
