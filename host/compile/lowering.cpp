// SPDX-License-Identifier: Apache-2.0
#include "host/compile/lowering.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/error.h"
#include "host/compile/builder.h"
#include "host/compile/fusion_patterns.h"
#include "host/plugins/callback.h"
#include "host/plugins/error_sink.h"

namespace tenon::host {

ValueId Lowered::value_of(const LayerOutput& output) const {
  const LayerOutput leaf = resolved(output);
  const auto found = outputs.find({leaf.layer.get(), leaf.output});
  return found == outputs.end() ? kNoValue : found->second;
}

void KernelSite::seal(tn_dtype compute, const tn_attributes* of) {
  for (const auto* list : {&inputs, &outputs, &parameters})
    for (const Spec& spec : *list) views.push_back(spec.view());
  const tn_spec* view = views.data();
  for (const bool missing : absent) {
    input_pointers.push_back(missing ? nullptr : view);
    ++view;
  }
  for (size_t i = 0; i < outputs.size(); ++i) output_pointers.push_back(view++);
  for (size_t i = 0; i < parameters.size(); ++i) parameter_pointers.push_back(view++);
  site.size = sizeof site;
  site.compute = compute;
  site.attributes = of;
  site.inputs_count = static_cast<uint32_t>(input_pointers.size());
  site.outputs_count = static_cast<uint32_t>(output_pointers.size());
  site.parameters_count = static_cast<uint32_t>(parameter_pointers.size());
  site.inputs = input_pointers.data();
  site.outputs = output_pointers.data();
  site.parameters = parameter_pointers.data();
}

namespace {

std::set<std::string> types_of(const Topology& topology) {
  std::set<std::string> types;
  for (const LayerRef& leaf : topology.leaves) types.insert(leaf->type);
  return types;
}

class Lowerer {
 public:
  Lowerer(const Topology& topology, Registry& registry, const std::string& device, tn_dtype compute,
          const std::vector<int64_t>& bounds, bool training)
      : topology_(topology),
        registry_(registry),
        device_(device),
        compute_(compute),
        bounds_(bounds),
        training_(training),
        fusions_(registry.fusions(types_of(topology), device, compute)) {}

  Lowered run() {
    for (const LayerRef& leaf : topology_.leaves) {
      numbers_[leaf.get()] = static_cast<int32_t>(result_.graph.layers.size());
      result_.graph.layers.push_back(leaf->name);
    }
    const auto may = [this](const Layer& layer, bool last) { return may_be_fused(layer, last); };
    for (const LayerRef& leaf :
         fusions_.empty() ? topology_.leaves : in_order_of_chains(topology_.leaves, fusions_, may)) {
      layer_index_ = numbers_.at(leaf.get());
      if (leaf->data)
        feed(*leaf);
      else
        body(leaf);
    }
    return std::move(result_);
  }

 private:
  static std::vector<ValueId> with(std::vector<ValueId> values, const std::vector<ValueId>& more) {
    values.insert(values.end(), more.begin(), more.end());
    return values;
  }
  [[nodiscard]] Spec concrete(Spec spec) const {
    if (spec.dtype == TN_COMPUTE) spec.dtype = compute_;
    return spec;
  }
  GraphWriter writer() { return {result_.graph, layer_index_, false, compute_}; }

  // Adds a ragged dimension with `outer` sequences unless it is known, and its offsets int64 [outer + 1] to the graph.
  void add_rows(int32_t symbol, const Dim& outer, const std::string& name, const ConcatenatedDim& concatenated) {
    if (result_.graph.rows.contains(symbol)) return;
    Dim ends = outer;
    ends.offset += 1;
    const ValueId offsets = result_.graph.add_external({TN_I64, {ends}, TN_DENSE, 0, {}}, name);
    const RaggedDim of{outer, offsets};
    result_.graph.rows[symbol] = of;
    result_.rows.push_back({symbol, name, concatenated, of});
  }

