// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_factory.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "host/layers/host_attributes.h"
#include "host/layers/layer_expansion.h"
#include "host/layers/layer_inputs.h"
#include "host/layers/layer_plan.h"
#include "host/layers/renames.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/offered_table.h"

namespace tenon::host {

namespace {

// Makes one layer, and the inner layers of its expansion.
class LayerMaker {
 public:
  // restorer: of a layer of a model file, else null. depth: number of expansions around the layer.
  LayerMaker(Registry& registry, RaggedSymbols& symbols, const LayerType& type, Layer layer, LayerRestorer* restorer,
             int depth = 0)
      : registry_(registry),
        symbols_(symbols),
        type_(type),
        layer_(std::move(layer)),
        restorer_(restorer),
        depth_(depth),
        sink_(layer_label(layer_), type.tags, &symbols) {}

  LayerOutput run() {
    std::optional<LayerInputs> inputs;
    begin(inputs);
    const AttributesView attributes(type_.description.attributes, layer_.attributes);
    LayerPlan(type_, *inputs, symbols_, layer_, sink_).run(attributes);
    labelled([&] {
      if (layer_.scan != nullptr) check_inside(layer_, symbols_);
      if (layer_.branch != nullptr) check_in_branch(layer_, symbols_);
      apply_settings(layer_);
    });
    expansion(*inputs).run(attributes);
    return {finished(), 0};
  }

  // Makes one step of a layer with `outputs` outputs.
  SteppedLayer step(const StepSources& sources, LayerStepper::MakeData make_data, size_t outputs) {
    std::optional<LayerInputs> inputs;
    begin(inputs);
    restorer_ = nullptr;  // it knows the layers inside of the whole one
    const AttributesView attributes(type_.description.attributes, layer_.attributes);
    LayerExpansion inside = expansion(*inputs);
    std::optional<tn_step> table;
    labelled([&] {
      table = step_table(type_, sink_.who());
      if (!table) fail(TN_UNSUPPORTED, "its type offers no step");
    });
    SteppedLayer made;
    made.parts =
        LayerStepper(type_, *inputs, layer_, inside, sources, std::move(make_data)).run(*table, attributes, outputs);
    made.layer = finished();
    return made;
  }

 private:
  // Takes attributes and inputs.
  void begin(std::optional<LayerInputs>& inputs) {
    labelled([&] {
      if (restorer_ != nullptr) restorer_->restore(layer_, type_, depth_ == 0);
      host_attributes_ = take_attributes(layer_, type_.description);
      describe();
      layer_.scan = scan_of(layer_.inputs);
      layer_.branch = branch_of(layer_.inputs);
      inputs.emplace(type_.description.inputs, layer_.inputs, symbols_, layer_.scan.get(), layer_.branch.get());
    });
  }
  // Applies the attributes of the host.
  LayerRef finished() {
    if (!host_attributes_.act.empty()) activate();
    if (host_attributes_.drop_rate > 0) drop();
    if (host_attributes_.coefficient) scale_cost();
    return std::make_shared<const Layer>(std::move(layer_));
  }

  // Calls `work`, whose errors name the attribute or port alone, and adds the layer to them.
  template <typename Work>
  void labelled(const Work& work) const {
    try {
      work();
    } catch (const Error& error) {
      throw error.with_component(sink_.who());
    }
  }

  // Writes what model files hold of the layer.
  void describe() {
    layer_.type_version = {type_.plugin, type_.version, type_.description.state_version};
    for (size_t i = 0; i < layer_.attributes.size(); ++i)
      layer_.resolved.emplace(type_.description.attributes[i].name, layer_.attributes[i]);
  }

  LayerExpansion expansion(const LayerInputs& inputs) {
    const auto make_inner = [this](const std::string& type, std::vector<LayerOutput> of, Values values,
                                   const std::string& parameter_name) {
      return inner(type, std::move(of), std::move(values), parameter_name);
    };
    return {type_, inputs, layer_, sink_, make_inner};
  }

