// SPDX-License-Identifier: Apache-2.0
#include "host/layers/cond_layers.h"

#include <algorithm>

#include "host/layers/host_attributes.h"
#include "host/layers/output_spec.h"

namespace tenon::host {

namespace {

std::string cond_label(const Cond& cond) { return "cond \"" + cond.name + "\""; }

// Whether the value has sequences, one for each of `all`.
bool has_sequences_of(const Spec& spec, const Dim& all) {
  return spec.storage == TN_RAGGED &&
         std::any_of(spec.outer.begin(), spec.outer.end(), [&](const Dim& outer) { return same(outer, all); });
}

// Whether branch `inner` is `outer`, or inside of it; null: outside of all.
bool is_within(const Branch* inner, const Branch* outer) {
  while (inner != nullptr && inner != outer) inner = inner->cond->around.get();
  return inner == outer;
}

// Calls `work`, and adds the cond to its errors.
template <typename Work>
auto labelled(const Cond& cond, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw error.with_component(cond_label(cond));
  }
}

}  // namespace

BranchRef branch_of(const std::vector<LayerOutput>& inputs) {
  const Layer* inside = nullptr;
  for (const LayerOutput& input : inputs) {
    if (input.layer == nullptr || input.layer->branch == nullptr) continue;
    const Layer& layer = *input.layer;
    if (inside != nullptr && is_within(inside->branch.get(), layer.branch.get())) continue;
    if (inside != nullptr && !is_within(layer.branch.get(), inside->branch.get()))
      fail(TN_INVALID, "it reads ", layer_label(*inside), " inside of ", branch_label(*inside->branch), " and ",
           layer_label(layer), " inside of ", branch_label(*layer.branch));
    inside = &layer;
  }
  if (inside == nullptr) return nullptr;
  if (inside->branch->cond->ended)
    fail(TN_INVALID, "it reads ", layer_label(*inside), " inside of ", branch_label(*inside->branch),
         ", whose results alone can be read outside");
  return inside->branch;
}

Spec in_branch(const Branch& branch, const LayerOutput& input, const SubjectName& subject, const SymbolNames& names) {
  Spec spec = spec_of(input);
  const Layer& layer = *input.layer;
  if (layer.branch.get() == &branch) return spec;
  const Cond& cond = *branch.cond;
  if (!is_within(&branch, layer.branch.get()))
    fail(TN_INVALID, subject, "input \"", subject.name, "\": ", layer_label(layer), " is inside of ",
         branch_label(*layer.branch), ", whose results alone can be read outside");
  if (cond.around != nullptr) spec = in_branch(*cond.around, input, subject, names);
  const bool of_rows = spec.storage != TN_CSR && is_constant_from(spec, 1) && !spec.shape.empty();
  if (of_rows && (same(spec.shape[0], cond.all) || same(spec.shape[0], branch.rows))) {
    Spec inside{spec.dtype, spec.shape, TN_DENSE, 0, {}};
    inside.shape[0] = branch.rows;
    return inside;
  }
  if ((spec.storage == TN_DENSE && is_constant_from(spec, 0)) || has_sequences_of(spec, cond.all)) return spec;
  fail(TN_INVALID, subject, "input \"", subject.name, "\": ", layer_label(layer), " is outside of ",
       branch_label(branch), " and has ", to_string(spec, names), "; expected one value for each of its rows, ",
       to_string(Shape{cond.all}, names));
}