  void feed(const Layer& layer) {
    Feed feed;
    feed.name = layer.name;
    feed.spec = concrete(layer.outputs[0]);
    if (feed.spec.storage == TN_CSR) {
      const Dim entries = feed.spec.outer.at(0);
      add_rows(entries.symbol, feed.spec.shape[0], layer.name, {});
      feed.rows = {entries.symbol};
      feed.value = result_.graph.add_external({TN_I64, {entries}, TN_DENSE, 0, {}}, layer.name);
      feed.weights = result_.graph.add_external({compute_, {entries}, TN_DENSE, 0, {}}, layer.name);
      weights_[feed.value] = feed.weights;
    } else {
      Shape around = feed.spec.outer;  // from the rows out to the samples
      if (!around.empty()) around.insert(around.begin(), feed.spec.shape[0]);
      for (size_t i = around.size(); i-- > 1;) {
        add_rows(around[i - 1].symbol, around[i], layer.name, {});
        feed.rows.push_back(around[i - 1].symbol);
      }
      feed.value = result_.graph.add_external(feed.spec, layer.name);
    }
    if (!is_float(feed.spec.dtype) && (layer.data->scale != 1 || layer.data->offset != 0))
      scales_[feed.value] = {layer.data->scale, layer.data->offset};
    feed.index_limit = feed.weights == kNoValue ? layer.data->index_limit : layer.data->shape[0];
    feed.limited_by = layer.name;
    result_.outputs[{&layer, 0}] = feed.value;
    result_.feeds.push_back(std::move(feed));
  }

  void limit_index(const LayerOutput& input, int64_t limit, const Layer& by) {
    const LayerOutput source = resolved(input);
    if (!source.layer->data) return;
    for (Feed& feed : result_.feeds) {
      if (feed.name != source.layer->name || (feed.index_limit >= 0 && feed.index_limit <= limit)) continue;
      feed.index_limit = limit;
      feed.limited_by = by.name;
    }
  }

  void body(const LayerRef& ref) {
    const Layer& layer = *ref;
    body_.layer = &layer;
    for (const ConcatenatedDim& concatenated : layer.concatenated)
      add_rows(concatenated.rows, result_.graph.rows.at(concatenated.first).outer, "", concatenated);
    enter(layer);
    for (size_t i = 0; i < layer.inputs.size(); ++i)
      if (layer.index_limits[i] >= 0) limit_index(layer.inputs[i], layer.index_limits[i], layer);
    body_.buffers.clear();
    for (const LayerParameter& buffer : layer.buffers) body_.buffers.push_back(use_buffer(buffer));
    body_.outputs.assign(layer.outputs.size(), kNoValue);
    body_.states.assign(layer.state_count, kNoValue);
    compute(ref);
    check_outputs();
    if (layer.role == TN_ROLE_METRIC) result_.metrics.push_back({ref, body_.states});
  }

  // Sets type, inputs and parameters of body_ to those of a layer.
  void enter(const Layer& layer) {
    body_.type = &registry_.layer(layer.type);
    body_.inputs.clear();
    for (size_t i = 0; i < layer.inputs.size(); ++i)
      body_.inputs.push_back(layer.inputs[i].layer == nullptr ? kNoValue : entering(layer.inputs[i], i));
    body_.parameters.clear();
    for (const LayerParameter& parameter : layer.parameters) body_.parameters.push_back(use(parameter));
  }

  // Lowers a layer to a fused kernel, to a native kernel of its own, or to its recorded body.
  void compute(const LayerRef& ref) {
    const bool needs_kernel = body_.type->table.lower == nullptr;
    const std::shared_ptr<KernelSite> kernel = best_kernel(ref, needs_kernel);
    if (!fusions_.empty() && fused_into_kernel(ref)) return;
    if (kernel != nullptr) {
      std::vector<ValueId> results = native(kernel, with(body_.inputs, body_.parameters), {});
      if (ref->role == TN_ROLE_METRIC)
        body_.states = std::move(results);
      else
        body_.outputs = std::move(results);
    } else if (!needs_kernel) {
      recorded();
    } else {
      fail(TN_UNSUPPORTED, ComponentName{layer_label(*ref)}, "it has native kernels only, and none for device \"",
           device_, "\" and ", dtype_name(compute_));
    }
  }