  // Makes a layer inside this one. Its name begins with this layer's name.
  LayerOutput inner(const std::string& type, std::vector<LayerOutput> inputs, Values attributes,
                    const std::string& parameter_name) {
    const LayerType& component = registry_.layer(type);
    Layer layer;
    layer.name = layer_.name + "/" + type;
    const uint64_t count = inner_names_[layer.name]++;
    if (count > 0) layer.name += "_" + std::to_string(count);
    layer.type = type;
    layer.role = component.description.role;
    layer.parameter_name = parameter_name;
    layer.inputs = std::move(inputs);
    layer.given = std::move(attributes);
    const std::string below = below_own(parameter_name);
    layer.path = layer_.path + below;
    hand_down_settings(component.description, below, layer.given);
    constexpr int kMostDepth = 32;
    if (depth_ == kMostDepth)
      fail(TN_PLUGIN_FAULT, ComponentName{layer_label(layer)}, "expansions within expansions, more than ", kMostDepth,
           " deep");
    LayerOutput output = LayerMaker(registry_, symbols_, component, std::move(layer), restorer_, depth_ + 1).run();
    const Layer& made = *output.layer;
    layer_.inner.push_back({made.name, made.type, made.type_version, made.resolved});
    layer_.inner.insert(layer_.inner.end(), made.inner.begin(), made.inner.end());
    return output;
  }

  // Returns "query." for the parameter_name "mine.query" of an inner layer, where "mine" is that of this layer.
  [[nodiscard]] std::string below_own(const std::string& parameter_name) const {
    const std::string& own = layer_.parameter_name;
    return parameter_name == own ? "" : parameter_name.substr(own.size() + 1) + ".";
  }

  // Copies the param.* settings of parameters that an inner layer declares: of one whose suffixes lie below "query.",
  // the setting param.query.weight.init is param.weight.init.
  void hand_down_settings(const LayerDescription& inner, const std::string& below, Values& attributes) const {
    for (const auto& [name, value] : layer_.given) {
      const auto setting = parameter_setting(name);
      if (!setting || !setting->suffix.starts_with(below)) continue;
      const std::string suffix = setting->suffix.substr(below.size());
      if (std::find(inner.parameters.begin(), inner.parameters.end(), suffix) != inner.parameters.end())
        attributes.emplace(setting_name({suffix, setting->key}), value);
    }
  }

  // act = "relu": the layer expands to relu(base), where base is the layer without act.
  void activate() {
    if (layer_.role != TN_ROLE_LAYER || layer_.outputs.size() != 1)
      fail(TN_INVALID, ComponentName{sink_.who()}, SubjectName{"act"},
           "attribute \"act\" needs a layer with one output");
    Layer base = layer_;
    base.name = layer_.name + "/" + layer_.type;
    base.inner.clear();
    layer_.expansion = {activation({std::make_shared<const Layer>(std::move(base)), 0})};
    const Layer& made = *layer_.expansion[0].layer;
    if (made.role != TN_ROLE_LAYER || made.outputs.size() != 1)
      fail(TN_INVALID, ComponentName{sink_.who()}, SubjectName{"act"}, "attribute \"act\": \"", host_attributes_.act,
           "\" is not an activation: it must be a layer with one output");
    layer_.outputs = made.outputs;
    layer_.parameters.clear();
    layer_.buffers.clear();
  }

  // Makes the layer that act names. Its errors are of the attribute: nobody wrote that layer.
  LayerOutput activation(LayerOutput base) {
    try {
      return inner(host_attributes_.act, {std::move(base)}, {}, layer_.parameter_name);
    } catch (const Error& error) {
      throw Error(error.code(), text(sink_.who(), ": attribute \"act\": ", error.message()), sink_.who(), "act");
    }
  }

  void drop() {
    if (layer_.role != TN_ROLE_LAYER || layer_.outputs.size() != 1)
      fail(TN_INVALID, ComponentName{sink_.who()}, SubjectName{"drop_rate"},
           "attribute \"drop_rate\" needs a layer with one output");
    change_maker("drop_rate", [&](Layer& maker) { maker.drop_rate = host_attributes_.drop_rate; });
  }
  void scale_cost() {
    if (layer_.role != TN_ROLE_COST)
      fail(TN_INVALID, ComponentName{sink_.who()}, SubjectName{"coefficient"},
           "attribute \"coefficient\" needs a cost; the layer scale_shift multiplies other values");
    change_maker("coefficient", [&](Layer& maker) { maker.coefficient *= *host_attributes_.coefficient; });
  }

