// SPDX-License-Identifier: Apache-2.0
#include "host/layers/host_attributes.h"

#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "base/utf8.h"
#include "core/error.h"
#include "host/layers/initializers.h"
#include "host/layers/renames.h"

namespace tenon::host {

namespace {

constexpr const char* kAct = "act";
constexpr const char* kDropRate = "drop_rate";
constexpr const char* kCoefficient = "coefficient";
constexpr const char* kParameterPrefix = "param.";
constexpr const char* kRateMultiplier = "rate_multiplier";
constexpr const char* kDecayMultiplier = "decay_multiplier";
constexpr const char* kSparse = "sparse";

std::string string_of(const Value& value, const std::string& name) {
  if (const auto* s = std::get_if<std::string>(&value); s != nullptr && !s->empty()) return *s;
  fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": expected a string that is not empty, got ",
       shown(value));
}

double number_of(const Value& value, const std::string& name) {
  if (const auto* f = std::get_if<double>(&value)) return *f;
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": expected a number, got ", shown(value));
}

double drop_rate_of(const Value& value, const std::string& name) {
  const double rate = number_of(value, name);
  if (!(rate >= 0 && rate < 1))
    fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": ", rate, " is not in [0, 1)");
  return rate;
}

double coefficient_of(const Value& value, const std::string& name) {
  const double factor = number_of(value, name);
  if (!std::isfinite(factor))
    fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": ", factor, " is not finite");
  return factor;
}

double multiplier_of(const Value& value, const std::string& name) {
  const double factor = number_of(value, name);
  if (!std::isfinite(factor) || factor < 0)
    fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": ", factor, " is not a number of at least 0");
  return factor;
}

void check_setting(const ParameterSetting& setting, const std::string& name, const LayerDescription& description) {
  const std::vector<std::string>& suffixes = description.parameters;
  if (std::find(suffixes.begin(), suffixes.end(), setting.suffix) == suffixes.end())
    fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": no parameter \"", setting.suffix, "\"",
         base::suggestion(setting.suffix, suffixes));
  std::vector<std::string> keys = initializer_keys();
  keys.insert(keys.end(), {kRateMultiplier, kDecayMultiplier, kSparse, kNameKey});
  if (std::find(keys.begin(), keys.end(), setting.key) == keys.end())
    fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": unknown key \"", setting.key, "\"",
         base::suggestion(setting.key, keys));
}

// Replaces former names of attributes by the present ones.
void rename_attributes(Values& attributes) {
  Values renamed;
  for (const auto& [name, value] : attributes) {
    std::string now = name;
    if (const auto setting = parameter_setting(name))
      for (const Rename& rename : kParameterKeyRenames)
        if (setting->key == rename.before) now = setting_name({setting->suffix, rename.now});
    if (now != name && attributes.contains(now))
      fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\" is the former name of \"", now,
           "\", which is given as well");
    renamed.emplace(std::move(now), value);
  }
  attributes = std::move(renamed);
}

void set_sparse(LayerParameter& parameter, const Value& value, const std::string& name) {
  const bool* sparse = std::get_if<bool>(&value);
  if (sparse == nullptr)
    fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": expected true or false, got ", shown(value));
  if (*sparse && (parameter.flags & TN_PARAMETER_SPARSE_GRADIENT) == 0)
    fail(TN_INVALID, SubjectName{name}, "attribute \"", name, "\": the gradient of parameter \"", parameter.name,
         "\" is always dense");
  if (!*sparse) parameter.flags &= ~uint32_t{TN_PARAMETER_SPARSE_GRADIENT};
}

void state_initializer(const Layer& layer, LayerParameter& parameter) {
  const auto stated = stated_initializer(layer.given, parameter.suffix, parameter.spec.shape);
  if (!stated) return;
  parameter.initializer = *stated;
  parameter.initializer_stated = true;
}

}  // namespace

void check_layer_name(const std::string& name) {
  if (!base::is_utf8(name)) fail(TN_INVALID, "the name of a layer is not UTF-8");
}

std::vector<std::string> host_attribute_names() { return {kParameterName, kAct, kDropRate, kCoefficient}; }

HostAttributes take_attributes(Layer& layer, const LayerDescription& description) {
  HostAttributes result;
  rename_attributes(layer.given);
  std::vector<std::string> known;  // in the order of suggestions
  for (const Attribute& attribute : description.attributes) known.push_back(attribute.name);
  for (std::string& name : host_attribute_names()) known.push_back(std::move(name));
  Values own;
  for (const auto& [name, value] : layer.given) {
    if (name == kParameterName) {
      layer.parameter_name = string_of(value, name);
    } else if (name == kAct) {
      result.act = string_of(value, name);
    } else if (name == kDropRate) {
      result.drop_rate = drop_rate_of(value, name);
    } else if (name == kCoefficient) {
      result.coefficient = coefficient_of(value, name);
    } else if (const auto setting = parameter_setting(name)) {
      check_setting(*setting, name, description);
    } else if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail(TN_INVALID, SubjectName{name}, "unknown attribute \"", name, "\"", base::suggestion(name, known));
    } else {
      own[name] = value;
    }
  }
  layer.attributes = resolve(description.attributes, own);
  return result;
}

std::optional<ParameterSetting> parameter_setting(const std::string& name) {
  const std::string prefix = kParameterPrefix;
  const size_t dot = name.rfind('.');
  if (name.rfind(prefix, 0) != 0 || dot <= prefix.size()) return std::nullopt;
  return ParameterSetting{name.substr(prefix.size(), dot - prefix.size()), name.substr(dot + 1)};
}

std::string setting_name(const ParameterSetting& setting) {
  return kParameterPrefix + setting.suffix + "." + setting.key;
}

std::string full_name(const Values& given, const std::string& parameter_name, const std::string& suffix) {
  const std::string attribute = setting_name({suffix, kNameKey});
  const auto stated = given.find(attribute);
  if (stated == given.end()) return parameter_name + "." + suffix;
  std::string name = string_of(stated->second, attribute);
  if (!base::is_utf8(name)) fail(TN_INVALID, SubjectName{attribute}, "attribute \"", attribute, "\" is not UTF-8");
  return name;
}

Values with_renamed_settings(const Values& given, const std::string& before, const std::string& now) {
  Values result;
  for (const auto& [name, value] : given) {
    auto setting = parameter_setting(name);
    if (setting && setting->suffix == before) setting->suffix = now;
    result.emplace(setting ? setting_name(*setting) : name, value);
  }
  return result;
}

bool is_host_attribute(const std::string& name) {
  const std::vector<std::string> names = host_attribute_names();
  return parameter_setting(name) || std::find(names.begin(), names.end(), name) != names.end();
}

void apply_settings(Layer& layer) {
  for (const auto& [name, value] : layer.given) {
    const auto setting = parameter_setting(name);
    if (!setting) continue;
    for (LayerParameter& parameter : layer.parameters) {
      if (parameter.suffix != setting->suffix) continue;
      if (setting->key == kSparse)
        set_sparse(parameter, value, name);
      else if (setting->key == kDecayMultiplier)
        parameter.multipliers.stated_decay = multiplier_of(value, name);
      else if (setting->key == kRateMultiplier)
        parameter.multipliers.stated_rate = multiplier_of(value, name);
    }
  }
  for (auto* list : {&layer.parameters, &layer.buffers})
    for (LayerParameter& parameter : *list) state_initializer(layer, parameter);
}

}  // namespace tenon::host
