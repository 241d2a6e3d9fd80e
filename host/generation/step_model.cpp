// SPDX-License-Identifier: Apache-2.0
#include "host/generation/step_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "base/nearest.h"
#include "core/error.h"

namespace tenon::host {

namespace {

bool is_constant(const Dim& dim) { return dim.symbol == TN_SYMBOL_NONE; }

// The sizes of the dimensions behind the first one; empty names a shape that has others.
std::vector<int64_t> row_shape(const Spec& spec, const Layer& layer) {
  std::vector<int64_t> shape;
  for (size_t i = 1; i < spec.shape.size(); ++i) {
    if (!is_constant(spec.shape[i]))
      fail(TN_INVALID, ComponentName{layer_label(layer)}, "it has ", to_string(spec),
           ", of which only the first dimension may differ from step to step");
    shape.push_back(spec.shape[i].offset);
  }
  return shape;
}

// Cuts a topology.
class Cutter {
 public:
  Cutter(LayerFactory& factory, const Topology& topology, LayerRef ids)
      : factory_(factory), topology_(topology), ids_(std::move(ids)) {
    for (const LayerRef& layer : topology_.layers) {
      const auto is_in = [&](const std::set<const Layer*>& set) {
        return std::any_of(layer->inputs.begin(), layer->inputs.end(),
                           [&](const LayerOutput& input) { return set.contains(input.layer.get()); });
      };
      if (layer == ids_ || is_in(generated_)) generated_.insert(layer.get());
      if (layer->data() || is_in(data_dependent_)) data_dependent_.insert(layer.get());
    }
  }

  StepModel run(const LayerOutput& scores) {
    if (!generated_.contains(scores.layer.get()))
      fail(TN_INVALID, SubjectName{ids_->name}, layer_label(*scores.layer), " does not depend on data layer \"",
           ids_->name, "\", whose ids are generated");
    for (const LayerRef& layer : topology_.layers) {
      if (!generated_.contains(layer.get())) continue;
      const bool nested = layer->scan_part() && layer->scan_part()->scan->around != nullptr;
      if (layer->cond_part() || nested)
        fail(TN_UNSUPPORTED, ComponentName{layer_label(*layer)}, SubjectName{ids_->name},
             nested ? "a scan inside of another" : "branches", " for rows of \"", ids_->name,
             "\" cannot be in a step that generates its ids in this version");
    }
    model_.vocabulary = vocabulary(scores);
    DataSource source;
    source.dtype = TN_I64;
    source.index_limit = model_.vocabulary;
    model_.ids = factory_.data(ids_->name, source);
    step_values_[{ids_.get(), 0}] = {model_.ids, 0};
    source.index_limit = -1;
    model_.sources.position = factory_.data(ids_->name + "/position", source);
    source.storage = TN_RAGGED;
    model_.sources.past = factory_.data(ids_->name + "/past", source);
    for (const LayerRef& layer : topology_.layers)
      if (layer != ids_ && generated_.contains(layer.get())) move(layer);
    model_.scores = in_step(scores);
    model_.outputs = {model_.scores};
    for (const StepInput& input : model_.inputs) {
      if (input.next.layer != nullptr) model_.outputs.push_back(input.next);
      if (input.value.layer != nullptr) model_.outside.push_back(input.value);
    }
    for (const StepHistory& history : model_.histories) model_.outputs.push_back(history.value);
    return std::move(model_);
  }

 private:
  using Key = std::pair<const Layer*, uint32_t>;

  // Checks the scores and returns how many ids there are.
  [[nodiscard]] int64_t vocabulary(const LayerOutput& scores) const {
    const Spec& spec = scores.layer->outputs.at(scores.output);
    const bool fits = spec.storage == TN_RAGGED && spec.shape.size() == 2 && is_float(spec.dtype) &&
                      same(spec.shape[0], ids_->outputs[0].shape[0]) && is_constant(spec.shape[1]);
    if (!fits)
      fail(TN_INVALID, ComponentName{layer_label(*scores.layer)}, "it has ", to_string(spec),
           "; expected scores of all ids in each row of \"", ids_->name, "\"");
    const int64_t count = spec.shape[1].offset, limit = ids_->data()->index_limit;
    if (limit > count)
      fail(TN_INVALID, ComponentName{layer_label(*scores.layer)}, SubjectName{ids_->name}, "it has scores of ", count,
           " ids, and the ids of data layer \"", ids_->name, "\" are below ", limit);
    return limit < 0 ? count : limit;
  }

  void move(const LayerRef& layer) {
    if (!layer->scan_part()) {
      const bool whole = !layer->data() && layer->scan == nullptr && factory_.has_step(*layer);
      return whole ? move_whole(layer) : move_layer(layer);
    }
    switch (layer->scan_part()->kind) {
      case ScanPart::Kind::kInput:
        require_generated(layer->inputs.at(0));
        step_values_[{layer.get(), 0}] = in_step(layer->inputs[0]);
        return;
      case ScanPart::Kind::kMemory:
        return move_memory(layer);
      case ScanPart::Kind::kScan:
        return move_scan(*layer);
    }
  }

