// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_factory.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/checked.h"
#include "core/error.h"
#include "host/plugins/callback.h"
#include "host/plugins/error_sink.h"

namespace tenon {

namespace {

constexpr const char* kParameterName = "parameter_name";
constexpr const char* kAct = "act";
constexpr const char* kDropRate = "drop_rate";
constexpr const char* kParameterPrefix = "param.";

// An attribute about one parameter, "param.weight.decay", split.
struct Setting {
  std::string suffix;
  std::string key;
};
std::optional<Setting> setting_of(const std::string& name) {
  const std::string prefix = kParameterPrefix;
  const size_t dot = name.rfind('.');
  if (name.rfind(prefix, 0) != 0 || dot <= prefix.size()) return std::nullopt;
  return Setting{name.substr(prefix.size(), dot - prefix.size()), name.substr(dot + 1)};
}

std::string string_of(const Value& value, const std::string& name) {
  if (const auto* s = std::get_if<std::string>(&value); s != nullptr && !s->empty()) return *s;
  fail(TN_INVALID, "attribute \"", name, "\": expected a string that is not empty, got ", shown(value));
}

double number_of(const Value& value, const std::string& name) {
  if (const auto* f = std::get_if<double>(&value)) return *f;
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  fail(TN_INVALID, "attribute \"", name, "\": expected a number, got ", shown(value));
}

// Making of one layer.
class Making {
 public:
  // depth: how many expansions it lies in.
  Making(Registry& registry, RowSymbols& symbols, const LayerType& type, Layer layer, int depth = 0)
      : registry_(registry),
        symbols_(symbols),
        type_(type),
        layer_(std::move(layer)),
        depth_(depth),
        sink_(layer_label(layer_), type.tags) {}

  Expression run() {
    try {
      take_attributes();
      check_inputs();
    } catch (const Error& error) {
      throw Error(error.code(), layer_label(layer_) + ": " + error.message());
    }
    const AttributesView attributes(type_.description.attributes, layer_.attributes);
    plan(attributes);
    apply_settings();
    expand(attributes);
    if (!act_.empty()) activate();
    if (drop_rate_ > 0) drop();
    return {std::make_shared<const Layer>(std::move(layer_)), 0};
  }

  ErrorSink& sink() { return sink_; }  // of the callbacks

 private:
  void take_attributes() {
    const LayerDescription& description = type_.description;
    std::vector<std::string> known{kParameterName, kAct, kDropRate};
    for (const Attribute& attribute : description.attributes) known.push_back(attribute.name);
    Values own;
    for (const auto& [name, value] : layer_.given) {
      if (name == kParameterName) {
        layer_.parameter_name = string_of(value, name);
      } else if (name == kAct) {
        act_ = string_of(value, name);
      } else if (name == kDropRate) {
        drop_rate_ = number_of(value, name);
        if (!(drop_rate_ >= 0 && drop_rate_ < 1))
          fail(TN_INVALID, "attribute \"", name, "\": ", drop_rate_, " is not in [0, 1)");
      } else if (const auto setting = setting_of(name)) {
        check_setting(*setting, name);
      } else if (std::find(known.begin(), known.end(), name) == known.end()) {
        fail(TN_INVALID, "unknown attribute \"", name, "\"", suggestion(name, known));
      } else {
        own[name] = value;
      }
    }
    layer_.attributes = resolve(description.attributes, own);
  }

  void check_setting(const Setting& setting, const std::string& name) const {
    const std::vector<std::string>& suffixes = type_.description.parameters;
    if (std::find(suffixes.begin(), suffixes.end(), setting.suffix) == suffixes.end())
      fail(TN_INVALID, "attribute \"", name, "\": no parameter \"", setting.suffix, "\"",
           suggestion(setting.suffix, suffixes));
    const std::vector<std::string> keys{"learning_rate", "decay", "sparse"};
    if (std::find(keys.begin(), keys.end(), setting.key) == keys.end())
      fail(TN_INVALID, "attribute \"", name, "\": unknown key \"", setting.key, "\"", suggestion(setting.key, keys));
  }