  void recorded() {
    const size_t first = result_.graph.nodes.size();
    record(result_, body_, {writer(), weights_, draws_, training_});
    keep_scales(first);
  }

  // Returns the value at input number `i`. Converts integers if the port takes floats.
  ValueId entering(const LayerOutput& input, size_t i) {
    const ValueId value = result_.value_of(input);
    const std::vector<Port>& ports = body_.type->description.inputs;
    const uint32_t flags = ports[std::min(i, ports.size() - 1)].flags;
    const tn_dtype dtype = result_.graph.spec(value).dtype;
    if (weights_.contains(value) || dtype == compute_ || (flags & TN_PORT_INTEGER) != 0 ||
        ((flags & TN_PORT_ANY) != 0 && !is_float(dtype)))
      return value;
    return in_floats(value);
  }

  // Converts a value to the compute type, applying the scale and offset of its data layer.
  ValueId in_floats(ValueId value) {
    const auto converted = converted_.find(value);
    if (converted != converted_.end()) return converted->second;
    const auto known = scales_.find(value);
    const Scale scale = known == scales_.end() ? Scale{} : known->second;
    return converted_[value] = writer().convert(value, scale.factor, scale.offset);
  }

  // Passes the scale and offset of integer data on through the nodes from number `first` on that only move elements.
  void keep_scales(size_t first) {
    for (size_t i = first; i < result_.graph.nodes.size(); ++i) {
      const Node& node = result_.graph.nodes[i];
      const auto* segment = node.as<Segment>();
      const bool moves =
          node.is<View>() || node.is<Move>() || node.is<Gather>() ||
          (segment != nullptr && (segment->op == TN_SEGMENT_BROADCAST || segment->op == TN_SEGMENT_SHIFT));
      if (!moves || is_float(result_.graph.spec(node.outputs[0]).dtype)) continue;
      const size_t sources = node.is<Move>() ? node.inputs.size() : 1;  // the others are ids or offsets
      const auto of = [&](size_t source) {
        const auto known = scales_.find(node.inputs[source]);
        return known == scales_.end() ? Scale{} : known->second;
      };
      for (size_t source = 1; source < sources; ++source)
        if (of(source) != of(0))
          fail(TN_UNSUPPORTED, ComponentName{layer_label(*body_.layer)},
               "it puts integers of data with different scales or offsets together");
      if (of(0) != Scale{}) scales_[node.outputs[0]] = of(0);
    }
  }

  ValueId stored(const LayerParameter& parameter) {
    Spec spec = parameter.spec;
    if (spec.dtype == TN_COMPUTE) spec.dtype = TN_F32;  // the type of the set
    return result_.graph.add_external(spec, parameter.name);
  }
  ValueId in_compute_type(ValueId value) {
    return result_.graph.spec(value).dtype == compute_ ? value : writer().convert(value, 1, 0);
  }

  ValueId use(const LayerParameter& parameter) {
    const bool row_sparse = (parameter.flags & TN_PARAMETER_SPARSE_GRADIENT) != 0;
    for (ParameterUse& known : result_.parameters) {
      if (known.name != parameter.name) continue;
      known.row_sparse = known.row_sparse && row_sparse;
      return known.computed;
    }
    const ValueId value = stored(parameter);
    result_.parameters.push_back({parameter.name, value, in_compute_type(value), kNoValue, row_sparse});
    return result_.parameters.back().computed;
  }

