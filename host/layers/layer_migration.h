// The migration of a layer of a model file from an older state version of its type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/migrate.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/files/model_file.h"
#include "core/topology.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// What a model file holds of a layer, or of a layer inside its expansion.
struct SavedLayer {
  std::string name;
  std::string type;
  std::optional<TypeVersion> from;  // nothing: the file does not state it, since a host before 0.2 wrote it
  Values attributes;                // the type's own, absent ones included; without `from` only those that were given
};

// The result of a migration.
struct MigratedLayer {
  Values attributes;
  TensorChanges changes;                                     // of the tensors of the file, by full name
  std::set<std::string> touched;                             // attributes that were set or renamed
  std::vector<std::pair<std::string, std::string>> renamed;  // suffixes of tensors, before and after, in this order
};

// Returns the type's table "tenon.migrate/1", checked; nothing if it offers none.
[[nodiscard]] std::optional<tn_migrate> migrate_table(const LayerType& type, const std::string& who);

// What determines the full names of the tensors of a layer (full_name of host/layers/host_attributes.h).
struct TensorNames {
  Values given;
  std::string parameter_name;
};

// Calls migrate for `saved`. names: of its tensors in the file. changes: those of the migrations around this one. On
// failure throws what migrate reported, TN_REFUSED for TN_UNSUPPORTED.
[[nodiscard]] MigratedLayer migrate(const LayerType& type, const tn_migrate& table, const SavedLayer& saved,
                                    TensorNames names, TensorChanges changes, StoredTensors& tensors);

}  // namespace tenon::host
