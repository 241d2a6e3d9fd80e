// SPDX-License-Identifier: Apache-2.0
#include "host/compile/lowering/lowering.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/error.h"
#include "host/compile/fusion_patterns.h"
#include "host/compile/lowering/builder.h"
#include "host/compile/lowering/gradient_reach.h"
#include "host/compile/lowering/inside_lowering.h"
#include "host/compile/lowering/scaled_integers.h"
#include "host/compile/native_kernel.h"
#include "host/plugins/callback.h"

namespace tenon::host {

ValueId Lowered::value_of(const LayerOutput& output) const {
  const LayerOutput leaf = resolved(output);
  const auto found = outputs.find({leaf.layer.get(), leaf.output});
  return found == outputs.end() ? kNoValue : found->second;
}

namespace {

class Lowerer {
 public:
  Lowerer(const Topology& topology, Registry& registry, Device& device, const LoweringOptions& options)
      : topology_(topology),
        registry_(registry),
        device_(device),
        compute_(options.compute),
        bounds_(options.bounds),
        training_(options.training),
        options_(options),
        fusions_(registry.fusions(types_of(topology), device.kind(), options.compute)),
        insides_(result_, free_symbol(), topology.leaves) {
    result_.graph.compute = compute_, result_.graph.precision = options_.precision;
  }

  Lowered run() {
    for (const LayerRef& leaf : topology_.leaves) {
      numbers_[leaf.get()] = static_cast<int32_t>(result_.graph.layers.size());
      result_.graph.layers.push_back(leaf->name);
    }
    const auto may = [this](const Layer& layer, bool last) { return may_be_fused(layer, last); };
    for (const LayerRef& leaf :
         in_order_of_scans(fusions_.empty() ? topology_.leaves : in_order_of_chains(topology_.leaves, fusions_, may))) {
      layer_index_ = numbers_.at(leaf.get());
      if (leaf->data())
        feed(*leaf);
      else if (leaf->scan_part() || leaf->cond_part())
        part(*leaf);
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
    return insides_.concrete(std::move(spec));
  }
  // The first symbol that nothing uses before the first order of steps.
  [[nodiscard]] int32_t free_symbol() const {
    return static_cast<int32_t>(std::max<size_t>(bounds_.size(), TN_SYMBOL_FIRST_RAGGED));
  }
  GraphWriter writer() { return {result_.graph, layer_index_, false, compute_}; }

  // Returns the spec of the offsets of a ragged dimension: int64 [outer + 1].
  static Spec offsets_of(Dim outer) {
    outer.offset += 1;
    return {TN_I64, {outer}, TN_DENSE, 0, {}};
  }
  // Adds a ragged dimension with `outer` sequences unless it is known, and its offsets to the graph.
  void add_rows(int32_t symbol, const Dim& outer, const std::string& name, const DerivedRows& derived) {
    if (result_.graph.rows.contains(symbol)) return;
    const RaggedDim of{outer, result_.graph.add_external(offsets_of(outer), name), kNoValue};
    result_.graph.rows[symbol] = of;
    result_.rows.push_back({symbol, name, derived, of});
  }

  void feed(const Layer& layer) {
    Feed feed;
    feed.name = layer.name;
    feed.spec = concrete(layer.outputs[0]);
    feed.channels_first = layer.data()->channels_first;
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
      if (training_ && options_.data_gradients && is_float(feed.spec.dtype)) reach_.start(feed.value);
    }
    if (!is_float(feed.spec.dtype) && (layer.data()->scale != 1 || layer.data()->offset != 0))
      scales_.set(feed.value, {layer.data()->scale, layer.data()->offset});
    const int64_t limit = feed.weights == kNoValue ? layer.data()->index_limit : layer.data()->shape[0];
    if (limit >= 0) feed.limits.push_back({{limit, std::nullopt}, layer.name});
    result_.outputs[{&layer, 0}] = feed.value;
    feeds_.emplace(&layer, result_.feeds.size());
    result_.feeds.push_back(std::move(feed));
  }

  void limit_index(const LayerOutput& input, const IndexLimit& limit, const Layer& by) {
    const auto fed = feeds_.find(entered(input).layer.get());
    if (fed == feeds_.end() || by.branch != nullptr) return;  // rows outside of the branch may exceed it
    auto& limits = result_.feeds[fed->second].limits;
    if (std::ranges::any_of(limits, [&](const auto& known) { return is_within(known.first, limit); })) return;
    std::erase_if(limits, [&](const auto& known) { return is_within(limit, known.first); });
    limits.emplace_back(limit, by.name);
  }

