// Cuts a pointwise program into passes. SPDX-License-Identifier: Apache-2.0
#include "pointwise/split_passes.h"

#include <algorithm>
#include <array>

namespace tenon::cpu {

namespace {

// The results that one pass of one phase must produce.
struct Plan {
  std::vector<int32_t> outputs;     // program outputs
  std::vector<int32_t> reductions;  // values that are global reductions
  [[nodiscard]] bool empty() const { return outputs.empty() && reductions.empty(); }
};

class Splitter {
 public:
  explicit Splitter(const tn_pointwise_site& site)
      : program_(*site.program), form_(pointwise::normalise(site)), results_(form_.nodes.size(), kNotGlobal) {
    number_results();
    place_reductions();
    place_outputs();
  }
  // The passes over the whole grid.
  [[nodiscard]] size_t full_passes() const {
    const auto has_full = [](const Phase& plans) { return !plans[TN_FULL].empty(); };
    return static_cast<size_t>(std::count_if(plans_.begin(), plans_.end(), has_full));
  }
  Schedule take() {
    for (size_t phase = 0; phase < plans_.size(); ++phase) emit_phase(phase);
    if (!scalar_outputs_.outputs.empty()) emit(scalar_outputs_, Grid::kScalar);
    return std::move(schedule_);
  }

 private:
  using Phase = std::array<Plan, 4>;  // by the extent of the pass's grid; TN_SCALAR is unused

  [[nodiscard]] const Node& node(int32_t value) const { return form_.nodes[static_cast<size_t>(value)]; }
  [[nodiscard]] int32_t output_value(int32_t output) const {
    return form_.values[static_cast<size_t>(program_.outputs[output].value)];
  }
  [[nodiscard]] bool is_global(int32_t value) const { return results_[static_cast<size_t>(value)] != kNotGlobal; }

  void number_results();
  void place_reductions();
  void place_outputs();
  void emit_phase(size_t phase);
  void emit(const Plan& plan, Grid grid);
  static void fuse(Pass& pass);

  // Marks in `seen` [nodes] all values that a pass needs for those that are marked. Global reductions are leaves.
  void close(std::vector<bool>& seen) const;
  [[nodiscard]] std::vector<bool> closure(const Plan& plan) const;
  // Whether a marked value has this extent (only_inputs: and is an input).
  [[nodiscard]] bool holds(const std::vector<bool>& seen, uint8_t extent, bool only_inputs) const;
  Plan& plan(int32_t phase, uint8_t extent) { return plans_[static_cast<size_t>(phase)][extent]; }
  // The last phase with a pass over one of `grids` that reads an input of `extent`; -1 if none.
  [[nodiscard]] int32_t last_reader(uint8_t extent, std::initializer_list<uint8_t> grids) const;