  // Changes the layer that computes output 0: this one, or the last layer of its expansion.
  template <typename Change>
  void change_maker(const char* attribute, const Change& change) {
    if (!layer_.expanded()) return change(layer_);
    const LayerOutput made = resolved(layer_.expansion[0]);
    const bool own = std::none_of(layer_.inputs.begin(), layer_.inputs.end(),
                                  [&](const LayerOutput& input) { return resolved(input).layer == made.layer; });
    if (!own || made.layer->outputs.size() != 1)
      fail(TN_UNSUPPORTED, ComponentName{sink_.who()}, SubjectName{attribute}, "attribute \"", attribute,
           "\" needs an output of its own");
    Layer last = *made.layer;
    change(last);
    layer_.expansion[0] = {std::make_shared<const Layer>(std::move(last)), 0};
  }

  Registry& registry_;
  RaggedSymbols& symbols_;
  const LayerType& type_;
  Layer layer_;
  LayerRestorer* restorer_;
  const int depth_;
  ErrorSink sink_;
  HostAttributes host_attributes_;
  std::map<std::string, uint64_t> inner_names_;
};

// Refuses settings that have no meaning for a data layer of this element type and storage.
void check_source(const std::string& name, const DataSource& source) {
  const auto bad = [&](const auto&... parts) {
    fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": ", parts...);
  };
  if (is_float(source.dtype) && (source.scale != 1 || source.offset != 0))
    bad("scale and offset are for integers; it holds ", dtype_name(source.dtype));
  if (is_float(source.dtype) && source.index_limit >= 0)
    bad("index_limit is for integers; it holds ", dtype_name(source.dtype));
  if (source.index_limit < -1 || source.index_limit == 0)
    bad("index_limit is ", source.index_limit, "; expected at least 1, or -1 if unknown");
  if (source.channels_first && (source.storage != TN_DENSE || source.shape.size() < 2))
    bad("channels first are for dense images, [channels, height, width]; it is fed ", storage_name(source.storage), " ",
        to_string(source.shape));
  if (source.storage == TN_RAGGED) return;
  if (!source.sequence.empty() && source.sequence != name)
    bad("sequence is \"", source.sequence, "\"; expected none where storage is not TN_RAGGED");
  if (source.levels != 0) bad("levels is ", source.levels, "; expected 0 where storage is not TN_RAGGED");
}

}  // namespace

LayerRef LayerFactory::data(const std::string& name, DataSource source) {
  check_layer_name(name);
  if (name.empty()) fail(TN_INVALID, "a data layer needs a name");
  if (source.shape.size() + 1 > TN_MAX_RANK)
    fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": rank ", source.shape.size(), " is above ",
         TN_MAX_RANK - 1);
  check_source(name, source);
  Spec spec;
  spec.dtype = source.dtype;
  spec.storage = source.storage;
  if (source.sequence.empty()) source.sequence = name;
  const Dim samples = tn_dim_symbol(TN_SYMBOL_SAMPLES);
  const auto rows = [&](const char* part) { return tn_dim_symbol(symbols_.of(source.sequence, part)); };
  switch (source.storage) {
    case TN_DENSE:
      spec.shape = {samples};
      break;
    case TN_RAGGED:
      source.levels = std::max(source.levels, 1U);
      if (source.levels > 2)
        fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": ", source.levels, " levels; expected 1 or 2");
      spec.levels = source.levels;
      spec.outer = source.levels == 1 ? Shape{samples} : Shape{rows(""), samples};
      spec.shape = {rows(source.levels == 1 ? "" : "inner sequences")};
      break;
    case TN_CSR:
      if (source.shape.size() != 1 || source.shape[0] < 1)
        fail(TN_INVALID, SubjectName{name}, "data layer \"", name,
             "\": a sparse one has one dimension, its width, got ", to_string(source.shape));
      if (source.dtype != TN_F32 && source.dtype != TN_COMPUTE)
        fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": a sparse one holds float32, got ",
             dtype_name(source.dtype));
      source.dtype = spec.dtype = TN_F32;
      spec.shape = {samples};
      spec.outer = {rows("entries")};
      break;
    default:
      fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": storage ", source.storage,
           "; expected TN_DENSE, TN_RAGGED or TN_CSR");
  }
  for (const int64_t extent : source.shape) {
    if (extent < 0) fail(TN_INVALID, SubjectName{name}, "data layer \"", name, "\": negative dimension ", extent);
    spec.shape.push_back(tn_dim_constant(extent));
  }
  if (source.channels_first) std::rotate(spec.shape.begin() + 1, spec.shape.begin() + 2, spec.shape.end());
  Layer layer;
  layer.name = name;
  layer.type = "data";
  layer.outputs = {spec};
  layer.host_part = std::move(source);
  return std::make_shared<const Layer>(std::move(layer));
}

