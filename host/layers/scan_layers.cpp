// SPDX-License-Identifier: Apache-2.0
#include "host/layers/scan_layers.h"

#include <algorithm>
#include <cmath>

#include "host/layers/cond_layers.h"
#include "host/layers/host_attributes.h"
#include "host/layers/output_spec.h"

namespace tenon::host {

namespace {

std::string scan_label(const Scan& scan) { return "scan \"" + scan.name + "\""; }

// Returns the spec of a value from outside as it is around the scan.
Spec around(const Scan& scan, const LayerOutput& output, RaggedSymbols& symbols) {
  const Spec& spec = spec_of(output);
  const SubjectName subject{output.layer->name};
  if (scan.around != nullptr) return in_steps(*scan.around, output, subject, symbols);
  return scan.branch == nullptr ? spec : in_branch(*scan.branch, output, subject, symbols);
}

// Whether the value is dense, [sequences of the scan, constants...].
bool is_per_sequence(const Scan& scan, const Spec& spec) {
  return spec.storage == TN_DENSE && is_constant_from(spec, 1) && same(spec.shape[0], scan.outer);
}

// Returns the spec of sequences from outside, or of sub-sequences, as steps see them.
Spec seen(Scan& scan, Spec spec, const LayerOutput& input, RaggedSymbols& symbols) {
  for (const int32_t rows : {spec.shape[0].symbol, scan.rows.symbol})
    if (symbols.is_written(rows))
      fail(TN_UNSUPPORTED, layer_label(*input.layer), " in ", scan_label(scan), ": ", symbols.name_of(rows),
           " are known only while a step runs; the steps of a scan cannot see such sequences in this version");
  const auto [known, fresh] = scan.seen.try_emplace(spec.shape[0].symbol, tn_dim_constant(0));
  if (fresh) known->second = tn_dim_symbol(symbols.seen(spec.shape[0].symbol, scan.rows.symbol, scan.reverse));
  spec.shape[0] = known->second;
  spec.levels = 1;
  spec.outer = {scan.steps};
  return spec;
}

// Calls `work`, and adds the scan to its errors.
template <typename Work>
auto labelled(const Scan& scan, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw error.with_component(scan_label(scan));
  }
}

}  // namespace

ScanRef scan_of(const std::vector<LayerOutput>& inputs) {
  const Layer* inside = nullptr;
  for (const LayerOutput& input : inputs) {
    if (input.layer == nullptr || input.layer->scan == nullptr) continue;
    if (inside != nullptr && is_within(inside->scan.get(), input.layer->scan.get())) continue;
    if (inside != nullptr && !is_within(input.layer->scan.get(), inside->scan.get()))
      fail(TN_INVALID, "it reads ", layer_label(*inside), " inside of ", scan_label(*inside->scan), " and ",
           layer_label(*input.layer), " inside of ", scan_label(*input.layer->scan));
    inside = input.layer.get();
  }
  if (inside == nullptr) return nullptr;
  if (inside->scan->ended)
    fail(TN_INVALID, "it reads ", layer_label(*inside), " inside of ", scan_label(*inside->scan),
         ", whose results and last values alone can be read outside");
  return inside->scan;
}

Spec in_steps(Scan& scan, const LayerOutput& input, const SubjectName& subject, RaggedSymbols& symbols) {
  if (input.layer != nullptr && input.layer->scan.get() == &scan) return spec_of(input);
  Spec spec = around(scan, input, symbols);
  if (spec.storage == TN_DENSE && is_constant_from(spec, 0)) return spec;
  if (is_per_sequence(scan, spec)) {
    spec.shape[0] = scan.steps;
    return spec;
  }
  if (spec.storage == TN_RAGGED && spec.levels == 1 && is_constant_from(spec, 1) && same(spec.outer[0], scan.outer))
    return seen(scan, std::move(spec), input, symbols);
  const std::string what = text("input \"", subject.name, "\": ", layer_label(*input.layer), " is outside of ",
                                scan_label(scan), " and has ", to_string(spec, symbols));
  if (spec.storage == TN_RAGGED && same(spec.outer[0], scan.rows))
    fail(TN_INVALID, subject, what, "; as an input of the scan it has the sub-sequence of each step");
  fail(TN_INVALID, subject, what, "; expected one value or one sequence for each sequence of the scan, ",
       to_string(Shape{scan.outer}, symbols));
}