  size_t use_buffer(const LayerParameter& buffer) {
    for (size_t i = 0; i < result_.buffers.size(); ++i)
      if (result_.buffers[i].name == buffer.name) return i;
    const ValueId value = stored(buffer);
    result_.buffers.push_back({buffer.name, value, in_compute_type(value), kNoValue});
    return result_.buffers.size() - 1;
  }

  void check_outputs() {
    const Layer& layer = *body_.layer;
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      const std::string& port = body_.type->description.outputs[i].name;
      if (body_.outputs[i] == kNoValue)
        fail(TN_PLUGIN_FAULT, ComponentName{layer_label(layer)}, "lower gave no output \"", port, "\"");
      const Spec planned = concrete(layer.outputs[i]);
      const Spec& made = result_.graph.spec(body_.outputs[i]);
      if (!same(planned.shape, made.shape) || planned.dtype != made.dtype)
        fail(TN_PLUGIN_FAULT, ComponentName{layer_label(layer)}, "output \"", port, "\" was planned as ",
             to_string(planned), " but lower gave ", to_string(made));
      if (layer.drop_rate > 0 && training_) body_.outputs[i] = dropped(body_.outputs[i], layer.drop_rate);
      std::string& name = result_.graph.values[static_cast<size_t>(body_.outputs[i])].name;
      if (name.empty()) name = layer.name;
      result_.outputs[{&layer, static_cast<uint32_t>(i)}] = body_.outputs[i];
    }
    for (size_t i = 0; i < body_.states.size(); ++i)
      if (body_.states[i] == kNoValue)
        fail(TN_PLUGIN_FAULT, ComponentName{layer_label(layer)}, "lower gave no state ", i);
  }

  // Applies the host attribute drop_rate: x becomes 0 with probability `rate`, else x / (1 - rate).
  ValueId dropped(ValueId value, double rate) {
    if (scales_.contains(value)) value = in_floats(value);
    ProgramWriter program;
    const int32_t goes = program.apply(TN_OP_LESS, program.uniform(draws_++, TN_FULL), program.constant(rate));
    const int32_t kept = program.apply(TN_OP_MUL, program.input(TN_FULL), program.constant(1 / (1 - rate)));
    program.output(program.apply(TN_OP_SELECT, goes, program.constant(0), kept));
    return writer().pointwise(std::make_shared<Program>(program.finish()), {value}, 1)[0];
  }

  // ---- native kernels

  // Returns the kernel with the highest score among those that support the layer; null if there is none, or if the
  // recorded body, which has score 0, is at least as good.
  std::shared_ptr<KernelSite> best_kernel(const LayerRef& ref, bool needs_kernel) {
    std::shared_ptr<KernelSite> best;
    int32_t best_score = 0;
    for (const Kernel* kernel : registry_.kernels(ref->type, device_, compute_)) {
      auto site = make_site(ref, *kernel);
      const std::optional<int32_t> score = score_of(*site);
      if (!score || (!needs_kernel && *score <= 0) || (best && *score <= best_score)) continue;
      best = std::move(site);
      best_score = *score;
    }
    scores_[ref.get()] = best_score;
    return best;
  }

  // Returns the score of a kernel; nothing if it does not support the site.
  [[nodiscard]] std::optional<int32_t> score_of(const KernelSite& site) const {
    const Kernel& kernel = *site.kernel;
    int32_t score = kernel.table.score;
    const tn_status status = call_plugin(kernel, layer_label(*site.layer), {Tag::kSetup, "supports"},
                                         kernel.table.supports, &site.site, &score);
    if (status == TN_OUT_OF_MEMORY) ErrorSink(layer_label(*site.layer)).check(status);
    return status == TN_OK ? std::optional(score) : std::nullopt;
  }