LayerOutput LayerFactory::layer(const std::string& type, const std::string& name, std::vector<LayerOutput> inputs,
                                const Values& attributes, const Layer* like) {
  if (like == nullptr) return make(type, name, std::move(inputs), attributes, nullptr);
  if (like->type != present_layer_type(type))
    fail(TN_INVALID, SubjectName{like->name}, "a layer \"", name, "\" of type ", type, " cannot be like ",
         layer_label(*like));
  const std::string named = name.empty() ? drawn_name(type) : name;
  LayerRestorer restorer(*like, named);
  return make(type, named, std::move(inputs), attributes, &restorer);
}

bool LayerFactory::has_step(const Layer& layer) const {
  return named_extension_table(registry_.layer(layer.type), layer_label(layer), TN_STEP).as<tn_step>() != nullptr;
}

SteppedLayer LayerFactory::step(const Layer& whole, std::vector<LayerOutput> inputs, const StepSources& sources) {
  Layer layer;
  layer.name = layer.parameter_name = whole.name;
  layer.type = whole.type;
  layer.role = whole.role;
  layer.inputs = std::move(inputs);
  layer.given = whole.given;
  LayerRestorer restorer(whole, whole.name);
  const auto make_data = [this](const std::string& name, DataSource source) { return data(name, std::move(source)); };
  return LayerMaker(registry_, symbols_, registry_.layer(whole.type), std::move(layer), &restorer)
      .step(sources, make_data, whole.outputs.size());
}

std::shared_ptr<OpenScan> LayerFactory::begin_scan(const std::string& name, const LayerOutput& over, bool reverse) {
  return std::make_shared<OpenScan>(name.empty() ? drawn_name("scan") : name, over, reverse, symbols_);
}

std::shared_ptr<OpenCond> LayerFactory::begin_cond(const std::string& name, const LayerOutput& over,
                                                   std::vector<LayerOutput> rows) {
  return std::make_shared<OpenCond>(name.empty() ? drawn_name("cond") : name, over, std::move(rows), symbols_);
}

std::vector<LayerOutput> LayerFactory::in_port_order(const std::string& type, const std::string& name,
                                                     const std::vector<LayerOutput>& inputs,
                                                     const std::vector<std::string>& ports) {
  const LayerType& component = registry_.layer(present_layer_type(type));
  try {
    return host::in_port_order(component.description.inputs, inputs, ports);
  } catch (const Error& error) {
    throw error.with_component(text("layer \"", name, "\" (", type, ")"));
  }
}

std::string LayerFactory::drawn_name(const std::string& type) { return type + "_" + std::to_string(drawn_[type]++); }

LayerOutput LayerFactory::make(std::string type, const std::string& name, std::vector<LayerOutput> inputs,
                               Values attributes, LayerRestorer* restorer) {
  check_layer_name(name);
  rename_layer_type(type, attributes);
  const LayerType& component = registry_.layer(type);
  Layer layer;
  layer.name = name.empty() ? drawn_name(type) : name;
  layer.type = type;
  layer.role = component.description.role;
  layer.parameter_name = layer.name;
  layer.inputs = std::move(inputs);
  layer.given = std::move(attributes);
  return LayerMaker(registry_, symbols_, component, std::move(layer), restorer).run();
}

}  // namespace tenon::host
