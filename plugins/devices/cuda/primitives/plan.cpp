// Cuts a pointwise program into kernels. SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace tenon::cuda {

bool Plan::is_leaf(const Kernel& kernel, int32_t value) const {
  if (node(value).global) return true;
  return node(value).kept >= 0 && std::find(kernel.keeps.begin(), kernel.keeps.end(), value) == kernel.keeps.end();
}

std::vector<bool> Plan::closure(const Kernel& kernel) const {
  std::vector<bool> seen(nodes.size(), false);
  std::vector<int32_t> open = kernel.keeps;
  for (const int32_t value : kernel.partials) open.push_back(node(value).operands[0]);
  for (const int32_t output : kernel.outputs) open.push_back(outputs[static_cast<size_t>(output)]);
  while (!open.empty()) {
    const int32_t value = open.back();
    open.pop_back();
    if (seen[static_cast<size_t>(value)]) continue;
    seen[static_cast<size_t>(value)] = true;
    if (is_leaf(kernel, value)) continue;
    for (int i = 0; i < node(value).operands_count(); ++i) open.push_back(node(value).operands[i]);
  }
  return seen;
}

namespace {

class Planner {
 public:
  explicit Planner(const tn_pointwise_site& site) : program_(*site.program) {
    read(site);
    mark_live();
    keep_rows();
    for (int32_t depth = 0; depth < deepest_; ++depth) reduce(depth);
    write();
    for (Kernel& kernel : plan_.kernels)
      if (kernel.grid == Grid::kRows && !is_by_row(kernel)) kernel.grid = Grid::kElements;
    for (const Kernel& kernel : plan_.kernels)
      for (const int32_t value : kernel.partials)
        plan_.buffers[static_cast<size_t>(plan_.node(value).partial)].maker = kernel.grid;
  }
  Plan take() { return std::move(plan_); }

 private:
  void read(const tn_pointwise_site& site);
  void mark_live();
  void keep_rows();
  void reduce(int32_t depth);
  void combine(int32_t depth, uint8_t extent, Grid grid);
  void write();
  void place(const std::vector<int32_t>& outputs, Grid grid, std::initializer_list<uint8_t> extents);

  [[nodiscard]] Node& node(int32_t value) { return plan_.nodes[static_cast<size_t>(value)]; }
  [[nodiscard]] bool holds(const Kernel& kernel, uint8_t extent, bool only_inputs) const;
  [[nodiscard]] bool is_by_row(const Kernel& kernel) const;
  [[nodiscard]] Grid grid_of(int32_t reduction) const;
  int32_t buffer(BufferShape shape) {
    plan_.buffers.push_back({shape, Grid::kOne});
    return static_cast<int32_t>(plan_.buffers.size()) - 1;
  }
  void append(Kernel kernel) {
    if (!kernel.partials.empty() || !kernel.keeps.empty() || !kernel.outputs.empty())
      plan_.kernels.push_back(std::move(kernel));
  }

  const tn_program& program_;
  int32_t deepest_ = 0;
  Plan plan_;
};

void Planner::read(const tn_pointwise_site& site) {
  const pointwise::NormalForm form = pointwise::normalise(site);
  for (size_t i = 0; i < form.nodes.size(); ++i) {
    Node node;
    static_cast<pointwise::Node&>(node) = form.nodes[i];
    node.depth = form.depths[i];
    node.global = form.global[i];
    plan_.nodes.push_back(node);
  }
  for (uint32_t i = 0; i < program_.outputs_count; ++i)
    plan_.outputs.push_back(form.values[static_cast<size_t>(program_.outputs[i].value)]);
}

void Planner::mark_live() {
  for (const int32_t value : plan_.outputs) {
    node(value).live = true;
    deepest_ = std::max(deepest_, node(value).depth);
  }
  for (size_t i = plan_.nodes.size(); i-- > 0;) {
    const Node& each = plan_.nodes[i];
    if (!each.live) continue;
    for (int k = 0; k < each.operands_count(); ++k) node(each.operands[k]).live = true;
  }
  for (Node& each : plan_.nodes) {
    if (!each.live || !each.global) continue;
    each.kept = buffer(each.extent == TN_SCALAR ? BufferShape::kOne : BufferShape::kColumns);
    each.partial = buffer(each.extent == TN_SCALAR ? BufferShape::kParts : BufferShape::kStrips);
  }
}

// Assigns buffers to the reductions along a row that a reduction to PER_COLUMN reads.
void Planner::keep_rows() {
  Kernel down;
  down.grid = Grid::kStrips;
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const Node& each = plan_.nodes[i];
    if (each.live && each.global && each.extent == TN_PER_COLUMN) down.partials.push_back(static_cast<int32_t>(i));
  }
  // One at a time, from the last on: a reduction with a buffer is a leaf, so the values behind it need no buffer.
  for (size_t i = plan_.nodes.size(); i-- > 0;) {
    if (!plan_.nodes[i].is_reduction() || plan_.nodes[i].extent != TN_PER_ROW) continue;
    if (plan_.closure(down)[i]) plan_.nodes[i].kept = buffer(BufferShape::kRows);
  }
}

bool Planner::holds(const Kernel& kernel, uint8_t extent, bool only_inputs) const {
  const std::vector<bool> seen = plan_.closure(kernel);
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i] && plan_.nodes[i].extent == extent && (!only_inputs || plan_.nodes[i].operation == kLoad)) return true;
  return false;
}