  // Appends a node for the kernel and returns its outputs. layers: those of a fused chain; else empty.
  std::vector<ValueId> native(const std::shared_ptr<KernelSite>& site, const std::vector<ValueId>& operands,
                              const std::vector<int32_t>& layers) {
    const Kernel& kernel = *site->kernel;
    const std::string who = layer_label(*site->layer);
    tn_kernel_needs needs = {};
    needs.size = sizeof needs;
    ErrorSink(who).check(call_plugin(kernel, who, {Tag::kSetup, "query"}, kernel.table.query, &site->site, &needs));
    constexpr size_t kMaskBits = 64;  // of tn_kernel_needs
    const size_t outputs = site->outputs.size();
    if (operands.size() > kMaskBits || outputs > kMaskBits)
      fail(TN_UNSUPPORTED, ComponentName{who}, "a native kernel with ", operands.size(), " inputs and parameters and ",
           outputs, " outputs; at most ", kMaskBits, " of each");
    const auto beyond = [](uint64_t mask, size_t count) { return count < kMaskBits && mask >> count != 0; };
    if (beyond(needs.backward_inputs, operands.size()) || beyond(needs.backward_outputs, outputs))
      fail(TN_PLUGIN_FAULT, ComponentName{who}, "kernel \"", kernel.table.name, "\" of ", kernel.plugin,
           " reads missing operands in backward; it has ", operands.size(), " inputs and parameters and ", outputs,
           " outputs");
    NativeCall call;
    call.site = site;
    call.backward_inputs = needs.backward_inputs;
    call.backward_outputs = needs.backward_outputs;
    call.differentiable = site->layer->role != TN_ROLE_METRIC;
    return writer().native(std::move(call), operands, planned_outputs(*site), layers);
  }

  // Returns the specs of the results of a native kernel: the outputs of a layer, or the states of a metric.
  [[nodiscard]] std::vector<Spec> results(const Layer& layer) const {
    if (layer.role == TN_ROLE_METRIC) return {layer.state_count, Spec{TN_F64, {}, TN_DENSE, 0, {}}};
    std::vector<Spec> made;
    for (const Spec& output : layer.outputs) made.push_back(concrete(output));
    return made;
  }

  // The same for all layers of a site. Takes the specs from the layers, since those of the site have bounds filled in.
  [[nodiscard]] std::vector<Spec> planned_outputs(const KernelSite& site) const {
    if (site.fusion == nullptr) return results(*site.layer);
    std::vector<Spec> specs;
    for (const auto& member : site.fusion->layers)
      for (const Spec& spec : results(*member->layer)) specs.push_back(spec);
    return specs;
  }

  std::shared_ptr<KernelSite> make_site(const LayerRef& ref, const Kernel& kernel) {
    auto site = std::make_shared<KernelSite>();
    site->kernel = &kernel;
    site->layer = ref;
    for (const ValueId input : body_.inputs) {
      site->inputs.push_back(input == kNoValue ? Spec{} : result_.graph.in_sequences(input));
      site->absent.push_back(input == kNoValue);
    }
    site->outputs = results(*ref);
    for (const ValueId parameter : body_.parameters) site->parameters.push_back(result_.graph.spec(parameter));
    for (auto* list : {&site->inputs, &site->outputs, &site->parameters})
      for (Spec& spec : *list) {
        spec.shape = bounded(spec.shape, bounds_);
        spec.outer = bounded(spec.outer, bounds_);
      }
    site->attributes = std::make_unique<AttributesView>(body_.type->description.attributes, ref->attributes);
    site->seal(compute_, site->attributes->get());
    return site;
  }

  // ---- fused kernels

  [[nodiscard]] bool may_be_fused(const Layer& layer, bool last) const {
    const bool dropped = layer.drop_rate > 0 && training_;
    return layer.buffers.empty() && layer.role != TN_ROLE_METRIC && (last || !dropped) && !fused_.contains(&layer);
  }

