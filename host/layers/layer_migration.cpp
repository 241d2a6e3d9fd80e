// SPDX-License-Identifier: Apache-2.0
#include "host/layers/layer_migration.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/utf8.h"
#include "core/checked.h"
#include "core/error.h"
#include "host/layers/host_attributes.h"
#include "host/plugins/callback.h"
#include "host/plugins/offered_table.h"

namespace tenon::host {

namespace {

std::string name_from(const char* name, const char* what) {
  if (name == nullptr || *name == '\0') fail(TN_PLUGIN_FAULT, "migrate names ", what, " by null or an empty text");
  if (!base::is_utf8(name)) fail(TN_PLUGIN_FAULT, "migrate names ", what, " by a text that is not UTF-8");
  return name;
}

// Stored attributes as a plugin sees them. Neither copied nor moved: the lists point into it.
class AttributeLists : base::NotCopied {
 public:
  explicit AttributeLists(const Values& attributes) {
    for (const auto& [name, value] : attributes) {
      names_.push_back(name.c_str());
      values_.push_back(view_of(value, strings_));
    }
  }

  void show(tn_migration& to) const {
    to.attributes_count = checked_cast<uint32_t>(names_.size(), "attributes");
    to.attribute_names = names_.data();
    to.attribute_values = values_.data();
  }

 private:
  std::vector<const char*> names_;
  std::vector<tn_value> values_;
  std::vector<std::vector<const char*>> strings_;
};

// One call of migrate. Its callbacks change the result, which is discarded if anything fails.
class Migration {
 public:
  Migration(const LayerType& type, const SavedLayer& saved, TensorNames names, TensorChanges changes,
            StoredTensors& tensors)
      : type_(type),
        saved_(saved),
        names_(std::move(names)),
        tensors_(tensors),
        version_(saved.from ? saved.from->state_version : 0),
        sink_(text("migration from state version ", version_, " to ", type.description.state_version), type.tags) {
    result_.attributes = saved.attributes;
    result_.changes = std::move(changes);
  }

  MigratedLayer run(const tn_migrate& table) {
    const AttributeLists lists(saved_.attributes);
    const Loan<tn_migration> migration(type_.tags, this, "migration", sink_.who());
    migration->state_version = version_;
    migration->errors = sink_.get();
    migration->plugin = saved_.from ? saved_.from->plugin.c_str() : "";
    migration->plugin_version = saved_.from ? saved_.from->version.c_str() : "";
    lists.show(*migration.get());
    migration->user = type_.table.user;
    set_callbacks(*migration.get());
    tn_status status = call_plugin(type_, sink_.who(), {Tag::kSetup, "migrate"}, table.migrate,
                                   static_cast<const tn_migration*>(migration.get()));
    if (status == TN_OK) status = failed_;  // migrate must not ignore a change that was refused
    sink_.check(status == TN_UNSUPPORTED ? tn_status{TN_REFUSED} : status);
    return std::move(result_);
  }

  ErrorSink& sink() { return sink_; }  // takes the failures of the callbacks
  tn_status answer(tn_status status) {
    if (status != TN_OK) failed_ = status;
    return status;
  }

 private:
  template <auto kMember>
  using Call = LentFunction<Migration, kMember>;

  static void set_callbacks(tn_migration& migration) {
    migration.set_attribute = Call<&Migration::set_attribute>();
    migration.rename_attribute = Call<&Migration::rename_attribute>();
    migration.remove_attribute = Call<&Migration::remove_attribute>();
    migration.tensor = [](void* self, const char* suffix, tn_stored_tensor* tensor) {
      bool found = false;
      const tn_status status = lent<Migration>(self, [&](Migration& it) { found = it.show(suffix, tensor); });
      return status == TN_OK && !found ? tn_status{TN_NOT_FOUND} : status;
    };
    migration.set_tensor = Call<&Migration::set_tensor>();
    migration.rename_tensor = Call<&Migration::rename_tensor>();
    migration.remove_tensor = Call<&Migration::remove_tensor>();
  }

  // ---- attributes

  Values::iterator attribute(const char* given) {
    const std::string name = name_from(given, "an attribute");
    const auto found = result_.attributes.find(name);
    if (found == result_.attributes.end())
      fail(TN_BAD_DATA, SubjectName{name}, "attribute \"", name, "\" is not stored");
    return found;
  }

  void set_attribute(const char* given, const tn_value* value) {
    const std::string name = name_from(given, "an attribute");
    if (value == nullptr) fail(TN_PLUGIN_FAULT, SubjectName{name}, "migrate sets attribute \"", name, "\" to null");
    try {
      result_.attributes[name] = value_from(*value);
    } catch (const Error& error) {
      throw Error(TN_PLUGIN_FAULT, "migrate sets attribute \"" + name + "\": " + error.message(), {}, name);
    }
    result_.touched.insert(name);
  }

  void rename_attribute(const char* given, const char* now) {
    const auto found = attribute(given);
    const std::string name = name_from(now, "an attribute");
    if (result_.attributes.contains(name))
      fail(TN_BAD_DATA, SubjectName{name}, "attribute \"", name, "\", the new name of \"", given, "\", is stored, too");
    result_.attributes[name] = std::move(found->second);
    result_.attributes.erase(given);
    result_.touched.insert(name);
  }

  void remove_attribute(const char* given) { result_.attributes.erase(attribute(given)); }

  // ---- tensors

  [[nodiscard]] std::string full_name(const char* suffix) const {
    return host::full_name(names_.given, names_.parameter_name, name_from(suffix, "a parameter or buffer"));
  }