  // The port that input number `input` is connected to.
  [[nodiscard]] const Port& port(size_t input) const {
    const std::vector<Port>& ports = type_.description.inputs;
    return ports[std::min(input, ports.size() - 1)];
  }

  void check_inputs() {
    const std::vector<Port>& ports = type_.description.inputs;
    const bool variadic = !ports.empty() && (ports.back().flags & TN_PORT_VARIADIC) != 0;
    const size_t given = layer_.inputs.size();
    if (given > ports.size() && !variadic) fail(TN_INVALID, "expected ", ports.size(), " inputs, got ", given);
    for (size_t i = 0; i < std::max(given, ports.size()); ++i) {
      const bool absent = i >= given || layer_.inputs[i].layer == nullptr;
      if (absent && (port(i).flags & TN_PORT_OPTIONAL) == 0)
        fail(TN_INVALID, "input \"", port(i).name, "\" is missing; expected ", ports.size(), " inputs, got ", given);
      if (absent) continue;
      if (layer_.inputs[i].output >= layer_.inputs[i].layer->outputs.size())
        fail(TN_INVALID, "input \"", port(i).name, "\": ", layer_label(*layer_.inputs[i].layer), " has no output ",
             layer_.inputs[i].output, layer_.inputs[i].layer->role == TN_ROLE_METRIC ? "; it is a metric" : "");
      const Spec& spec = layer_.inputs[i].layer->outputs[layer_.inputs[i].output];
      const bool taken_sparse = spec.storage == TN_CSR && (port(i).flags & TN_PORT_SPARSE) != 0;
      if ((port(i).flags & TN_PORT_INTEGER) != 0 && is_float(spec.dtype) && !taken_sparse)
        fail(TN_INVALID, "input \"", port(i).name, "\": expected integers, got ", to_string(spec), " of ",
             layer_label(*layer_.inputs[i].layer));
      if (spec.storage == TN_CSR && (port(i).flags & TN_PORT_SPARSE) == 0)
        fail(TN_INVALID, "input \"", port(i).name, "\": ", layer_label(*layer_.inputs[i].layer),
             " is sparse (csr), which this layer does not take");
    }
    layer_.index_limits.assign(given, -1);
    for (size_t i = 0; i < given; ++i) {
      if (layer_.inputs[i].layer == nullptr) {
        input_specs_.emplace_back();
        continue;
      }
      Spec spec = layer_.inputs[i].layer->outputs.at(layer_.inputs[i].output);
      const bool takes_integers = (port(i).flags & (TN_PORT_INTEGER | TN_PORT_ANY)) != 0;
      if (is_float(spec.dtype) || !takes_integers) spec.dtype = TN_COMPUTE;  // converted where it enters
      input_specs_.push_back(spec);
    }
    for (const Spec& spec : input_specs_) views_.push_back(spec.view());
    for (size_t i = 0; i < given; ++i) pointers_.push_back(layer_.inputs[i].layer == nullptr ? nullptr : &views_[i]);
  }

  template <typename Function, typename Argument>
  tn_status call(const char* name, Function* function, Argument* argument) {
    return call_plugin(type_, sink_.who(), {Tag::kSetup, name}, function, argument);
  }