void check_inside(const Layer& layer, const SymbolNames& names) {
  if (layer.role != TN_ROLE_LAYER)
    fail(TN_INVALID, "a ", layer.role == TN_ROLE_COST ? "cost" : "metric", " cannot be inside of ",
         scan_label(*layer.scan), "; it can read a result of the scan");
  if (!layer.carried.empty() || !layer.derived_rows.empty())
    fail(TN_UNSUPPORTED, "it ", layer.carried.empty() ? "makes rows" : "carries a state from minibatch to minibatch",
         ", and cannot be inside of ", scan_label(*layer.scan), " in this version");
  const auto is_seen = [&](const Spec& spec) {
    return spec.storage == TN_RAGGED && spec.levels == 1 && same(spec.outer[0], layer.scan->steps);
  };
  for (const Spec& spec : layer.outputs)
    if (!is_constant_from(spec, 1) || (!is_seen(spec) && !same(spec.shape[0], layer.scan->steps)))
      fail(TN_INVALID, "it makes ", to_string(spec, names), " inside of ", scan_label(*layer.scan),
           "; expected one value for each step, ", to_string(Shape{layer.scan->steps}, names));
}

OpenScan::OpenScan(const std::string& name, const LayerOutput& over, bool reverse, RaggedSymbols& symbols)
    : names_(symbols), scan_(std::make_shared<Scan>()) {
  scan_->name = name;
  labelled(*scan_, [&] {
    check_layer_name(name);
    const Spec& spec = spec_of(over);
    if (over.layer->scan != nullptr && over.layer->scan->ended)
      fail(TN_INVALID, layer_label(*over.layer), " is inside of ", scan_label(*over.layer->scan), ", which has ended");
    if (spec.storage != TN_RAGGED)
      fail(TN_INVALID, layer_label(*over.layer), ", whose steps it goes through, has ", to_string(spec, names_),
           "; expected sequences");
    scan_->branch = over.layer->branch;
    scan_->around = over.layer->scan;
    scan_->reverse = reverse;
    scan_->rows = spec.levels == 1 ? spec.shape[0] : spec.outer.at(0);
    scan_->outer = spec.outer.at(spec.levels - 1);
    scan_->steps = tn_dim_symbol(names_.steps(scan_->rows.symbol, reverse));
    over_ = over;
  });
}

bool OpenScan::is_over(const LayerOutput& sequences) const {
  return sequences.layer == over_.layer && sequences.output == over_.output;
}

bool OpenScan::is_outside(const LayerOutput& output) const {
  return is_within(scan_->around.get(), output.layer->scan.get());
}

void OpenScan::require_open() const {
  if (scan_->ended) fail(TN_MISUSE, "it has ended");
}

std::string OpenScan::own(const std::string& name, const char* kind, size_t number) const {
  check_layer_name(name);
  return name.empty() ? text(scan_->name, ".", kind, "_", number) : name;
}

Layer OpenScan::part(const std::string& name, ScanPart part, std::vector<LayerOutput> inputs) const {
  static constexpr const char* kTypes[] = {"scan_input", "scan_memory", "scan"};
  Layer layer;
  layer.name = name;
  layer.parameter_name = name;
  layer.type = kTypes[static_cast<size_t>(part.kind)];
  layer.inputs = std::move(inputs);
  layer.index_limits.resize(layer.inputs.size());
  layer.scan = part.kind == ScanPart::Kind::kScan ? scan_->around : scan_;
  layer.branch = scan_->branch;
  part.scan = scan_;
  layer.host_part = std::move(part);
  return layer;
}