  // Returns a tensor with the changes so far; nothing if there is none of this name.
  [[nodiscard]] std::optional<MigratedTensor> find(const std::string& name) const {
    if (const auto change = result_.changes.find(name); change != result_.changes.end()) return change->second;
    const ModelTensor* const tensor = tensors_.find(name);
    if (tensor == nullptr) return std::nullopt;
    if (tensor->dtype != TN_F32)
      fail(TN_BAD_DATA, SubjectName{name}, "tensor \"", name, "\" is ", tensor->type, "; expected F32");
    if (tensor->shape.size() > TN_MAX_RANK)
      fail(TN_BAD_DATA, SubjectName{name}, "tensor \"", name, "\" has ", tensor->shape.size(),
           " dimensions; expected at most ", TN_MAX_RANK);
    return MigratedTensor{tensor->shape, name, nullptr};
  }

  [[nodiscard]] MigratedTensor stored_tensor(const char* suffix) const {
    const std::string name = full_name(suffix);
    std::optional<MigratedTensor> found = find(name);
    if (!found) fail(TN_BAD_DATA, SubjectName{name}, "tensor \"", name, "\" is not stored");
    return std::move(*found);
  }

  // Returns the values of a tensor, which live as long as this object.
  const Buffer* values_of(const MigratedTensor& tensor) {
    if (tensor.from.empty()) {
      lent_.push_back(tensor.values);
      return tensor.values.get();
    }
    std::shared_ptr<const Buffer>& values = read_[tensor.from];
    if (values == nullptr) values = tensors_.read(*tensors_.find(tensor.from));
    return values.get();
  }

  // Returns whether there is such a tensor.
  bool show(const char* suffix, tn_stored_tensor* to) {
    const std::string name = full_name(suffix);
    if (to == nullptr || to->size < offsetof(tn_stored_tensor, values) + sizeof to->values)
      fail(TN_PLUGIN_FAULT, SubjectName{name}, "migrate reads tensor \"", name, "\" into a struct that is too short");
    const std::optional<MigratedTensor> tensor = find(name);
    if (!tensor) return false;
    shapes_.push_back(std::make_unique<const std::vector<int64_t>>(tensor->shape));
    const Buffer* const values = values_of(*tensor);
    to->rank = static_cast<int32_t>(tensor->shape.size());
    to->shape = shapes_.back()->data();
    to->values = values == nullptr ? nullptr : reinterpret_cast<const float*>(values->data());
    return true;
  }

  void set_tensor(const char* suffix, const tn_stored_tensor* tensor) {
    const std::string name = full_name(suffix);
    const auto fault = [&](const auto&... parts) {
      fail(TN_PLUGIN_FAULT, SubjectName{name}, "migrate sets tensor \"", name, "\" ", parts...);
    };
    if (tensor == nullptr || tensor->size < offsetof(tn_stored_tensor, values) + sizeof tensor->values)
      fault("to a struct that is too short");
    if (tensor->rank < 0 || tensor->rank > TN_MAX_RANK || (tensor->rank > 0 && tensor->shape == nullptr))
      fault("of rank ", tensor->rank, tensor->shape == nullptr ? " without a shape" : "");
    MigratedTensor made;
    if (tensor->rank > 0) made.shape.assign(tensor->shape, tensor->shape + tensor->rank);
    if (std::any_of(made.shape.begin(), made.shape.end(), [](int64_t extent) { return extent < 0; }))
      fault("of shape ", to_string(made.shape));
    uint64_t bytes = sizeof(float);
    for (const int64_t extent : made.shape)
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes))
        fault("of shape ", to_string(made.shape));
    if (bytes > 0 && tensor->values == nullptr) fault("without values");
    auto values = std::make_shared<Buffer>(tensors_.allocator(), bytes);
    if (bytes > 0) std::memcpy(values->data(), tensor->values, bytes);
    made.values = std::move(values);
    result_.changes[name] = std::move(made);
  }

  void rename_tensor(const char* suffix, const char* now) {
    MigratedTensor moved = stored_tensor(suffix);
    const std::string before = full_name(suffix);
    names_.given = with_renamed_settings(names_.given, suffix, name_from(now, "a parameter or buffer"));
    const std::string name = full_name(now);
    if (name != before && find(name))
      fail(TN_BAD_DATA, SubjectName{name}, "tensor \"", name, "\", the new name of \"", before, "\", is stored, too");
    result_.changes[before] = std::nullopt;
    result_.changes[name] = std::move(moved);
    result_.renamed.emplace_back(suffix, now);
  }

  void remove_tensor(const char* suffix) {
    static_cast<void>(stored_tensor(suffix));
    result_.changes[full_name(suffix)] = std::nullopt;
  }

  const LayerType& type_;
  const SavedLayer& saved_;
  TensorNames names_;
  StoredTensors& tensors_;
  const uint32_t version_;  // of the file; 0 if it does not state it
  ErrorSink sink_;
  MigratedLayer result_;
  tn_status failed_ = TN_OK;                                   // of the last callback that failed
  std::map<std::string, std::shared_ptr<const Buffer>> read_;  // values of tensors of the file, by name
  // What `show` has lent besides: migrate may read it after it has replaced the tensor.
  std::vector<std::shared_ptr<const Buffer>> lent_;
  std::vector<std::unique_ptr<const std::vector<int64_t>>> shapes_;
};

}  // namespace

std::optional<tn_migrate> migrate_table(const LayerType& type, const std::string& who) {
  const OfferedTable table = extension_table(type, who, TN_MIGRATE);
  const auto* const migrate = table.as<tn_migrate>();
  return migrate == nullptr ? std::nullopt : std::optional(*migrate);
}

MigratedLayer migrate(const LayerType& type, const tn_migrate& table, const SavedLayer& saved, TensorNames names,
                      TensorChanges changes, StoredTensors& tensors) {
  return Migration(type, saved, std::move(names), std::move(changes), tensors).run(table);
}

}  // namespace tenon::host