  void body(const LayerRef& ref) {
    const Layer& layer = *ref;
    body_.layer = &layer;
    for (const DerivedRows& derived : layer.derived_rows)
      if (derived.rule != TN_ROWS_DATA) add_rows(derived.rows, derived.outer.at(0), "", derived);
    enter(layer);
    for (size_t i = 0; i < layer.inputs.size(); ++i)
      if (layer.index_limits[i].limit >= 0) limit_index(layer.inputs[i], layer.index_limits[i], layer);
    checks_.add(layer, body_.inputs, writer());
    body_.buffers.clear();
    for (const LayerParameter& buffer : layer.buffers) body_.buffers.push_back(use_buffer(buffer));
    body_.carried.clear();
    for (const Spec& carried : layer.carried) {
      body_.carried.push_back(result_.carried.size());
      result_.carried.push_back({result_.graph.add_external(concrete(carried), layer.name), kNoValue});
    }
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
    const bool needs_kernel = body_.type->table.lower == nullptr || makes_rows(*ref);
    std::optional<NativeChoice> kernel = best_kernel(ref, needs_kernel);
    const bool fused = !fusions_.empty() && fused_into_kernel(ref);
    for (const PassedOver& each : refusals_) result_.passed_over[ref.get()].push_back(each);
    if (fused) return;
    if (kernel) {
      take(*ref, native(*kernel, operands_of_body(), {}), kernel->site->outputs.size());
    } else if (!needs_kernel) {
      recorded();
    } else {
      fail(TN_UNSUPPORTED, ComponentName{layer_label(*ref)}, "it has native kernels only, and none for device \"",
           device_.kind(), "\" and ", dtype_name(compute_), refusals_.empty() ? "" : ": ", text_of(refusals_));
    }
  }

  // Returns the inputs of a native call for the layer in body_.
  [[nodiscard]] std::vector<ValueId> operands_of_body() const {
    std::vector<ValueId> operands = with(body_.inputs, body_.parameters);
    for (const size_t buffer : body_.buffers) operands.push_back(result_.buffers[buffer].computed);
    for (const size_t carried : body_.carried) operands.push_back(result_.carried[carried].now);
    return operands;
  }

  // Takes the results of a native kernel for the layer in body_: the first `count` are its outputs or states.
  void take(const Layer& layer, const std::vector<ValueId>& made, size_t count) {
    const auto results = made.begin() + static_cast<std::ptrdiff_t>(count);
    (layer.role == TN_ROLE_METRIC ? body_.states : body_.outputs).assign(made.begin(), results);
    auto next = results;
    for (const size_t buffer : body_.buffers)
      if (const ValueId kept = *next++; training_) result_.buffers[buffer].next = kept;
    for (const size_t carried : body_.carried) result_.carried[carried].next = *next++;
    for (const DerivedRows& derived : layer.derived_rows) {
      if (derived.rule != TN_ROWS_DATA) continue;
      const RaggedDim of{derived.outer.at(0), next[0], next[1]};
      next += 2;
      result_.graph.rows[derived.rows] = of;
      result_.rows.push_back({derived.rows, "", derived, of});
    }
  }

  void recorded() {
    const size_t first = result_.graph.nodes.size();
    record(result_, body_, {writer(), weights_, draws_, training_, free_symbol(), insides_.nests(*body_.layer)});
    scales_.follow(first, *body_.layer);
  }

  void part(const Layer& layer) {
    const size_t first = result_.graph.nodes.size();
    const auto value = [this](const LayerOutput& output, bool floats) {
      const ValueId found = result_.value_of(output);
      return floats && result_.graph.spec(found).dtype != compute_ ? in_floats(found) : found;
    };
    const std::vector<ValueId> made = insides_.part(layer, value, writer());
    for (size_t i = 0; i < made.size(); ++i) set_output(layer, i, made[i]);
    scales_.follow(first, layer);
  }
  void set_output(const Layer& layer, size_t number, ValueId value) {
    std::string& name = result_.graph.values[static_cast<size_t>(value)].name;
    if (name.empty()) name = layer.name;
    result_.outputs[{&layer, static_cast<uint32_t>(number)}] = value;
  }