  void move_memory(const LayerRef& layer) {
    StepInput input;
    if (layer->inputs.at(0).layer != nullptr) input.value = outside_of(layer->inputs[0]);
    input.initial = layer->scan_part()->initial_value;
    DataSource source;
    source.shape = row_shape(layer->outputs.at(0), *layer);
    input.data = factory_.data(layer->name, source);
    step_values_[{layer.get(), 0}] = {input.data, 0};
    memories_[layer.get()] = model_.inputs.size();
    model_.inputs.push_back(std::move(input));
  }

  void move_scan(const Layer& layer) {
    const ScanPart& part = *layer.scan_part();
    if (part.scan->reverse)
      fail(TN_INVALID, ComponentName{layer_label(layer)}, "it is reversed, from the last of the ids of \"", ids_->name,
           "\" to the first, which are generated from the first to the last");
    for (uint32_t i = 0; i < part.results; ++i) step_values_[{&layer, i}] = in_step(layer.inputs.at(1 + i));
    for (size_t i = 1 + part.results; i + 1 < layer.inputs.size(); i += 2)
      model_.inputs.at(memories_.at(layer.inputs[i].layer.get())).next = in_step(layer.inputs[i + 1]);
  }

  // Makes a layer that computes each row by itself again, with the rows of a step.
  void move_layer(const LayerRef& layer) {
    if (layer->data() || layer->role != TN_ROLE_LAYER || !layer->carried.empty() || !layer->derived_rows.empty())
      fail_reads_all(*layer);
    std::vector<LayerOutput> inputs;
    for (const LayerOutput& input : layer->inputs)
      inputs.push_back(input.layer == nullptr ? LayerOutput{} : in_step(input));
    const LayerOutput made = attempt(
        *layer, [&] { return factory_.layer(layer->type, layer->name, std::move(inputs), layer->given, layer.get()); });
    for (uint32_t i = 0; i < layer->outputs.size(); ++i) {
      if (!is_by_row(*layer, layer->outputs[i], made.layer->outputs.at(i))) fail_reads_all(*layer);
      step_values_[{layer.get(), i}] = {made.layer, i};
    }
  }

  // Makes one step of a layer whose type offers it.
  void move_whole(const LayerRef& layer) {
    std::vector<LayerOutput> inputs;
    for (const LayerOutput& input : layer->inputs) inputs.push_back(by_row(input) ? in_step(input) : LayerOutput{});
    const SteppedLayer made = attempt(*layer, [&] { return factory_.step(*layer, std::move(inputs), model_.sources); });
    for (const StepParts::Memory& memory : made.parts.memories) {
      StepInput input;
      input.data = memory.data;
      input.next = memory.next;
      if (memory.input && *memory.input < layer->inputs.size() && layer->inputs[*memory.input].layer != nullptr)
        input.value = outside_of(layer->inputs[*memory.input]);
      model_.inputs.push_back(std::move(input));
    }
    for (const StepParts::History& history : made.parts.histories)
      model_.histories.push_back({history.data, history.value});
    for (uint32_t i = 0; i < layer->outputs.size(); ++i) {
      const Spec& now = made.layer->outputs.at(i);
      if (now.shape.empty()) continue;  // of whole sequences
      if (!is_by_row(*layer, layer->outputs[i], now)) fail_reads_all(*layer);
      step_values_[{layer.get(), i}] = {made.layer, i};
    }
  }

  // Whether a value has an entry for each of the ids.
  [[nodiscard]] bool by_row(const LayerOutput& value) const {
    if (value.layer == nullptr) return false;
    const Spec& spec = value.layer->outputs.at(value.output);
    return !spec.shape.empty() && same(spec.shape[0], ids_->outputs[0].shape[0]);
  }

  // Calls `make`, whose errors are those of the layer.
  template <typename Make>
  std::invoke_result_t<Make> attempt(const Layer& layer, const Make& make) const try {
    return make();
  } catch (const Error& error) {
    const std::string label = layer_label(layer), begin = label + ": ";
    const std::string cause = error.message().substr(error.message().starts_with(begin) ? begin.size() : 0);
    fail(error.code(), ComponentName{label}, SubjectName{ids_->name}, "it cannot be in a step that generates ids of \"",
         ids_->name, "\" one after the other: ", cause);
  }

  // Whether an output of a layer has the same entries in a step as before: one for each row, or for each row of a
  // sequence from outside that a step of a scan reads whole.
  [[nodiscard]] bool is_by_row(const Layer& layer, const Spec& before, const Spec& now) const {
    const Dim samples = tn_dim_symbol(TN_SYMBOL_SAMPLES);
    if (now.shape.empty() || before.shape.empty() || row_shape(now, layer) != row_shape(before, layer)) return false;
    if (now.storage == TN_RAGGED)
      return layer.scan != nullptr && before.storage == TN_RAGGED && before.levels == 1 && now.levels == 1 &&
             same(now.outer.at(0), samples);
    if (before.storage == TN_RAGGED && !same(before.shape[0], ids_->outputs[0].shape[0])) return false;
    return now.storage == TN_DENSE && same(now.shape[0], samples) && is_ragged(before.shape[0]);
  }