void check_in_branch(const Layer& layer, const SymbolNames& names) {
  const Branch& branch = *layer.branch;
  if (layer.role != TN_ROLE_LAYER)
    fail(TN_INVALID, "a ", layer.role == TN_ROLE_COST ? "cost" : "metric", " cannot be inside of ",
         branch_label(branch), "; it can read a result");
  if (!layer.carried.empty())
    fail(TN_UNSUPPORTED, "it carries a state from minibatch to minibatch, and cannot be inside of ",
         branch_label(branch));
  if (layer.scan != nullptr) return;  // one value for each step of sequences of the branch
  for (const Spec& spec : layer.outputs) {
    const bool each = spec.storage == TN_DENSE && is_constant_from(spec, 1) && same(spec.shape[0], branch.rows);
    if (!each && !has_sequences_of(spec, branch.rows))
      fail(TN_INVALID, "it makes ", to_string(spec, names), " inside of ", branch_label(branch),
           "; expected one value for each of its rows, ", to_string(Shape{branch.rows}, names));
  }
}

OpenCond::OpenCond(const std::string& name, const LayerOutput& over, std::vector<LayerOutput> rows,
                   RaggedSymbols& symbols)
    : names_(symbols), cond_(std::make_shared<Cond>()) {
  cond_->name = name;
  labelled(*cond_, [&] {
    check_layer_name(name);
    const Spec& spec = spec_of(over);
    if (over.layer->scan != nullptr)
      fail(TN_UNSUPPORTED, layer_label(*over.layer), " is inside of scan \"", over.layer->scan->name,
           "\"; branches inside of scans are not in this version");
    if (spec.storage == TN_CSR || spec.shape.empty() || spec.shape[0].symbol == TN_SYMBOL_NONE)
      fail(TN_INVALID, layer_label(*over.layer), ", whose rows are chosen, has ", to_string(spec, names_),
           "; expected one value for each sample or row");
    if (rows.empty()) fail(TN_INVALID, "it has no branches");
    cond_->all = spec.shape[0];
    over_ = over;
    cond_->branches = rows.size();
    cond_->around = over.layer->branch;
    for (const LayerOutput& each : rows) check_rows(each, spec);
    rows_ = std::move(rows);
    for (size_t i = 0; i < rows_.size(); ++i)
      branches_.push_back(std::make_shared<const Branch>(Branch{cond_, i, spec_of(rows_[i]).shape[0]}));
    chosen_.resize(branches_.size());
    inputs_.resize(branches_.size());
  });
}

// Checks the numbers of the rows of a branch. over: the spec of the rows that they are chosen from.
void OpenCond::check_rows(const LayerOutput& rows, const Spec& over) const {
  const Spec& spec = spec_of(rows);
  const Shape around = over.storage == TN_RAGGED ? over.outer : Shape{cond_->all};
  const bool numbers = (spec.dtype == TN_I64 || spec.dtype == TN_I32) && spec.shape.size() == 1;
  if (!numbers || spec.storage != TN_RAGGED || !same(spec.outer, around))
    fail(TN_INVALID, layer_label(*rows.layer), ", the rows of a branch, has ", to_string(spec, names_),
         "; expected numbers of rows of ", layer_label(*over_.layer), ", int64 or int32, some for each of ",
         to_string(Shape{around.at(0)}, names_));
  if (rows.layer->branch != cond_->around || rows.layer->scan != nullptr)
    fail(TN_INVALID, layer_label(*rows.layer), " and ", layer_label(*over_.layer),
         " are not inside of the same branch");
}

bool OpenCond::is_of(const LayerOutput& over, const std::vector<LayerOutput>& rows) const {
  const auto equal = [](const LayerOutput& a, const LayerOutput& b) {
    return a.layer == b.layer && a.output == b.output;
  };
  return equal(over, over_) && std::equal(rows.begin(), rows.end(), rows_.begin(), rows_.end(), equal);
}

Layer OpenCond::part(const std::string& name, CondPart part, std::vector<LayerOutput> inputs) const {
  Layer layer;
  layer.name = name;
  layer.parameter_name = name;
  layer.type = part.kind == CondPart::Kind::kInput ? "cond_input" : "cond";
  layer.inputs = std::move(inputs);
  layer.index_limits.resize(layer.inputs.size());
  layer.branch = part.kind == CondPart::Kind::kInput ? branches_[part.branch] : cond_->around;
  part.cond = cond_;
  layer.host_part = std::move(part);
  return layer;
}

