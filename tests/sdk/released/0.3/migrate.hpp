/* Tenon SDK for C++17: migration of layers from an older version of their type. SPDX-License-Identifier: MIT
 *
 * A layer type with `static void migrate(tn::Migration& m)` offers "tenon.migrate/1" (tenon/migrate.h):
 *
 *   static void migrate(tn::Migration& m) {  // from version 1, in which weight was [outputs, inputs]
 *     m.rename("units", "size");
 *     m.set_tensor("weight", transposed(m.tensor("weight")));
 *   }
 *
 * The oldest version that it accepts is 1, or `static constexpr uint32_t kOldestState`. */
#ifndef TENON_MIGRATE_HPP
#define TENON_MIGRATE_HPP

#include <tenon/migrate.h>

#include <cstring>
#include <string>
#include <tenon/base.hpp>
#include <utility>
#include <vector>

namespace tn {

// A parameter or buffer of a model file: float32, row-major.
struct StoredTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// Stored attributes and tensors, and changes of them. Failures of the changes are reported by the host.
class Migration {
 public:
  explicit Migration(const tn_migration& migration) : migration_(migration) {}

  // Of the file: older than that of the description; 0 if the file does not state it.
  uint32_t state_version() const { return migration_.state_version; }
  // The plugin that offered the type when the file was written, and its version; "" if the file does not state it.
  const char* plugin() const { return migration_.plugin; }
  const char* plugin_version() const { return migration_.plugin_version; }

  // Attributes as the file has them, without the changes. Reading one that is absent, not stored or of another kind
  // throws Failure.
  bool has(const char* name) const { return find(name) != nullptr; }
  bool flag(const char* name) const { return value(name, TN_ATTR_BOOL).as.i != 0; }
  int64_t integer(const char* name) const { return value(name, TN_ATTR_INT).as.i; }
  // Also of an integer, which a file that states no version may have for a number.
  double number(const char* name) const {
    const tn_value* found = find(name);
    if (found != nullptr && found->kind == TN_ATTR_INT) return static_cast<double>(found->as.i);
    return value(name, TN_ATTR_FLOAT).as.f;
  }
  const char* text(const char* name) const { return value(name, TN_ATTR_STRING).as.s; }
  // The value itself; null if the attribute is absent or not stored.
  const tn_value* find(const char* name) const {
    for (uint32_t i = 0; i < migration_.attributes_count; ++i)
      if (std::strcmp(migration_.attribute_names[i], name) == 0)
        return migration_.attribute_values[i].kind == 0 ? nullptr : &migration_.attribute_values[i];
    return nullptr;
  }

  void set(const char* name, const tn_value& value) { check(migration_.set_attribute(migration_.self, name, &value)); }
  void rename(const char* name, const char* now) { check(migration_.rename_attribute(migration_.self, name, now)); }
  void remove(const char* name) { check(migration_.remove_attribute(migration_.self, name)); }

  // Parameters and buffers by suffix, with the changes so far.
  bool has_tensor(const char* suffix) const {
    tn_stored_tensor tensor = empty();
    const tn_status status = migration_.tensor(migration_.self, suffix, &tensor);
    if (status != TN_NOT_FOUND) check(status);
    return status == TN_OK;
  }
  StoredTensor tensor(const char* suffix) const {
    tn_stored_tensor tensor = empty();
    const tn_status status = migration_.tensor(migration_.self, suffix, &tensor);
    if (status == TN_NOT_FOUND) throw Failure(TN_BAD_DATA, suffix, "the file has no such parameter or buffer");
    check(status);
    StoredTensor result;
    result.shape.assign(tensor.shape, tensor.shape + tensor.rank);
    int64_t count = 1;
    for (const int64_t extent : result.shape) count *= extent;
    if (count > 0) result.values.assign(tensor.values, tensor.values + count);
    return result;
  }
  void set_tensor(const char* suffix, const StoredTensor& tensor) {
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    if (count != static_cast<int64_t>(tensor.values.size()))
      throw Failure(TN_PLUGIN_FAULT, suffix,
                    "migrate sets " + std::to_string(tensor.values.size()) + " values in a shape of " +
                        std::to_string(count) + " elements");
    tn_stored_tensor view = empty();
    view.rank = static_cast<int32_t>(tensor.shape.size());
    view.shape = tensor.shape.data();
    view.values = tensor.values.data();
    check(migration_.set_tensor(migration_.self, suffix, &view));
  }
  void rename_tensor(const char* suffix, const char* now) {
    check(migration_.rename_tensor(migration_.self, suffix, now));
  }
  void remove_tensor(const char* suffix) { check(migration_.remove_tensor(migration_.self, suffix)); }

 private:
  static tn_stored_tensor empty() {
    tn_stored_tensor tensor = {};
    tensor.size = sizeof tensor;
    return tensor;
  }
  const tn_value& value(const char* name, int32_t kind) const {
    const tn_value* found = find(name);
    if (found == nullptr || found->kind != kind)
      throw Failure(TN_BAD_DATA, name, "migrate reads the attribute, which the file lacks or has as another kind");
    return *found;
  }

  const tn_migration& migration_;
};

namespace detail {

template <typename T, typename = void>
struct HasMigrate : std::false_type {};
template <typename T>
struct HasMigrate<T, std::void_t<decltype(&T::migrate)>> : std::true_type {};
template <typename T, typename = void>
struct OldestState {
  static constexpr uint32_t value = 1;
};
template <typename T>
struct OldestState<T, std::void_t<decltype(T::kOldestState)>> {
  static constexpr uint32_t value = T::kOldestState;
};

// The table "tenon.migrate/1" of a layer type.
template <typename T>
const tn_migrate* migrate_table() {
  static constexpr tn_migrate table = {sizeof(tn_migrate), OldestState<T>::value, [](const tn_migration* migration) {
                                         return guarded(migration->errors, [&] {
                                           Migration wrapped(*migration);
                                           T::migrate(wrapped);
                                         });
                                       }};
  return &table;
}

}  // namespace detail

}  // namespace tn
#endif