  void plan(const AttributesView& attributes) {
    outputs_.resize(type_.description.outputs.size());
    const Loan<tn_planner> planner(type_.tags, this, "planner", sink_.who());
    planner->inputs_count = static_cast<uint32_t>(pointers_.size());
    planner->errors = sink_.get();
    planner->attributes = attributes.get();
    planner->inputs = pointers_.data();
    planner->output = [](void* self, uint32_t number, const tn_spec* spec) {
      return lent<Making>(self, [&](Making& making) { making.plan_output(number, spec); });
    };
    planner->parameter = [](void* self, const tn_parameter* parameter) {
      int32_t index = -1;
      lent<Making>(self, [&](Making& making) { index = making.declare(parameter, making.layer_.parameters); });
      return index;
    };
    planner->buffer = [](void* self, const tn_parameter* parameter) {
      int32_t index = -1;
      lent<Making>(self, [&](Making& making) { index = making.declare(parameter, making.layer_.buffers); });
      return index;
    };
    planner->index_limit = [](void* self, uint32_t input, int64_t limit) {
      return lent<Making>(self, [&](Making& making) { making.limit_index(input, limit); });
    };
    planner->state = [](void* self, uint32_t count) {
      return lent<Making>(self, [&](Making& making) {
        if (making.layer_.role != TN_ROLE_METRIC) fail(TN_PLUGIN_FAULT, "only a metric has a state");
        making.layer_.state_count = count;
      });
    };
    planner->joined = [](void* self, const tn_spec* a, const tn_spec* b, tn_dim* rows) {
      return lent<Making>(self, [&](Making& making) {
        if (a == nullptr || b == nullptr || rows == nullptr) fail(TN_PLUGIN_FAULT, "plan joins nothing");
        *rows = making.join(Spec::from(*a), Spec::from(*b));
      });
    };
    sink_.check(call("plan", type_.table.plan, planner.get()));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i])
        fail(TN_PLUGIN_FAULT, layer_label(layer_), ": plan did not declare output \"",
             type_.description.outputs[i].name, "\"");
      layer_.outputs.push_back(*outputs_[i]);
    }
    check_cost();
  }

  // Whatever the data layer is fed will be checked; a reader that knows of more values is a mistake that shows at once.
  void limit_index(uint32_t input, int64_t limit) {
    if (input >= layer_.index_limits.size()) fail(TN_PLUGIN_FAULT, "plan limits input ", input);
    if (layer_.inputs[input].layer == nullptr) fail(TN_PLUGIN_FAULT, "plan limits input ", input, ", which is absent");
    layer_.index_limits[input] = limit;
    const Layer& source = *resolved(layer_.inputs[input]).layer;
    if (source.data && source.data->storage != TN_CSR && source.data->index_limit > limit)
      fail(TN_INVALID, "input \"", port(input).name, "\": data layer \"", source.name, "\" has values from 0 to ",
           source.data->index_limit - 1, "; expected 0 to ", limit - 1);
  }

  void check_cost() const {
    if (layer_.role != TN_ROLE_COST) return;
    const bool one_per_sample = !layer_.outputs.empty() && layer_.outputs[0].shape.size() == 1 &&
                                layer_.outputs[0].shape[0].symbol != TN_SYMBOL_NONE;
    if (!one_per_sample)
      fail(TN_INVALID, layer_label(layer_), ": a cost has one value per sample or row; its inputs give ",
           layer_.outputs.empty() ? "nothing" : to_string(layer_.outputs[0].shape));
  }

  void plan_output(uint32_t number, const tn_spec* spec) {
    if (number >= outputs_.size() || spec == nullptr) fail(TN_PLUGIN_FAULT, "plan declares output ", number);
    outputs_[number] = in_sequences(Spec::from(*spec));
  }

  // A shape tells by its first dimension alone whether it is ragged; what its rows lie in is known from the inputs.
  [[nodiscard]] Spec in_sequences(Spec spec) const {
    spec.storage = TN_DENSE;
    spec.levels = 0;
    spec.outer.clear();
    if (spec.shape.empty() || !is_rows(spec.shape[0])) return spec;
    spec.storage = TN_RAGGED;
    const int32_t symbol = spec.shape[0].symbol;
    for (const JoinedRows& joined : layer_.joined)
      if (joined.rows == symbol) spec.outer = around(joined.first);
    if (spec.outer.empty()) spec.outer = around(symbol);
    spec.levels = static_cast<uint32_t>(spec.outer.size());
    if (spec.outer.empty()) fail(TN_PLUGIN_FAULT, "plan makes rows of no input: ", to_string(spec));
    return spec;
  }
  // What the rows `symbol` lie in, from the inside, as the inputs have it.
  [[nodiscard]] Shape around(int32_t symbol) const {
    for (const Spec& input : input_specs_) {
      if (input.storage != TN_RAGGED) continue;
      if (input.shape[0].symbol == symbol) return input.outer;
      for (size_t i = 0; i < input.outer.size(); ++i)
        if (input.outer[i].symbol == symbol)
          return {input.outer.begin() + static_cast<std::ptrdiff_t>(i) + 1, input.outer.end()};
    }
    return {};
  }

  Dim join(const Spec& a, const Spec& b) {
    if (a.storage != TN_RAGGED || b.storage != TN_RAGGED || a.outer.empty() || b.outer.empty() ||
        !same(a.outer[0], b.outer[0]))
      fail(TN_INVALID, "expected sequences of the same samples, got ", to_string(a), " and ", to_string(b));
    JoinedRows joined;
    joined.first = a.shape[0].symbol;
    joined.second = b.shape[0].symbol;
    joined.rows = symbols_.joined(joined.first, joined.second);
    layer_.joined.push_back(joined);
    return tn_dim_symbol(joined.rows);
  }

  // Gives its number in the list.
  int32_t declare(const tn_parameter* given, std::vector<LayerParameter>& list) const {
    if (given == nullptr || given->suffix == nullptr || given->spec == nullptr)
      fail(TN_PLUGIN_FAULT, "plan declares a parameter without suffix or shape");
    const std::vector<std::string>& known = type_.description.parameters;
    if (std::find(known.begin(), known.end(), given->suffix) == known.end())
      fail(TN_PLUGIN_FAULT, "plan declares parameter \"", given->suffix, "\", which its description lacks");
    LayerParameter parameter;
    parameter.name = layer_.parameter_name + "." + given->suffix;
    parameter.spec = Spec::from(*given->spec);
    parameter.initializer = given->initializer;
    parameter.flags = given->flags;
    for (const Dim& dim : parameter.spec.shape)
      if (dim.symbol != TN_SYMBOL_NONE)
        fail(TN_PLUGIN_FAULT, "parameter \"", parameter.name, "\" has a varying shape ", to_string(parameter.spec));
    list.push_back(std::move(parameter));
    return static_cast<int32_t>(list.size() - 1);
  }

  void apply_settings() {
    for (const auto& [name, value] : layer_.given) {
      const auto setting = setting_of(name);
      if (!setting) continue;
      for (LayerParameter& parameter : layer_.parameters) {
        if (parameter.name != layer_.parameter_name + "." + setting->suffix) continue;
        if (setting->key == "sparse") {
          set_sparse(parameter, value, name);
          continue;
        }
        const double factor = number_of(value, name);
        if (!std::isfinite(factor) || factor < 0)
          fail(TN_INVALID, layer_label(layer_), ": attribute \"", name, "\": ", factor,
               " is not a number of at least 0");
        if (setting->key == "decay")
          parameter.multipliers.decay = factor;
        else
          parameter.multipliers.rate = factor;
      }
    }
  }

  void set_sparse(LayerParameter& parameter, const Value& value, const std::string& name) const {
    const bool* sparse = std::get_if<bool>(&value);
    if (sparse == nullptr)
      fail(TN_INVALID, layer_label(layer_), ": attribute \"", name, "\": expected true or false, got ", shown(value));
    if (*sparse && (parameter.flags & TN_PARAMETER_ROWS_GRADIENT) == 0)
      fail(TN_INVALID, layer_label(layer_), ": attribute \"", name, "\": the gradient of parameter \"", parameter.name,
           "\" is always dense");
    if (!*sparse) parameter.flags &= ~uint32_t{TN_PARAMETER_ROWS_GRADIENT};
  }

  // ---- expansion

  void expand(const AttributesView& attributes) {
    if (type_.table.expand == nullptr) return;
    for (const Expression& input : layer_.inputs) refs_.push_back(input);
    const Loan<tn_expander> expander(type_.tags, this, "expander", sink_.who());
    expander->inputs_count = static_cast<uint32_t>(pointers_.size());
    expander->errors = sink_.get();
    expander->attributes = attributes.get();
    expander->inputs = pointers_.data();
    expander->input = [](void* self, uint32_t input) {
      tn_ref ref = -1;
      lent<Making>(self, [&](const Making& making) {
        if (input < making.layer_.inputs.size()) ref = static_cast<tn_ref>(input);
      });
      return ref;
    };
    expander->layer = [](void* self, const tn_expansion_layer* layer) {
      tn_ref ref = -1;
      lent<Making>(self, [&](Making& making) {
        making.add_inner(layer);
        ref = static_cast<tn_ref>(making.refs_.size() - 1);
      });
      return ref;
    };
    expander->output_of = [](void* self, tn_ref first, uint32_t number) {
      tn_ref ref = -1;
      lent<Making>(self, [&](Making& making) {
        const Expression of = making.ref(first);
        if (of.layer == nullptr || number >= of.layer->outputs.size())
          fail(TN_PLUGIN_FAULT, "expand uses output ", number, " of value ", first);
        making.refs_.push_back({of.layer, number});
        ref = static_cast<tn_ref>(making.refs_.size() - 1);
      });
      return ref;
    };
    expander->output = [](void* self, uint32_t port, tn_ref value) {
      return lent<Making>(self, [&](Making& making) {
        if (port >= making.layer_.outputs.size()) fail(TN_PLUGIN_FAULT, "expand gives output ", port);
        making.layer_.expansion.resize(making.layer_.outputs.size());
        making.layer_.expansion[port] = making.ref(value);
      });
    };
    const tn_status status = call("expand", type_.table.expand, expander.get());
    if (status == TN_UNSUPPORTED) {
      layer_.expansion = {};
      return;
    }
    sink_.check(status);
    layer_.expansion.resize(layer_.outputs.size());
    if (layer_.outputs.empty()) fail(TN_PLUGIN_FAULT, layer_label(layer_), ": nothing to expand to");
    for (size_t i = 0; i < layer_.outputs.size(); ++i) check_expansion(i);
    layer_.parameters.clear();
    layer_.buffers.clear();
  }

  void check_expansion(size_t number) const {
    const Expression& given = layer_.expansion[number];
    const std::string& port = type_.description.outputs[number].name;
    if (given.layer == nullptr) fail(TN_PLUGIN_FAULT, layer_label(layer_), ": expand gave no output \"", port, "\"");
    const Spec& made = given.layer->outputs.at(given.output);
    if (!same(made.shape, layer_.outputs[number].shape))
      fail(TN_PLUGIN_FAULT, layer_label(layer_), ": plan and expand disagree on output \"", port,
           "\": ", to_string(layer_.outputs[number]), " and ", to_string(made));
  }

  [[nodiscard]] const Expression& ref(tn_ref value) const {
    if (value < 0 || static_cast<size_t>(value) >= refs_.size()) fail(TN_PLUGIN_FAULT, "expand uses value ", value);
    return refs_[static_cast<size_t>(value)];
  }

  void add_inner(const tn_expansion_layer* given) {
    if (given == nullptr || given->type == nullptr) fail(TN_PLUGIN_FAULT, "expand adds a layer without a type");
    if ((given->inputs_count > 0 && given->inputs == nullptr) ||
        (given->attributes_count > 0 && (given->attribute_names == nullptr || given->attribute_values == nullptr)))
      fail(TN_PLUGIN_FAULT, "expand adds a layer with a null list");
    for (uint32_t i = 0; i < given->attributes_count; ++i)
      if (given->attribute_names[i] == nullptr) fail(TN_PLUGIN_FAULT, "expand adds a layer with a null attribute name");
    std::vector<Expression> inputs;
    for (uint32_t i = 0; i < given->inputs_count; ++i) inputs.push_back(ref(given->inputs[i]));
    Values attributes;
    for (uint32_t i = 0; i < given->attributes_count; ++i)
      attributes[given->attribute_names[i]] = value_from(given->attribute_values[i]);
    refs_.push_back(
        inner(given->type, std::move(inputs), std::move(attributes),
              given->suffix == nullptr ? layer_.parameter_name : layer_.parameter_name + "." + given->suffix));
  }

  // A layer inside this one; its name tells where it comes from.
  Expression inner(const std::string& type, std::vector<Expression> inputs, Values attributes,
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
    if (parameter_name == layer_.parameter_name) hand_down_settings(component.description, layer.given);
    constexpr int kMostDepth = 32;
    if (depth_ == kMostDepth)
      fail(TN_PLUGIN_FAULT, layer_label(layer), ": expansions within expansions, more than ", kMostDepth, " deep");
    return Making(registry_, symbols_, component, std::move(layer), depth_ + 1).run();
  }

  // Settings of parameters that an inner layer holds in this one's name.
  void hand_down_settings(const LayerDescription& inner, Values& attributes) const {
    for (const auto& [name, value] : layer_.given) {
      const auto setting = setting_of(name);
      const auto holds = [&](const std::string& suffix) { return setting && setting->suffix == suffix; };
      if (std::any_of(inner.parameters.begin(), inner.parameters.end(), holds)) attributes.emplace(name, value);
    }
  }

  // act = "relu": the layer becomes a name for relu(itself).
  void activate() {
    if (layer_.role != TN_ROLE_LAYER || layer_.outputs.size() != 1)
      fail(TN_INVALID, layer_label(layer_), ": attribute \"act\" needs a layer with one output");
    Layer base = layer_;
    base.name = layer_.name + "/" + layer_.type;
    layer_.expansion = {inner(act_, {{std::make_shared<const Layer>(std::move(base)), 0}}, {}, layer_.parameter_name)};
    const Layer& made = *layer_.expansion[0].layer;
    if (made.role != TN_ROLE_LAYER || made.outputs.size() != 1)
      fail(TN_INVALID, layer_label(layer_), ": attribute \"act\": \"", act_,
           "\" is no activation: it must be a layer with one output");
    layer_.outputs = made.outputs;
    layer_.parameters.clear();
    layer_.buffers.clear();
  }

  // drop_rate: elements of the output are dropped where it is made, in the last layer of an expansion.
  void drop() {
    if (layer_.role != TN_ROLE_LAYER || layer_.outputs.size() != 1)
      fail(TN_INVALID, layer_label(layer_), ": attribute \"drop_rate\" needs a layer with one output");
    if (!layer_.expanded()) {
      layer_.drop_rate = drop_rate_;
      return;
    }
    const Expression made = resolved(layer_.expansion[0]);
    const bool own = std::none_of(layer_.inputs.begin(), layer_.inputs.end(),
                                  [&](const Expression& input) { return resolved(input).layer == made.layer; });
    if (!own || made.layer->outputs.size() != 1)
      fail(TN_UNSUPPORTED, layer_label(layer_), ": attribute \"drop_rate\" needs an output of its own");
    Layer last = *made.layer;
    last.drop_rate = drop_rate_;
    layer_.expansion[0] = {std::make_shared<const Layer>(std::move(last)), 0};
  }

  Registry& registry_;
  RowSymbols& symbols_;
  const LayerType& type_;
  Layer layer_;
  const int depth_;
  ErrorSink sink_;
  std::string act_;
  double drop_rate_ = 0;
  std::vector<Spec> input_specs_;
  std::vector<tn_spec> views_;
  std::vector<const tn_spec*> pointers_;
  std::vector<std::optional<Spec>> outputs_;
  std::vector<Expression> refs_;  // expand: inputs, then inner layers
  std::map<std::string, uint64_t> inner_names_;
};