  static constexpr int32_t kNotGlobal = -1;
  const tn_program& program_;
  const pointwise::NormalForm form_;
  std::vector<int32_t> results_;  // by node: number of the global reduction, if an output depends on it, or kNotGlobal
  std::vector<Phase> plans_;
  Plan scalar_outputs_;
  Schedule schedule_;
};

// Numbers the global reductions that outputs depend on, and creates the phases.
void Splitter::number_results() {
  int32_t deepest = 0;
  std::vector<bool> live(form_.nodes.size(), false);
  for (uint32_t k = 0; k < program_.outputs_count; ++k) {
    const int32_t value = output_value(static_cast<int32_t>(k));
    live[static_cast<size_t>(value)] = true;
    deepest = std::max(deepest, form_.depths[static_cast<size_t>(value)]);
  }
  for (size_t i = form_.nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (int k = 0; k < form_.nodes[i].operands_count(); ++k)
      live[static_cast<size_t>(form_.nodes[i].operands[k])] = true;
  }
  for (size_t i = 0; i < form_.nodes.size(); ++i) {
    if (!form_.global[i] || !live[i]) continue;
    results_[i] = static_cast<int32_t>(schedule_.results.size());
    schedule_.results.push_back({form_.nodes[i].extent, form_.nodes[i].kind});
  }
  plans_.resize(static_cast<size_t>(deepest) + 1);
}

void Splitter::close(std::vector<bool>& seen) const {
  for (size_t i = seen.size(); i-- > 0;) {
    if (!seen[i] || is_global(static_cast<int32_t>(i))) continue;
    for (int k = 0; k < form_.nodes[i].operands_count(); ++k)
      seen[static_cast<size_t>(form_.nodes[i].operands[k])] = true;
  }
}

std::vector<bool> Splitter::closure(const Plan& plan) const {
  std::vector<bool> seen(form_.nodes.size(), false);
  for (const int32_t output : plan.outputs) seen[static_cast<size_t>(output_value(output))] = true;
  for (const int32_t reduction : plan.reductions) seen[static_cast<size_t>(node(reduction).operands[0])] = true;
  close(seen);
  return seen;
}

bool Splitter::holds(const std::vector<bool>& seen, uint8_t extent, bool only_inputs) const {
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen[i] && form_.nodes[i].extent == extent && (!only_inputs || form_.nodes[i].operation == kLoad)) return true;
  return false;
}

int32_t Splitter::last_reader(uint8_t extent, std::initializer_list<uint8_t> grids) const {
  for (size_t phase = plans_.size(); phase-- > 0;)
    for (const uint8_t grid : grids)
      if (const Plan& read = plans_[phase][grid]; !read.empty() && holds(closure(read), extent, true))
        return static_cast<int32_t>(phase);
  return -1;
}

// Assigns each global reduction to the phase of its operand's depth, and to the smallest grid that can compute the
// operand.
void Splitter::place_reductions() {
  for (size_t i = 0; i < form_.nodes.size(); ++i) {
    if (!is_global(static_cast<int32_t>(i))) continue;
    const int32_t operand = form_.nodes[i].operands[0];
    uint8_t grid = node(operand).extent;
    if (grid == TN_PER_ROW) {
      std::vector<bool> seen(form_.nodes.size(), false);
      seen[static_cast<size_t>(operand)] = true;
      close(seen);
      if (holds(seen, TN_FULL, false)) grid = TN_FULL;
    }
    plan(form_.depths[static_cast<size_t>(operand)], grid).reductions.push_back(static_cast<int32_t>(i));
  }
}

void Splitter::place_outputs() {
  std::array<std::vector<int32_t>, 4> groups;
  for (uint32_t k = 0; k < program_.outputs_count; ++k)
    groups[node(output_value(static_cast<int32_t>(k))).extent].push_back(static_cast<int32_t>(k));
  // If a PER_ROW output depends on FULL values, all PER_ROW outputs are written by the pass over the full grid: a
  // separate pass over the rows could read an input that was already overwritten.
  const bool rows_in_full = !groups[TN_PER_ROW].empty() && holds(closure({groups[TN_PER_ROW], {}}), TN_FULL, false);
  if (rows_in_full) {
    groups[TN_FULL].insert(groups[TN_FULL].end(), groups[TN_PER_ROW].begin(), groups[TN_PER_ROW].end());
    groups[TN_PER_ROW].clear();
  }
  const auto place = [&](uint8_t grid, int32_t after) {
    for (const int32_t output : groups[grid])
      after = std::max(after, form_.depths[static_cast<size_t>(output_value(output))]);
    plan(std::max(after, 0), grid).outputs = groups[grid];
  };
  const auto row_reader = [this] { return last_reader(TN_PER_ROW, {TN_FULL, TN_PER_ROW}); };
  if (!groups[TN_FULL].empty())
    place(TN_FULL, std::max(last_reader(TN_FULL, {TN_FULL}), rows_in_full ? row_reader() : -1));
  if (!groups[TN_PER_ROW].empty()) place(TN_PER_ROW, row_reader());
  if (!groups[TN_PER_COLUMN].empty()) place(TN_PER_COLUMN, last_reader(TN_PER_COLUMN, {TN_FULL, TN_PER_COLUMN}));
  scalar_outputs_.outputs = groups[TN_SCALAR];
}

// Within a phase the pass over rows comes after the full one, unless the full one writes PER_ROW outputs.
void Splitter::emit_phase(size_t phase) {
  const Phase& plans = plans_[phase];
  bool rows_first = false;
  for (const int32_t output : plans[TN_FULL].outputs) rows_first |= node(output_value(output)).extent == TN_PER_ROW;
  if (rows_first && !plans[TN_PER_ROW].empty()) emit(plans[TN_PER_ROW], Grid::kRows);
  if (!plans[TN_FULL].empty()) emit(plans[TN_FULL], Grid::kFull);
  if (!rows_first && !plans[TN_PER_ROW].empty()) emit(plans[TN_PER_ROW], Grid::kRows);
  if (!plans[TN_PER_COLUMN].empty()) emit(plans[TN_PER_COLUMN], Grid::kColumns);
}

void Splitter::emit(const Plan& plan, Grid grid) {
  Pass pass;
  pass.grid = grid;
  const std::vector<bool> seen = closure(plan);
  std::vector<int32_t> numbers(form_.nodes.size(), -1);
  pass.nodes.reserve(form_.nodes.size());
  for (size_t i = 0; i < form_.nodes.size(); ++i) {
    if (!seen[i]) continue;
    Node made = form_.nodes[i];
    if (is_global(static_cast<int32_t>(i))) made = {kResult, made.kind, made.extent, {-1, -1, -1}, results_[i], 0};
    for (int k = 0; k < made.operands_count(); ++k) made.operands[k] = numbers[static_cast<size_t>(made.operands[k])];
    if (grid != Grid::kFull && made.extent != TN_SCALAR) made.extent = TN_FULL;
    pass.by_row |= made.is_reduction();
    if (grid == Grid::kFull) pass.flat &= made.extent == TN_SCALAR || made.extent == TN_FULL;
    numbers[i] = static_cast<int32_t>(pass.nodes.size());
    pass.nodes.push_back(made);
  }
  for (const int32_t output : plan.outputs)
    pass.outputs.push_back({numbers[static_cast<size_t>(output_value(output))], output});
  for (const int32_t value : plan.reductions) {
    pass.reductions.push_back({numbers[static_cast<size_t>(node(value).operands[0])], node(value).operation,
                               results_[static_cast<size_t>(value)]});
    if (grid == Grid::kFull) pass.flat &= node(value).extent == TN_SCALAR;
  }
  fuse(pass);
  schedule_.passes.push_back(std::move(pass));
}

// Fuses a product with the sum or difference that is its only reader, if both have the same extent. A product of a
// smaller extent is computed outside of the tile anyway.
void Splitter::fuse(Pass& pass) {
  std::vector<int> uses(pass.nodes.size(), 0);
  for (const Node& each : pass.nodes)
    for (int k = 0; k < each.operands_count(); ++k) ++uses[static_cast<size_t>(each.operands[k])];
  for (const OutputSink& sink : pass.outputs) ++uses[static_cast<size_t>(sink.node)];
  for (const ReductionSink& sink : pass.reductions) ++uses[static_cast<size_t>(sink.node)];
  for (Node& sum : pass.nodes) {
    if (sum.kind != TN_FLOAT || (sum.operation != TN_OP_ADD && sum.operation != TN_OP_SUB)) continue;
    for (const int side : {1, 0}) {
      const Node& product = pass.nodes[static_cast<size_t>(sum.operands[side])];
      if (product.operation != TN_OP_MUL || product.extent != sum.extent) continue;
      if (uses[static_cast<size_t>(sum.operands[side])] != 1) continue;
      const int32_t other = sum.operands[1 - side];
      const uint16_t fused = sum.operation == TN_OP_ADD ? kMulAdd : side == 0 ? kMulSub : kNegMulAdd;
      uses[static_cast<size_t>(sum.operands[side])] = 0;
      sum = {fused, sum.kind, sum.extent, {product.operands[0], product.operands[1], other}, -1, 0};
      break;
    }
  }
  // Drops the products that are now unused.
  std::vector<int32_t> numbers(pass.nodes.size(), -1);
  size_t kept = 0;
  for (size_t i = 0; i < pass.nodes.size(); ++i) {
    if (uses[i] == 0 && pass.nodes[i].operation == TN_OP_MUL) continue;
    Node made = pass.nodes[i];
    for (int k = 0; k < made.operands_count(); ++k) made.operands[k] = numbers[static_cast<size_t>(made.operands[k])];
    numbers[i] = static_cast<int32_t>(kept);
    pass.nodes[kept++] = made;
  }
  pass.nodes.resize(kept);
  for (OutputSink& sink : pass.outputs) sink.node = numbers[static_cast<size_t>(sink.node)];
  for (ReductionSink& sink : pass.reductions) sink.node = numbers[static_cast<size_t>(sink.node)];
}

}  // namespace

Schedule schedule(const tn_pointwise_site& site) { return Splitter(site).take(); }

size_t count_full_passes(const tn_pointwise_site& site) { return Splitter(site).full_passes(); }

}  // namespace tenon::cpu
