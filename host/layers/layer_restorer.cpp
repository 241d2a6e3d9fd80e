// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_restorer.h"

#include <algorithm>
#include <cstring>

#include "base/nearest.h"
#include "host/layers/host_attributes.h"

namespace tenon::host {

namespace {

// `plugin "vendor.norm" 1.2.0`
std::string plugin_label(const std::string& id, const std::string& version) {
  return text("plugin \"", id, "\"", version.empty() ? "" : " " + version);
}

// Renames and removes the settings param.<suffix>.<key> of tensors that were renamed and removed.
void follow(Values& given, const std::string& parameter_name, const MigratedLayer& migrated) {
  for (const auto& [before, now] : migrated.renamed) given = with_renamed_settings(given, before, now);
  Values result;
  for (const auto& [name, value] : given) {
    const auto setting = parameter_setting(name);
    const auto change =
        setting ? migrated.changes.find(full_name(given, parameter_name, setting->suffix)) : migrated.changes.end();
    const bool removed = change != migrated.changes.end() && !change->second;
    if (!removed) result.emplace(name, value);
  }
  given = std::move(result);
}

// Refuses a default where the file says that the attribute was absent: it would change the layer.
void check_absent(const std::string& name, const LayerType& type) {
  for (const Attribute& attribute : type.description.attributes)
    if (attribute.name == name && !std::holds_alternative<Absent>(attribute.initial))
      fail(TN_REFUSED, SubjectName{name}, "attribute \"", name, "\" was absent when the model was saved, and ",
           plugin_label(type.plugin, type.version), " gives it the default ", shown(attribute.initial),
           " without a migration");
}

bool is_same_tensor(const std::optional<MigratedTensor>& a, const std::optional<MigratedTensor>& b) {
  if (!a || !b) return !a && !b;
  if (a->shape != b->shape || a->from != b->from || (a->values == nullptr) != (b->values == nullptr)) return false;
  if (a->values == nullptr || a->values->size() == 0) return true;
  return std::memcmp(a->values->data(), b->values->data(), a->values->size()) == 0;
}

// Returns the inner layers of a layer, with the names that they have in a layer called `name`.
std::map<std::string, SavedLayer> inner_of(const Layer& layer, const std::string& name) {
  std::map<std::string, SavedLayer> result;
  for (const InnerLayer& inner : layer.inner) {
    const std::string now = name + inner.name.substr(layer.name.size());
    result.emplace(now, SavedLayer{now, inner.type, inner.type_version, inner.attributes});
  }
  return result;
}

}  // namespace

LayerRestorer::LayerRestorer(const Layer& layer, const std::string& name)
    : layer_{layer.name, layer.type, layer.type_version, layer.resolved}, inner_(inner_of(layer, name)) {}

void LayerRestorer::restore(Layer& layer, const LayerType& type, bool outermost) try {
  if (outermost) installed_ = plugin_label(type.plugin, type.version);
  const SavedLayer* saved = &layer_;
  if (!outermost) {
    const auto found = inner_.find(layer.name);
    if (found == inner_.end() || found->second.type != layer.type) return;
    saved = &found->second;
  }
  for (auto& [name, value] : values_of(*saved, layer, type)) {
    if (std::holds_alternative<Absent>(value))
      check_absent(name, type);
    else
      layer.given.emplace(name, value);
  }
} catch (const Error& error) {
  refused_ = error.code();
  throw;
}

// Returns the stored attributes, migrated if need be.
Values LayerRestorer::values_of(const SavedLayer& saved, Layer& layer, const LayerType& type) {
  const uint32_t present = type.description.state_version;
  if (saved.from && saved.from->state_version == present) return saved.attributes;
  const std::string installed = plugin_label(type.plugin, type.version);
  const std::string stored = saved.from ? text("state version ", saved.from->state_version, ", saved by ",
                                               plugin_label(saved.from->plugin, saved.from->version))
                                        : "";
  if (saved.from && saved.from->state_version > present)
    fail(TN_REFUSED, stored, ", is newer than that of the installed ", installed, ", which is ", present);
  const std::optional<tn_migrate> table = migrate_table(type, layer_label(layer));
  if (!saved.from && (!table || table->oldest > 0)) return saved.attributes;
  if (!table)
    fail(TN_REFUSED, stored, ", is older than that of the installed ", installed, ", which is ", present,
         " and does not migrate older ones");
  if (saved.from && saved.from->state_version < table->oldest)
    fail(TN_REFUSED, stored, ", is older than that of the installed ", installed, ", which is ", present,
         " and migrates from ", table->oldest, " on");
  if (tensors_ == nullptr)
    fail(TN_REFUSED, saved.from ? stored : "a layer without a state version",
         ", needs a migration to that of the installed ", installed, ", which is ", present,
         "; migrations may change parameters, so they need a model file");
  return migrated(*table, saved, layer, type);
}

Values LayerRestorer::migrated(const tn_migrate& table, const SavedLayer& saved, Layer& layer, const LayerType& type) {
  // Migration comes before take_attributes, which would set the layer's parameter_name.
  const auto named = layer.given.find(kParameterName);
  const auto* const name = named == layer.given.end() ? nullptr : std::get_if<std::string>(&named->second);
  const std::string parameter_name = name == nullptr ? layer.parameter_name : *name;
  MigratedLayer result = migrate(type, table, saved, {layer.given, parameter_name}, changes_, *tensors_);
  std::vector<std::string> known;
  for (const Attribute& attribute : type.description.attributes) known.push_back(attribute.name);
  for (const std::string& touched : result.touched)
    if (result.attributes.contains(touched) && std::find(known.begin(), known.end(), touched) == known.end())
      fail(TN_PLUGIN_FAULT, SubjectName{touched}, "migrate sets attribute \"", touched,
           "\", which its description lacks", base::suggestion(touched, known));
  follow(layer.given, parameter_name, result);
  changes_ = std::move(result.changes);
  touched_.merge(result.touched);
  return std::move(result.attributes);
}

void LayerRestorer::rethrow(const Error& error) const {
  tn_status code = error.code();
  std::string note;
  if (refused_) {
    code = *refused_;
  } else if (touched_.contains(error.subject())) {
    code = TN_PLUGIN_FAULT;
    note = "; a migration has set this value";
  } else if (layer_.from) {
    const std::string saved = plugin_label(layer_.from->plugin, layer_.from->version);
    if (saved != installed_) note = "; the layer was saved with " + saved;
    if (saved != installed_ && !installed_.empty()) note += ", this is " + installed_;
  }
  throw Error(code, error.message() + note, error.component(), error.subject());
}

void SharedChanges::add(const LayerRef& layer, const TensorChanges& changes) {
  const std::string label = layer_label(*layer);
  for (const auto& [name, tensor] : changes) {
    const auto [known, fresh] = changes_.try_emplace(name, Change{label, tensor});
    if (!fresh && !is_same_tensor(known->second.tensor, tensor))
      fail(TN_REFUSED, SubjectName{name}, known->second.layer, " and ", label, " share tensor \"", name,
           "\", and their migrations change it differently");
  }
  for (const LayerRef& leaf : leaves_of(layer))
    for (const auto* const list : {&leaf->parameters, &leaf->buffers})
      for (const LayerParameter& parameter : *list)
        if (!changes.contains(parameter.name)) kept_.try_emplace(parameter.name, label);
}

TensorChanges SharedChanges::take() const {
  TensorChanges result;
  for (const auto& [name, change] : changes_) {
    if (const auto kept = kept_.find(name); kept != kept_.end())
      fail(TN_REFUSED, SubjectName{name}, "the migration of ", change.layer, " changes tensor \"", name, "\", which ",
           kept->second, " uses as it is in the file");
    result.emplace(name, change.tensor);
  }
  return result;
}

}  // namespace tenon::host