  // Returns the value at input number `i`. Converts integers if the port takes floats.
  ValueId entering(const LayerOutput& input, size_t i) {
    const ValueId value = result_.value_of(input);
    const uint32_t flags = port_of(body_.type->description.inputs, i).flags;
    const tn_dtype dtype = result_.graph.spec(value).dtype;
    const bool as_it_is = weights_.contains(value) || dtype == compute_ || (flags & TN_PORT_INTEGER) != 0 ||
                          ((flags & TN_PORT_ANY) != 0 && !is_float(dtype));
    const size_t first = result_.graph.nodes.size();
    const ValueId read = insides_.inside(*body_.layer, input, as_it_is ? value : in_floats(value), writer());
    scales_.follow(first, *body_.layer);
    return read;
  }

  // Converts a value to the compute type, applying the scale and offset of its data layer.
  ValueId in_floats(ValueId value) {
    const auto converted = result_.converted.find(value);
    if (converted != result_.converted.end()) return converted->second;
    const Scale scale = scales_.of(value);
    return result_.converted[value] = writer().convert(value, scale.factor, scale.offset);
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
    const auto [number, fresh] = parameters_.emplace(parameter.name, result_.parameters.size());
    if (!fresh) {
      ParameterUse& known = result_.parameters[number->second];
      known.row_sparse = known.row_sparse && row_sparse;
      return known.computed;
    }
    const ValueId value = stored(parameter);
    if (training_ && !options_.is_immutable(parameter.name)) reach_.start(value);
    result_.parameters.push_back({parameter.name, value, in_compute_type(value), kNoValue, row_sparse});
    return result_.parameters.back().computed;
  }

  size_t use_buffer(const LayerParameter& buffer) {
    const auto [number, fresh] = buffers_.emplace(buffer.name, result_.buffers.size());
    if (!fresh) return number->second;
    const ValueId value = stored(buffer);
    result_.buffers.push_back({buffer.name, value, in_compute_type(value), kNoValue});
    return number->second;
  }

  void check_outputs() {
    const Layer& layer = *body_.layer;
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      const std::string port = value_name(body_.type->description.outputs, i);
      if (body_.outputs[i] == kNoValue)
        fail(TN_PLUGIN_FAULT, ComponentName{layer_label(layer)}, "lower gave no output \"", port, "\"");
      const Spec planned = concrete(layer.outputs[i]);
      const Spec& made = result_.graph.spec(body_.outputs[i]);
      if (!same(planned.shape, made.shape) || planned.dtype != made.dtype)
        fail(TN_PLUGIN_FAULT, ComponentName{layer_label(layer)}, "output \"", port, "\" was planned as ",
             to_string(planned), " but lower gave ", to_string(made));
      if (layer.drop_rate > 0 && training_) body_.outputs[i] = dropped(body_.outputs[i], layer.drop_rate);
      set_output(layer, i, body_.outputs[i]);
    }
    for (size_t i = 0; i < body_.states.size(); ++i)
      if (body_.states[i] == kNoValue)
        fail(TN_PLUGIN_FAULT, ComponentName{layer_label(layer)}, "lower gave no state ", i);
  }

  // Applies the host attribute drop_rate: x becomes 0 with probability `rate`, else x / (1 - rate).
  ValueId dropped(ValueId value, double rate) {
    if (scales_.is_scaled(value)) value = in_floats(value);
    ProgramWriter program;
    const int32_t goes = program.apply(TN_OP_LESS, program.uniform(draws_++, TN_FULL), program.constant(rate));
    const int32_t kept = program.apply(TN_OP_MUL, program.input(TN_FULL), program.constant(1 / (1 - rate)));
    program.output(program.apply(TN_OP_SELECT, goes, program.constant(0), kept));
    return writer().pointwise(std::make_shared<Program>(program.finish()), {value}, 1)[0];
  }

  // ---- native kernels

  // Returns the kernel with the highest score among those that take the layer; nothing if there is none, or if the
  // recorded body, which has score 0, is at least as good.
  std::optional<NativeChoice> best_kernel(const LayerRef& ref, bool needs_kernel) {
    std::vector<KernelCandidate> candidates;
    refusals_.clear();
    alone_.erase(ref.get());
    if (ref->scan != nullptr && !needs_kernel) return std::nullopt;  // a recorded body can run step by step
    for (const Kernel* kernel : registry_.kernels(ref->type, device_.kind(), compute_)) {
      const std::string unfit = unfit_for(*kernel, {ref}, registry_);
      if (unfit.empty()) add_candidate(candidates, make_site(ref, *kernel), refusals_);
      if (!unfit.empty()) add_refusal(refusals_, *kernel, kernel->table.score, unfit);
    }
    if (!needs_kernel) remove_outranked(candidates, 0, "the recorded body", refusals_);
    std::optional<NativeChoice> choice = first_that_takes(candidates, device_, needs_kernel, refusals_);
    if (choice)
      alone_[ref.get()] = passed_over(*choice->site->kernel, choice->score, "a fused kernel computes it, too");
    return choice;
  }