// Names stand in model files and messages.
void check_name(const std::string& name) {
  if (!is_utf8(name)) fail(TN_INVALID, "the name of a layer is not UTF-8");
}

}  // namespace

int32_t RowSymbols::of(const std::string& sequence, const std::string& part) {
  const auto [known, fresh] = known_.try_emplace({sequence, part}, 0);
  if (fresh) known->second = add(part.empty() ? sequence : part + " of " + sequence);
  return known->second;
}

int32_t RowSymbols::joined(int32_t first, int32_t second) {
  const auto [known, fresh] = joined_.try_emplace({first, second}, 0);
  if (fresh) known->second = add(name(first) + " then " + name(second));
  return known->second;
}

int32_t RowSymbols::add(std::string name) {
  names_.push_back(std::move(name));
  return static_cast<int32_t>(TN_SYMBOL_FIRST_ROWS + names_.size() - 1);
}

const std::string& RowSymbols::name(int32_t symbol) const {
  return names_.at(static_cast<size_t>(symbol - TN_SYMBOL_FIRST_ROWS));
}

std::string RowSymbols::named(const std::string& message) const {
  std::string result = message;
  for (size_t i = names_.size(); i-- > 0;) {  // the longer numbers first
    const Dim rows = tn_dim_symbol(static_cast<int32_t>(TN_SYMBOL_FIRST_ROWS + i));
    const std::string number = "[" + to_string(rows), name = "[rows of \"" + names_[i] + "\"";
    for (size_t at = result.find(number); at != std::string::npos; at = result.find(number, at + name.size()))
      result.replace(at, number.size(), name);
  }
  return result;
}

