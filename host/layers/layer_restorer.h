// Layers of a model file: made with the attributes that are stored, migrated from older versions of their types.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files/model_file.h"
#include "core/topology.h"
#include "host/layers/layer_migration.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// One layer of a model file, with the layers inside its expansion.
class LayerRestorer {
 public:
  // inner: by name. Borrows `tensors`, those of the file; null: there is no file.
  LayerRestorer(SavedLayer layer, std::map<std::string, SavedLayer> inner, StoredTensors* tensors)
      : layer_(std::move(layer)), inner_(std::move(inner)), tensors_(tensors) {}
  // A layer of this host, whose attributes another one called `name` takes over.
  LayerRestorer(const Layer& layer, const std::string& name);

  // Adds the stored attributes to layer.given, where these are not given, migrated if the state version is an older
  // one. Does nothing for an inner layer that the file does not hold, or holds with another type. Throws TN_REFUSED for
  // a version that the type does not read. outermost: `layer` is the one of the file, under any name.
  void restore(Layer& layer, const LayerType& type, bool outermost);
  // Throws `error`, a failure to make the layer, with what is known of versions.
  [[noreturn]] void rethrow(const Error& error) const;
  // Returns the changes of tensors so far.
  [[nodiscard]] const TensorChanges& changes() const { return changes_; }

 private:
  [[nodiscard]] Values values_of(const SavedLayer& saved, Layer& layer, const LayerType& type);
  [[nodiscard]] Values migrated(const tn_migrate& table, const SavedLayer& saved, Layer& layer, const LayerType& type);

  const SavedLayer layer_;
  const std::map<std::string, SavedLayer> inner_;
  StoredTensors* const tensors_ = nullptr;  // null: no migration is possible, or needed for a layer of this host
  TensorChanges changes_;
  std::optional<tn_status> refused_;  // the code of a failure of `restore`, which an expansion may have replaced
  std::set<std::string> touched_;     // attributes that migrations have set or renamed
  std::string installed_;             // the plugin that makes layer_
};

// The changes of all layers of a file. Layers that share a tensor must agree about it.
class SharedChanges {
 public:
  // Adds the changes of a layer that was made. Throws TN_REFUSED, naming both layers, if another layer shares a tensor
  // and changes it otherwise.
  void add(const LayerRef& layer, const TensorChanges& changes);
  // Returns all changes. Throws TN_REFUSED if a layer uses a tensor as it is in the file that another one changes.
  [[nodiscard]] TensorChanges take() const;

 private:
  struct Change {
    std::string layer;  // as messages name it
    std::optional<MigratedTensor> tensor;
  };
  std::map<std::string, Change> changes_;
  std::map<std::string, std::string> kept_;  // a layer that uses the tensor unchanged, by tensor
};

}  // namespace tenon::host