  // Appends a node for the kernel and returns its outputs. layers: those of a fused chain; else empty.
  std::vector<ValueId> native(NativeChoice& choice, const std::vector<ValueId>& operands,
                              const std::vector<int32_t>& layers) {
    std::vector<Spec> outputs = planned_outputs(*choice.site);
    if (choice.site->fusion == nullptr) {
      const Layer& layer = *choice.site->layer;
      for (const size_t buffer : body_.buffers) outputs.push_back(result_.graph.spec(result_.buffers[buffer].computed));
      for (const Spec& carried : layer.carried) outputs.push_back(concrete(carried));
      for (const DerivedRows& derived : layer.derived_rows) {
        if (derived.rule != TN_ROWS_DATA) continue;
        outputs.push_back(offsets_of(derived.outer.at(0)));
        outputs.push_back({TN_I64, {tn_dim_constant(1)}, TN_DENSE, 0, {}});
        ++choice.call.operands.made_rows;
      }
    }
    outputs.insert(outputs.end(), choice.saved.begin(), choice.saved.end());
    choice.call.draw = static_cast<uint64_t>(draws_);
    if (choice.draws > static_cast<uint32_t>(std::numeric_limits<int32_t>::max() - draws_))
      fail(TN_PLUGIN_FAULT, ComponentName{layer_label(*choice.site->layer)}, "query asks for ", choice.draws, " draws");
    draws_ += static_cast<int32_t>(choice.draws);
    return writer().native(std::move(choice.call), operands, outputs, layers);
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
    const auto is_wanted = [&](ValueId value) {
      return static_cast<uint8_t>(ref->role != TN_ROLE_METRIC && reach_.reaches(value));
    };
    for (const ValueId input : body_.inputs) {
      site->inputs.push_back(inside_of(ref->branch.get(), result_.graph, input));
      site->absent.push_back(input == kNoValue);
      site->gradients.push_back(is_wanted(input));
    }
    site->outputs = results(*ref);
    for (const ValueId parameter : body_.parameters) {
      site->parameters.push_back(result_.graph.spec(parameter));
      site->gradients.push_back(is_wanted(parameter));
    }
    for (const size_t buffer : body_.buffers)
      site->buffers.push_back(result_.graph.spec(result_.buffers[buffer].computed));
    for (const Spec& carried : ref->carried) site->carried.push_back(concrete(carried));
    for (auto* list : {&site->inputs, &site->outputs, &site->parameters, &site->buffers, &site->carried})
      for (Spec& spec : *list) {
        spec.shape = bounded(spec.shape, bounds_);
        spec.outer = bounded(spec.outer, bounds_);
      }
    site->attributes = std::make_unique<AttributesView>(body_.type->description.attributes, ref->attributes);
    site->seal(device_, compute_, options_.precision, training_, site->attributes->get());
    return site;
  }

  [[nodiscard]] bool may_be_fused(const Layer& layer, bool last) const {
    return layer.scan == nullptr && layer.branch == nullptr && layer.buffers.empty() && layer.carried.empty() &&
           !makes_rows(layer) && layer.role != TN_ROLE_METRIC && (last || layer.drop_rate <= 0 || !training_) &&
           !fused_.contains(&layer);
  }