// Returns the spec of a value as it is around the branches.
Spec OpenCond::around(const LayerOutput& value, const std::string& what) const {
  const Spec& spec = spec_of(value);
  if (value.layer->scan != nullptr) fail(TN_INVALID, what, " is inside of scan \"", value.layer->scan->name, "\"");
  if (!is_within(cond_->around.get(), value.layer->branch.get()))
    fail(TN_INVALID, what, " is inside of ", branch_label(*value.layer->branch), "; expected a value from outside");
  return cond_->around == nullptr ? spec : in_branch(*cond_->around, value, SubjectName{value.layer->name}, names_);
}

LayerRef OpenCond::input(size_t branch, const std::string& name, const LayerOutput& value, const LayerOutput& rows) {
  return labelled(*cond_, [&] {
    if (cond_->ended) fail(TN_MISUSE, "it has ended");
    if (branch >= branches_.size())
      fail(TN_INVALID, SubjectName{"branch"}, "branch ", branch, " of ", branches_.size(), " branches");
    static_cast<void>(spec_of(value));
    const std::string what = "input " + layer_label(*value.layer);
    const Spec spec = around(value, what);
    CondPart made{CondPart::Kind::kInput, nullptr, branch};
    std::vector<LayerOutput> inputs = {value, over_};
    inputs.insert(inputs.end(), rows_.begin(), rows_.end());
    Spec inside;
    const bool numbers = !spec.shape.empty() && same(spec.shape[0], branches_[branch]->rows);  // of the rows themselves
    if (!numbers && has_sequences_of(spec, cond_->all)) {
      const Chosen& chosen = chosen_of(branch, value, spec, rows);
      inputs.push_back(chosen.rows);
      inside = {spec.dtype, spec.shape, TN_RAGGED, 1, {branches_[branch]->rows}};
      inside.shape[0] = tn_dim_symbol(chosen.symbol);
    } else {
      if (rows.layer != nullptr)
        fail(TN_INVALID, what, " has ", to_string(spec, names_), ", and rows of sequences are given");
      if (!spec.shape.empty() && spec.shape[0].symbol == TN_SYMBOL_NONE)
        fail(TN_INVALID, what, " has ", to_string(spec, names_), "; expected one value for each of ",
             to_string(Shape{cond_->all}, names_));
      inside = in_branch(*branches_[branch], value, SubjectName{value.layer->name}, names_);
    }
    const std::string generated = text(cond_->name, ".", branch, ".input_", inputs_[branch]);
    check_layer_name(name);
    Layer layer = part(name.empty() ? generated : name, std::move(made), std::move(inputs));
    layer.outputs = {std::move(inside)};
    ++inputs_[branch];
    return std::make_shared<const Layer>(std::move(layer));
  });
}

const OpenCond::Chosen& OpenCond::chosen_of(size_t branch, const LayerOutput& value, const Spec& spec,
                                            const LayerOutput& rows) {
  const std::string what = text("input ", layer_label(*value.layer), " has ", to_string(spec, names_));
  if (spec.levels != 1)
    fail(TN_UNSUPPORTED, what, ", sequences of ", spec.levels, " levels; branches choose those of one in this version");
  const auto known = chosen_[branch].find(spec.shape[0].symbol);
  if (known != chosen_[branch].end()) return known->second;
  if (rows.layer == nullptr)
    fail(TN_INVALID, SubjectName{"sequence_rows"}, what, "; expected with it the numbers of its rows in the branch");
  const Spec& given = spec_of(rows);
  const bool numbers = (given.dtype == TN_I64 || given.dtype == TN_I32) && given.shape.size() == 1;
  if (!numbers || given.storage != TN_RAGGED || !same(given.outer, Shape{branches_[branch]->rows}) ||
      rows.layer->branch != branches_[branch])
    fail(TN_INVALID, layer_label(*rows.layer), ", the rows of sequences, has ", to_string(given, names_),
         "; expected numbers of rows, int64 or int32, sequences for each of ",
         to_string(Shape{branches_[branch]->rows}, names_), " inside of the branch");
  return chosen_[branch].emplace(spec.shape[0].symbol, Chosen{rows, given.shape[0].symbol, spec}).first->second;
}