  [[noreturn]] void fail_reads_all(const Layer& layer) const {
    fail(TN_INVALID, ComponentName{layer_label(layer)}, SubjectName{ids_->name}, "it does not compute each row of \"",
         ids_->name,
         "\" by itself, and the ids of a step after the first are not known; a scan can carry what it needs");
  }

  void require_generated(const LayerOutput& input) const {
    if (!generated_.contains(input.layer.get()))
      fail(TN_INVALID, ComponentName{layer_label(*input.layer)}, SubjectName{ids_->name},
           "it has a row for each of the ids of \"", ids_->name, "\", which are not known before they are generated");
  }

  // Returns a value that a step reads as it is in the step.
  LayerOutput in_step(const LayerOutput& output) {
    const auto found = step_values_.find({output.layer.get(), output.output});
    if (found != step_values_.end()) return found->second;
    if (generated_.contains(output.layer.get())) fail_last(output);
    if (!data_dependent_.contains(output.layer.get())) return output;  // the same in every step
    StepInput input;
    input.value = outside_of(output);
    input.data = factory_.data(name_of(output), source_of(output));
    model_.inputs.push_back(input);
    return step_values_[{output.layer.get(), output.output}] = {input.data, 0};
  }

  // An output of a scan that is not one of its results.
  [[noreturn]] void fail_last(const LayerOutput& output) const {
    fail(TN_INVALID, ComponentName{layer_label(*output.layer)}, SubjectName{ids_->name}, "output ", output.output,
         " is the last value of a memory, which is not known before all ids of \"", ids_->name, "\" are generated");
  }

  // Returns a value that does not depend on the ids. It has one entry for each sample, or a sequence.
  LayerOutput outside_of(const LayerOutput& output) const {
    const Spec& spec = output.layer->outputs.at(output.output);
    if (generated_.contains(output.layer.get())) fail_reads_all(*output.layer);
    const Dim samples = tn_dim_symbol(TN_SYMBOL_SAMPLES);
    const bool by_sample = spec.storage == TN_DENSE && !spec.shape.empty() && same(spec.shape[0], samples);
    const bool by_sequence = spec.storage == TN_RAGGED && spec.levels == 1 && same(spec.outer.at(0), samples);
    if (by_sequence && same(spec.shape[0], ids_->outputs[0].shape[0])) require_generated(output);
    if (!by_sample && !by_sequence)
      fail(TN_UNSUPPORTED, ComponentName{layer_label(*output.layer)}, "a step that generates ids of \"", ids_->name,
           "\" reads ", to_string(spec), "; expected one value, or one sequence, for each sample");
    return output;
  }

  [[nodiscard]] static std::string name_of(const LayerOutput& output) {
    return output.output == 0 ? output.layer->name : output_name(output);
  }

  [[nodiscard]] DataSource source_of(const LayerOutput& output) {
    const Spec& spec = output.layer->outputs.at(output.output);
    DataSource source;
    if (output.layer->data()) source = *output.layer->data();
    source.channels_first = false;
    source.dtype = spec.dtype;
    source.shape = row_shape(spec, *output.layer);
    source.storage = spec.storage;
    source.levels = spec.levels;
    source.sequence.clear();
    if (spec.storage == TN_RAGGED)
      source.sequence = sequences_.try_emplace(spec.shape[0].symbol, name_of(output)).first->second;
    return source;
  }

  LayerFactory& factory_;
  const Topology& topology_;
  const LayerRef ids_;
  std::set<const Layer*> generated_;        // that depend on the ids
  std::set<const Layer*> data_dependent_;   // that depend on any data layer
  std::map<Key, LayerOutput> step_values_;  // values in the step, by the output of the whole model
  std::map<const Layer*, size_t> memories_;
  std::map<int32_t, std::string> sequences_;  // from outside: names of their lengths, by the symbol of their rows
  StepModel model_;
};

}  // namespace

StepModel StepModel::make(LayerFactory& factory, const LayerOutput& scores, const std::string& ids) {
  const Topology topology = Topology::trace({scores});
  if (scores.output >= scores.layer->outputs.size())
    fail(TN_INVALID, ComponentName{layer_label(*scores.layer)}, "it has no outputs, which could be scores");
  std::vector<std::string> known;
  for (const LayerRef& layer : topology.layers) {
    if (!layer->data()) continue;
    known.push_back(layer->name);
    if (layer->name != ids) continue;
    const DataSource& data = *layer->data();
    if (data.storage != TN_RAGGED || data.levels != 1 || !data.shape.empty() || !is_integer(data.dtype))
      fail(TN_INVALID, ComponentName{layer_label(*layer)}, SubjectName{ids}, "it has ", to_string(layer->outputs[0]),
           "; expected sequences of ids, one integer in each row");
    return Cutter(factory, topology, layer).run(scores);
  }
  fail(TN_NOT_FOUND, SubjectName{ids}, layer_label(*scores.layer), " does not depend on a data layer \"", ids, "\"",
       base::suggestion(ids, known));
}

}  // namespace tenon::host