namespace {

// What is said of a data layer must mean something there.
void check_source(const std::string& name, const DataSource& source) {
  const auto bad = [&](const auto&... parts) { fail(TN_INVALID, "data layer \"", name, "\": ", parts...); };
  if (is_float(source.dtype) && (source.scale != 1 || source.offset != 0))
    bad("scale and offset are for integers; it holds ", dtype_name(source.dtype));
  if (is_float(source.dtype) && source.index_limit >= 0)
    bad("index_limit is for integers; it holds ", dtype_name(source.dtype));
  if (source.index_limit < -1 || source.index_limit == 0)
    bad("index_limit is ", source.index_limit, "; expected at least 1, or -1: not known");
  if (source.storage == TN_RAGGED) return;
  if (!source.sequence.empty() && source.sequence != name)
    bad("it has no rows that could be of the sequence \"", source.sequence, "\"");
  if (source.levels != 0) bad("levels is ", source.levels, "; expected 0 where storage is not TN_RAGGED");
}

}  // namespace

LayerRef LayerFactory::data(const std::string& name, DataSource source) {
  check_name(name);
  if (name.empty()) fail(TN_INVALID, "a data layer needs a name");
  if (source.shape.size() + 1 > TN_MAX_RANK)
    fail(TN_INVALID, "data layer \"", name, "\": rank ", source.shape.size(), " is above ", TN_MAX_RANK - 1);
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
      if (source.levels > 2) fail(TN_INVALID, "data layer \"", name, "\": ", source.levels, " levels; expected 1 or 2");
      spec.levels = source.levels;
      spec.outer = source.levels == 1 ? Shape{samples} : Shape{rows(""), samples};
      spec.shape = {rows(source.levels == 1 ? "" : "inner sequences")};
      break;
    case TN_CSR:
      if (source.shape.size() != 1 || source.shape[0] < 1)
        fail(TN_INVALID, "data layer \"", name, "\": a sparse one has one dimension, its width, got ",
             to_string(source.shape));
      if (source.dtype != TN_F32 && source.dtype != TN_COMPUTE)
        fail(TN_INVALID, "data layer \"", name, "\": a sparse one holds float32, got ", dtype_name(source.dtype));
      source.dtype = spec.dtype = TN_F32;
      spec.shape = {samples};
      spec.outer = {rows("entries")};
      break;
    default:
      fail(TN_INVALID, "data layer \"", name, "\": storage ", source.storage,
           "; expected TN_DENSE, TN_RAGGED or TN_CSR");
  }
  for (const int64_t extent : source.shape) {
    if (extent < 0) fail(TN_INVALID, "data layer \"", name, "\": negative dimension ", extent);
    spec.shape.push_back(tn_dim_constant(extent));
  }
  Layer layer;
  layer.name = name;
  layer.type = "data";
  layer.outputs = {spec};
  layer.data = std::move(source);
  return std::make_shared<const Layer>(std::move(layer));
}

Expression LayerFactory::layer(const std::string& type, const std::string& name, std::vector<Expression> inputs,
                               const Values& attributes) {
  check_name(name);
  const LayerType& component = registry_.layer(type);
  Layer layer;
  layer.name = name.empty() ? type + "_" + std::to_string(drawn_[type]++) : name;
  layer.type = type;
  layer.role = component.description.role;
  layer.parameter_name = layer.name;
  layer.inputs = std::move(inputs);
  layer.given = attributes;
  try {
    return Making(registry_, symbols_, component, std::move(layer)).run();
  } catch (const Error& error) {
    throw Error(error.code(), symbols_.named(error.message()));
  }
}

}  // namespace tenon