LayerRef OpenScan::input(const std::string& name, const LayerOutput& sequences) {
  return labelled(*scan_, [&] {
    require_open();
    static_cast<void>(spec_of(sequences));
    if (sequences.layer->branch != scan_->branch)
      fail(TN_INVALID, "inputs ", layer_label(*over_.layer), " and ", layer_label(*sequences.layer),
           " are not inside of the same branch");
    if (!is_outside(sequences))
      fail(TN_INVALID, "input ", layer_label(*sequences.layer), " is inside of ", scan_label(*sequences.layer->scan),
           "; expected sequences from outside");
    const Spec spec = around(*scan_, sequences, names_);
    if (spec.storage != TN_RAGGED || !is_constant_from(spec, 1))
      fail(TN_INVALID, "input ", layer_label(*sequences.layer), " has ", to_string(spec, names_),
           "; expected sequences");
    const Dim& rows = spec.levels == 1 ? spec.shape[0] : spec.outer.at(0);
    if (!same(rows, scan_->rows))
      fail(TN_INVALID, "inputs ", layer_label(*over_.layer), " and ", layer_label(*sequences.layer),
           " may have sequences of different lengths, ", to_string(Shape{scan_->rows}, names_), " and ",
           to_string(Shape{rows}, names_));
    std::vector<LayerOutput> inputs = {sequences};
    if (!is_over(sequences)) inputs.push_back(over_);
    Layer layer = part(own(name, "input", inputs_), {}, std::move(inputs));
    if (spec.levels == 1) {
      layer.outputs = {{spec.dtype, spec.shape, TN_DENSE, 0, {}}};
      layer.outputs[0].shape[0] = scan_->steps;
    } else {
      inner_.insert(spec.shape[0].symbol);
      layer.outputs = {seen(*scan_, spec, sequences, names_)};
    }
    ++inputs_;
    return std::make_shared<const Layer>(std::move(layer));
  });
}

LayerRef OpenScan::memory(const std::string& name, MemoryStart start) {
  return labelled(*scan_, [&] {
    require_open();
    const std::string called = own(name, "memory", memories_.size());
    Spec spec{TN_COMPUTE, {scan_->steps}, TN_DENSE, 0, {}};
    if (start.initial.layer != nullptr) {
      const Spec given = is_outside(start.initial) ? around(*scan_, start.initial, names_) : spec_of(start.initial);
      if (!is_outside(start.initial) || !is_per_sequence(*scan_, given))
        fail(TN_INVALID, "memory \"", called, "\": its initial value is ", to_string(given, names_), " of ",
             layer_label(*start.initial.layer), "; expected one value for each sequence, from outside");
      if (start.value != 0)
        fail(TN_INVALID, "memory \"", called, "\" begins with ", layer_label(*start.initial.layer), " and with ",
             start.value, "; expected one of them");
      spec.shape.insert(spec.shape.end(), given.shape.begin() + 1, given.shape.end());
    }
    if (start.initial.layer == nullptr)
      for (const int64_t extent : start.shape) {
        if (extent < 1)
          fail(TN_INVALID, "memory \"", called, "\" has a dimension of ", extent, "; expected at least 1");
        spec.shape.push_back(tn_dim_constant(extent));
      }
    if (spec.shape.size() > TN_MAX_RANK)
      fail(TN_INVALID, "memory \"", called, "\": rank ", spec.shape.size() - 1, " is above ", TN_MAX_RANK - 1);
    if (!std::isfinite(start.value))
      fail(TN_INVALID, "memory \"", called, "\" begins with ", start.value, ", which is not finite");
    ScanPart made;
    made.kind = ScanPart::Kind::kMemory;
    made.initial_value = start.value;
    Layer layer = part(called, std::move(made), {start.initial, over_});
    if (start.carry) layer.carried = {carried(called, start, spec)};
    layer.outputs = {std::move(spec)};
    memories_.emplace_back(std::make_shared<const Layer>(std::move(layer)), LayerOutput{});
    return memories_.back().first;
  });
}

// Returns the spec of what a memory carries. spec: of its output.
Spec OpenScan::carried(const std::string& memory, const MemoryStart& start, Spec spec) const {
  const Dim samples = tn_dim_symbol(TN_SYMBOL_SAMPLES);
  if (start.initial.layer != nullptr || start.value != 0)
    fail(TN_INVALID, "memory \"", memory,
         "\" is carried from minibatch to minibatch and has an initial value; carried memories begin with zeros");
  if (!same(scan_->outer, samples))
    fail(TN_UNSUPPORTED, "memory \"", memory,
         "\" is carried from minibatch to minibatch, but there is one for each of ", to_string(scan_->outer, names_),
         "; expected one for each sample");
  spec.shape[0] = samples;
  return spec;
}