// Whether a kernel over the full grid needs whole rows.
bool Planner::is_by_row(const Kernel& kernel) const {
  for (const int32_t output : kernel.outputs)
    if (plan_.node(plan_.outputs[static_cast<size_t>(output)]).extent == TN_PER_ROW) return true;
  for (const int32_t value : kernel.partials)
    if (plan_.node(plan_.node(value).operands[0]).extent == TN_PER_ROW) return true;
  const std::vector<bool> seen = plan_.closure(kernel);
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i] && plan_.nodes[i].is_reduction() && !plan_.is_leaf(kernel, static_cast<int32_t>(i))) return true;
  return false;
}

// The grid of the kernel that writes the partial results of a global reduction.
Grid Planner::grid_of(int32_t reduction) const {
  const Node& made = plan_.node(reduction);
  if (made.extent == TN_PER_COLUMN) return Grid::kStrips;
  Kernel alone;
  alone.partials = {reduction};
  switch (plan_.node(made.operands[0]).extent) {
    case TN_PER_COLUMN:
      return Grid::kColumnVector;
    case TN_PER_ROW:
      return holds(alone, TN_FULL, false) ? Grid::kRows : Grid::kRowVector;
    default:
      return Grid::kRows;
  }
}

// Appends the kernels that reduce values of one depth: first those that store reductions along rows, then those that
// write partial results, then those that fold them.
void Planner::reduce(int32_t depth) {
  std::array<Kernel, 4> kernels;
  const std::array<Grid, 4> grids = {Grid::kRows, Grid::kStrips, Grid::kRowVector, Grid::kColumnVector};
  for (size_t k = 0; k < grids.size(); ++k) {
    kernels[k].grid = grids[k];
    kernels[k].depth = depth;
  }
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const Node& each = plan_.nodes[i];
    const auto value = static_cast<int32_t>(i);
    if (!each.live || !each.is_reduction()) continue;
    if (!each.global && each.kept >= 0 && each.depth == depth) kernels[0].keeps.push_back(value);
    if (!each.global || each.depth != depth + 1) continue;
    const Grid grid = grid_of(value);
    for (size_t k = 0; k < grids.size(); ++k)
      if (grids[k] == grid) kernels[k].partials.push_back(value);
  }
  for (Kernel& kernel : kernels) append(std::move(kernel));
  combine(depth + 1, TN_SCALAR, Grid::kOne);
  combine(depth + 1, TN_PER_COLUMN, Grid::kColumnVector);
}

void Planner::combine(int32_t depth, uint8_t extent, Grid grid) {
  Kernel kernel;
  kernel.grid = grid;
  kernel.depth = depth;
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const Node& each = plan_.nodes[i];
    if (each.live && each.global && each.depth == depth && each.extent == extent)
      kernel.keeps.push_back(static_cast<int32_t>(i));
  }
  append(std::move(kernel));
}

void Planner::write() {
  std::array<std::vector<int32_t>, 4> groups;
  for (size_t i = 0; i < plan_.outputs.size(); ++i)
    groups[plan_.node(plan_.outputs[i]).extent].push_back(static_cast<int32_t>(i));
  // If a PER_ROW output depends on FULL values, all PER_ROW outputs are written with the FULL ones: a later kernel over
  // the rows could read an input that was already overwritten.
  Kernel rows;
  rows.outputs = groups[TN_PER_ROW];
  if (holds(rows, TN_FULL, false)) {
    groups[TN_FULL].insert(groups[TN_FULL].end(), groups[TN_PER_ROW].begin(), groups[TN_PER_ROW].end());
    groups[TN_PER_ROW].clear();
    place(groups[TN_FULL], Grid::kRows, {TN_FULL, TN_PER_ROW});
  } else {
    place(groups[TN_FULL], Grid::kRows, {TN_FULL});
  }
  place(groups[TN_PER_ROW], Grid::kRowVector, {TN_PER_ROW});
  place(groups[TN_PER_COLUMN], Grid::kColumnVector, {TN_PER_COLUMN});
  place(groups[TN_SCALAR], Grid::kOne, {TN_SCALAR});
}

// Adds the outputs to the first kernel that can compute them and after which no kernel reads inputs of these extents;
// else appends a kernel.
void Planner::place(const std::vector<int32_t>& outputs, Grid grid, std::initializer_list<uint8_t> extents) {
  if (outputs.empty()) return;
  Kernel made;
  made.grid = grid;
  made.outputs = outputs;
  for (const int32_t output : outputs)
    made.depth = std::max(made.depth, plan_.node(plan_.outputs[static_cast<size_t>(output)]).depth);
  size_t first = plan_.kernels.size();
  while (first > 0) {
    bool reads = false;
    for (const uint8_t extent : extents) reads = reads || holds(plan_.kernels[first - 1], extent, true);
    if (reads) break;
    --first;
  }
  for (size_t k = first > 0 ? first - 1 : 0; k < plan_.kernels.size(); ++k) {
    Kernel& kernel = plan_.kernels[k];
    if (kernel.grid != grid || kernel.depth < made.depth) continue;
    kernel.outputs = outputs;
    return;
  }
  plan_.kernels.push_back(std::move(made));
}

}  // namespace

Plan make_plan(const tn_pointwise_site& site) { return Planner(site).take(); }

}  // namespace tenon::cuda