  // Lowers the chain of layers that ends in `ref` to the best fused kernel; returns false if there is none. Later
  // layers read the outputs of the kernel, and fuse() removes what was recorded for the earlier layers.
  bool fused_into_kernel(const LayerRef& ref) {
    std::vector<KernelCandidate> candidates;
    for (const Kernel* kernel : fusions_) {
      const Chain chain =
          chain_to(ref, kernel->chain, [this](const Layer& l, bool last) { return may_be_fused(l, last); });
      if (chain.empty() && kernel->chain.back() != ref->type) continue;
      const std::string unfit =
          chain.empty() ? "no chain of its types ends here" : unfit_for(*kernel, chain, registry_);
      if (!unfit.empty()) add_refusal(refusals_, *kernel, kernel->table.score, unfit);
      std::vector<KernelCandidate> one;
      if (!unfit.empty() || !add_candidate(one, site_of(chain, *kernel), refusals_)) continue;
      for (const LayerRef& l : chain)
        remove_outranked(one, std::max(0, alone_[l.get()].score.value_or(0)), text("what computes \"", l->name, "\""),
                         refusals_);
      candidates.insert(candidates.end(), one.begin(), one.end());
    }
    std::optional<NativeChoice> choice = first_that_takes(candidates, device_, false, refusals_);
    const std::vector<ValueId> operands = choice ? operands_of(*choice->site) : std::vector<ValueId>();
    enter(*ref);  // site_of and operands_of changed body_
    if (!choice) return false;
    const std::vector<std::shared_ptr<KernelSite>> members = choice->site->fusion->layers;
    std::vector<int32_t> layers;
    for (const auto& layer : members) layers.push_back(numbers_.at(layer->layer.get()));
    const std::vector<ValueId> made = native(*choice, operands, layers);
    auto value = made.begin();
    for (const auto& layer : members) {
      fused_.insert(layer->layer.get());
      if (const PassedOver& alone = alone_[layer->layer.get()]; alone.score)
        result_.passed_over[layer->layer.get()].push_back(alone);
      for (uint32_t i = 0; i < layer->layer->outputs.size(); ++i, ++value) {
        result_.graph.values[static_cast<size_t>(*value)].name = layer->layer->name;
        result_.outputs[{layer->layer.get(), i}] = *value;
      }
    }
    body_.outputs.assign(value - static_cast<std::ptrdiff_t>(ref->outputs.size()), value);
    return true;
  }

  // Returns the site of the chain as one layer. Changes body_.
  std::shared_ptr<KernelSite> site_of(const Chain& chain, const Kernel& kernel) {
    std::vector<std::shared_ptr<KernelSite>> members;
    for (const LayerRef& layer : chain) {
      enter(*layer);
      members.push_back(make_site(layer, kernel));
    }
    std::shared_ptr<KernelSite> site = fusion_site(kernel, chain, std::move(members));
    site->seal(device_, compute_, options_.precision, training_, site->fusion->layers.back()->site.attributes);
    site->site.fusion = &site->fusion->site;
    return site;
  }

  // Returns the values that a fused site reads: its inputs from outside, then the parameters. Changes body_.
  std::vector<ValueId> operands_of(const KernelSite& site) {
    std::vector<ValueId> operands, parameters;
    for (size_t i = 0; i < site.fusion->layers.size(); ++i) {
      enter(*site.fusion->layers[i]->layer);
      for (size_t k = 0; k < body_.inputs.size(); ++k)
        if (site.fusion->sources[i][k].layer < 0) operands.push_back(body_.inputs[k]);
      parameters = with(std::move(parameters), body_.parameters);
    }
    return with(std::move(operands), parameters);
  }

  const Topology& topology_;
  Registry& registry_;
  Device& device_;
  const tn_dtype compute_;
  const std::vector<int64_t>& bounds_;
  const bool training_;
  const LoweringOptions& options_;
  const std::vector<const Kernel*> fusions_;
  std::map<const Layer*, int32_t> numbers_;   // numbers of the leaves, in the order of the topology
  std::map<const Layer*, PassedOver> alone_;  // the kernel of a layer without fusion; without a score: none
  std::set<const Layer*> fused_;
  std::vector<PassedOver> refusals_;  // the kernels of the current layer that did not take it
  Lowered result_;
  std::map<const Layer*, size_t> feeds_;                // by data layer: index into result_.feeds
  std::map<std::string, size_t> parameters_, buffers_;  // by name: index into result_.parameters, result_.buffers
  GradientReach reach_{result_.graph};
  InsideLowering insides_;
  int32_t draws_ = 0;                   // random draws so far
  std::map<ValueId, ValueId> weights_;  // ids of a sparse feed -> the values of its entries
  ScaledIntegers scales_{result_.graph};
  NumberChecks checks_{result_, registry_, training_};
  int32_t layer_index_ = 0;  // number of the layer that is lowered
  Body body_;                // that layer
};

}  // namespace

Lowered lower(const Topology& topology, Registry& registry, Device& device, const LoweringOptions& options) {
  return Lowerer(topology, registry, device, options).run();
}

}  // namespace tenon::host