  // Lowers the chain of layers that ends in `ref` to the best fused kernel; returns false if there is none. The earlier
  // layers are already recorded: later layers read the outputs of the kernel instead, and fuse() removes recorded nodes
  // that have lost their readers.
  bool fused_into_kernel(const LayerRef& ref) {
    std::shared_ptr<KernelSite> best;
    std::vector<ValueId> best_operands;
    int32_t best_score = 0;
    for (const Kernel* kernel : fusions_) {
      const Chain chain =
          chain_to(ref, kernel->chain, [this](const Layer& l, bool last) { return may_be_fused(l, last); });
      if (chain.empty()) continue;
      std::vector<ValueId> operands;
      const std::shared_ptr<KernelSite> site = site_of(chain, *kernel, operands);
      const std::optional<int32_t> score = score_of(*site);
      if (!score || *score <= best_score) continue;
      if (std::any_of(chain.begin(), chain.end(), [&](const LayerRef& l) { return *score <= scores_[l.get()]; }))
        continue;
      best = site;
      best_operands = std::move(operands);
      best_score = *score;
    }
    enter(*ref);  // site_of changed body_
    if (best == nullptr) return false;
    std::vector<int32_t> layers;
    for (const auto& layer : best->fusion->layers) layers.push_back(numbers_.at(layer->layer.get()));
    const std::vector<ValueId> made = native(best, best_operands, layers);
    auto value = made.begin();
    for (const auto& layer : best->fusion->layers) {
      fused_.insert(layer->layer.get());
      for (uint32_t i = 0; i < layer->layer->outputs.size(); ++i, ++value) {
        result_.graph.values[static_cast<size_t>(*value)].name = layer->layer->name;
        result_.outputs[{layer->layer.get(), i}] = *value;
      }
    }
    body_.outputs.assign(made.end() - static_cast<std::ptrdiff_t>(ref->outputs.size()), made.end());
    return true;
  }

  // Returns the site of the chain as one layer, and the values that it reads in `operands`. Changes body_.
  std::shared_ptr<KernelSite> site_of(const Chain& chain, const Kernel& kernel, std::vector<ValueId>& operands) {
    std::vector<std::shared_ptr<KernelSite>> members;
    std::vector<std::vector<ValueId>> inputs;
    std::vector<ValueId> parameters;
    for (const LayerRef& layer : chain) {
      enter(*layer);
      members.push_back(make_site(layer, kernel));
      inputs.push_back(body_.inputs);
      parameters = with(std::move(parameters), body_.parameters);
    }
    std::shared_ptr<KernelSite> site = fusion_site(kernel, chain, std::move(members));
    for (size_t i = 0; i < inputs.size(); ++i)
      for (size_t k = 0; k < inputs[i].size(); ++k)
        if (site->fusion->sources[i][k].layer < 0) operands.push_back(inputs[i][k]);
    operands = with(std::move(operands), parameters);
    return site;
  }

  const Topology& topology_;
  Registry& registry_;
  const std::string& device_;
  tn_dtype compute_;
  const std::vector<int64_t>& bounds_;
  const bool training_;
  const std::vector<const Kernel*> fusions_;
  std::map<const Layer*, int32_t> numbers_;  // numbers of the leaves, in the order of the topology
  std::map<const Layer*, int32_t> scores_;   // score of the kernel of a layer without fusion; 0: none
  std::set<const Layer*> fused_;
  Lowered result_;
  int32_t draws_ = 0;                     // random draws so far
  std::map<ValueId, ValueId> weights_;    // ids of a sparse feed -> the values of its entries
  std::map<ValueId, ValueId> converted_;  // integer value -> its float form

  struct Scale {
    double factor = 1, offset = 0;
    bool operator==(const Scale&) const = default;
  };
  std::map<ValueId, Scale> scales_;  // integer value -> float ports read factor * x + offset

  int32_t layer_index_ = 0;  // number of the layer that is lowered
  Body body_;                // that layer
};

}  // namespace

Lowered lower(const Topology& topology, Registry& registry, const std::string& device, tn_dtype compute,
              const std::vector<int64_t>& bounds, bool training) {
  return Lowerer(topology, registry, device, compute, bounds, training).run();
}

}  // namespace tenon::host