size_t OpenScan::number_of(const LayerOutput& memory) const {
  const auto found = std::find_if(memories_.begin(), memories_.end(),
                                  [&](const auto& each) { return each.first == memory.layer && memory.output == 0; });
  if (found == memories_.end()) {
    static_cast<void>(spec_of(memory));
    fail(TN_INVALID, layer_label(*memory.layer), " is not a memory of it");
  }
  return static_cast<size_t>(found - memories_.begin());
}

void OpenScan::next(const LayerOutput& memory, const LayerOutput& value) {
  labelled(*scan_, [&] {
    require_open();
    auto& [of, left] = memories_[number_of(memory)];
    static_cast<void>(spec_of(value));
    if (left.layer != nullptr)
      fail(TN_INVALID, "memory \"", of->name, "\" is left ", layer_label(*left.layer), " and ",
           layer_label(*value.layer), "; expected one value");
    if (!is_within(scan_.get(), value.layer->scan.get()))
      fail(TN_INVALID, "memory \"", of->name, "\" is left ", layer_label(*value.layer), ", which is inside of ",
           scan_label(*value.layer->scan));
    const Spec spec = in_steps(*scan_, value, SubjectName{of->name}, names_);
    if (!same(spec.shape, of->outputs[0].shape))
      fail(TN_INVALID, "memory \"", of->name, "\" holds ", to_string(of->outputs[0].shape, names_), " and is left ",
           layer_label(*value.layer), ", ", to_string(spec.shape, names_));
    left = value;
  });
}

LayerRef OpenScan::end(std::vector<LayerOutput> results,
                       const std::vector<std::pair<LayerOutput, LayerOutput>>& memories) {
  for (size_t i = 0; i < memories.size(); ++i) {
    next(memories[i].first, memories[i].second);
    std::swap(memories_[i], memories_[labelled(*scan_, [&] { return number_of(memories[i].first); })]);
  }
  return end(std::move(results));
}

Spec OpenScan::outside(Spec spec, const Layer& result) const {
  const auto source = std::find_if(scan_->seen.begin(), scan_->seen.end(), [&](const auto& each) {
    return !spec.shape.empty() && same(each.second, spec.shape[0]);
  });
  if (source != scan_->seen.end() && inner_.contains(source->first)) {
    spec.shape[0] = tn_dim_symbol(source->first);
    spec.outer = {scan_->rows, scan_->outer};
  } else if (!spec.shape.empty() && same(spec.shape[0], scan_->steps)) {
    spec.shape[0] = scan_->rows;
    spec.outer = {scan_->outer};
  } else {
    fail(TN_INVALID, "result ", layer_label(result), " has ", to_string(spec, names_),
         "; expected one value for each step, or rows of sub-sequences that are an input");
  }
  spec.storage = TN_RAGGED;
  spec.levels = static_cast<uint32_t>(spec.outer.size());
  return spec;
}

LayerRef OpenScan::end(std::vector<LayerOutput> results) {
  return labelled(*scan_, [&] {
    require_open();
    std::vector<LayerOutput> inputs = {over_};
    std::vector<Spec> outputs;
    for (const LayerOutput& result : results) {
      static_cast<void>(spec_of(result));
      if (!is_within(scan_.get(), result.layer->scan.get()))
        fail(TN_INVALID, "result ", layer_label(*result.layer), " is inside of ", scan_label(*result.layer->scan));
      const Spec spec = in_steps(*scan_, result, SubjectName{result.layer->name}, names_);
      inputs.push_back(result);
      outputs.push_back(outside(spec, *result.layer));
    }
    for (const auto& [memory, left] : memories_) {
      if (left.layer == nullptr)
        fail(TN_INVALID, "memory \"", memory->name,
             "\" is never left a value; what stays the same at all steps can be "
             "read from outside");
      inputs.insert(inputs.end(), {{memory, 0}, left});
      Spec spec = memory->outputs[0];
      spec.shape[0] = scan_->outer;
      outputs.push_back(std::move(spec));
    }
    if (outputs.empty()) fail(TN_INVALID, "it has neither results nor memories");
    ScanPart made;
    made.kind = ScanPart::Kind::kScan;
    made.results = results.size();
    Layer layer = part(scan_->name, std::move(made), std::move(inputs));
    layer.outputs = std::move(outputs);
    LayerRef ended = std::make_shared<const Layer>(std::move(layer));
    scan_->ended = true;
    return ended;
  });
}

}  // namespace tenon::host
