// Topologies as the public C API reads, writes and hands them out. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/files/model_file.h"
#include "host/api/api.h"

namespace tenon::host::api {

// Traces the layers that the outputs of an application depend on.
[[nodiscard]] Topology topology_of(Host& host, const tn_layer* layers, uint32_t count);

// Parses the JSON of a topology from an untrusted source, which messages call `who`: bounded depth.
[[nodiscard]] nlohmann::json parse_topology(const std::string& text, const std::string& who);

struct ReadTopology {
  Topology topology;
  TensorChanges changes;  // of the tensors of its file, by migrations
  DataNames names;        // of its data layers
};
// Makes the layers of a topology. A fault of the topology is TN_BAD_DATA; an unknown or refused type is not. tensors:
// those of its file; null: there is no file.
[[nodiscard]] ReadTopology read_topology(Host& host, const nlohmann::json& json, StoredTensors* tensors);

// Makes the layers of the topology of a model file with this header, which lies in `files`.
[[nodiscard]] ReadTopology topology_of_model(Host& host, const ModelFile& header, FileSystem& files,
                                             const std::string& file);
// The same of a file of either kind: JSON as tn_topology_save writes it, or a model file.
[[nodiscard]] ReadTopology load_topology(Host& host, const std::string& file);

// Calls `work`, a step of loading a file, and adds the file to its errors.
template <typename Work>
auto naming_file(const std::string& file, const Work& work) try {
  return work();
} catch (const Error& error) {
  if (error.subject() == file) throw;  // the message names its subject
  throw Error(error.code(), file + ": " + error.message(), error.component(),
              error.subject().empty() ? file : error.subject());
}

// Room of the application for handles.
struct LayerRoom {
  tn_layer* to;
  uint32_t* count;         // the capacity; set to the number of layers
  const char *list, *its;  // the names of both arguments
};
// Throws TN_NEED_CAPACITY naming `what`, and sets *count, if the layers do not fit; TN_MISUSE for null pointers.
void check_capacity(size_t layers, const LayerRoom& room, const std::string& what);
// Makes handles of layers: of all, or of none if that fails. After check_capacity.
void give_layers(Host& host, const std::vector<LayerOutput>& layers, const LayerRoom& room);

}  // namespace tenon::host::api