Spec OpenCond::result(size_t branch, const LayerOutput& value, LayerOutput& rows) const {
  static_cast<void>(spec_of(value));
  const Branch& of = *branches_[branch];
  const std::string what = text("result ", layer_label(*value.layer), " of branch ", branch);
  if (value.layer->scan != nullptr) fail(TN_INVALID, what, " is inside of scan \"", value.layer->scan->name, "\"");
  Spec spec = in_branch(of, value, SubjectName{value.layer->name}, names_);
  if (!is_float(spec.dtype))
    fail(TN_UNSUPPORTED, what, " has ", to_string(spec, names_), "; results are floats in this version");
  spec.dtype = TN_COMPUTE;
  const bool symbolic = spec.storage != TN_CSR && is_constant_from(spec, 1) && !spec.shape.empty();
  if (symbolic && same(spec.shape[0], of.rows)) {
    const Spec& over = spec_of(over_);
    Spec outside{spec.dtype, spec.shape, over.storage, over.levels, over.outer};
    outside.shape[0] = cond_->all;
    return outside;
  }
  for (const auto& [symbol, chosen] : chosen_[branch]) {
    if (!symbolic || spec.shape[0].symbol != chosen.symbol) continue;
    rows = chosen.rows;
    Spec outside{spec.dtype, spec.shape, chosen.from.storage, chosen.from.levels, chosen.from.outer};
    outside.shape[0] = chosen.from.shape[0];
    return outside;
  }
  fail(TN_INVALID, what, " has ", to_string(spec, names_), "; expected one value for each row of the branch, ",
       to_string(Shape{of.rows}, names_), ", or for each row of its sequences");
}

LayerRef OpenCond::end(const std::vector<std::vector<LayerOutput>>& results) {
  return labelled(*cond_, [&] {
    if (cond_->ended) fail(TN_MISUSE, "it has ended");
    if (results.size() != branches_.size())
      fail(TN_INVALID, "it has results of ", results.size(), " branches; expected ", branches_.size());
    for (size_t i = 1; i < results.size(); ++i)
      if (results[i].size() != results[0].size())
        fail(TN_INVALID, "branch 0 has ", results[0].size(), " results, branch ", i, " has ", results[i].size());
    if (results[0].empty()) fail(TN_INVALID, "it has no results");
    std::vector<LayerOutput> inputs = {over_};
    inputs.insert(inputs.end(), rows_.begin(), rows_.end());
    std::vector<Spec> outputs;
    for (size_t number = 0; number < results[0].size(); ++number)
      for (size_t branch = 0; branch < results.size(); ++branch) {
        const LayerOutput& value = results[branch][number];
        LayerOutput rows;
        Spec spec = result(branch, value, rows);
        if (branch > 0 && !same(spec.shape, outputs.back().shape))
          fail(TN_INVALID, "result ", number, " is ", to_string(outputs.back().shape, names_), " of ",
               layer_label(*results[0][number].layer), " in branch 0 and ", to_string(spec.shape, names_), " of ",
               layer_label(*value.layer), " in branch ", branch);
        inputs.insert(inputs.end(), {rows, value});
        if (branch == 0) outputs.push_back(std::move(spec));
      }
    Layer layer = part(cond_->name, {CondPart::Kind::kCond, nullptr, 0}, std::move(inputs));
    layer.outputs = std::move(outputs);
    LayerRef ended = std::make_shared<const Layer>(std::move(layer));
    cond_->ended = true;
    return ended;
  });
}

}  // namespace tenon::host
