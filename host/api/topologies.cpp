// SPDX-License-Identifier: Apache-2.0
#include "host/api/topologies.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/bounded_json.h"

namespace tenon::host::api {

Topology topology_of(Host& host, const tn_layer* layers, uint32_t count) {
  return Topology::trace(outputs(host, layers, count, "outputs"));
}

nlohmann::json parse_topology(const std::string& text, const std::string& who) {
  nlohmann::json json = bounded_json(text);
  if (json.is_discarded())
    fail(TN_BAD_DATA, SubjectName{who}, who, ": the topology is not valid JSON, or nested too deeply (more than ",
         kMostJsonLevels, " levels), or too large (more than ", kMostJsonValues, " values)");
  return json;
}

ReadTopology read_topology(Host& host, const nlohmann::json& json, StoredTensors* tensors) try {
  const SetupLock lock = host.registry.setup();
  RestoredTopology restored = host.factory.from_json(json, tensors);
  return {Topology::trace(std::move(restored.outputs)), std::move(restored.changes), names_of_topology(json)};
} catch (const Error& error) {
  if (error.code() != TN_INVALID && error.code() != TN_UNSUPPORTED) throw;
  throw Error(TN_BAD_DATA, error.message(), error.component(), error.subject());
}

ReadTopology topology_of_model(Host& host, const ModelFile& header, FileSystem& files, const std::string& file) {
  if (header.metadata.contains(kPartKey))
    fail(TN_BAD_DATA, SubjectName{file}, file,
         ": it is a part of a model, some rows of its tables; load the file beside ", "its folder that names it");
  if (header.topology.empty()) fail(TN_BAD_DATA, SubjectName{file}, file, ": it holds no topology, only tensors");
  StoredTensors tensors(files, file, header, host.allocator);
  return read_topology(host, parse_topology(header.topology, file), &tensors);
}

namespace {

// Returns the JSON of a file; nothing if it is a model file. A model file begins with a length of 8 bytes, which is
// below kMaxModelHeader, so that the last of them is 0; JSON has no such byte.
std::optional<std::string> json_of(FileSystem& files, const std::string& path) {
  const std::unique_ptr<InputFile> file = files.open(path);
  constexpr uint64_t kLengthBytes = 8;
  std::string text(std::min(file->size(), kLengthBytes), '\0');
  file->read(0, text.data(), text.size());
  if (text.empty() || text.back() == '\0') return std::nullopt;
  if (file->size() > kMaxModelHeader)
    fail(TN_BAD_DATA, SubjectName{path}, path, ": a topology of ", file->size(), " bytes; expected at most ",
         kMaxModelHeader);
  text.resize(file->size());
  file->read(0, text.data(), text.size());
  return text;
}

}  // namespace

ReadTopology load_topology(Host& host, const std::string& file) {
  if (const std::optional<std::string> text = json_of(*host.files, file))
    return read_topology(host, parse_topology(*text, file), nullptr);
  return topology_of_model(host, read_model_header(*host.files, file), *host.files, file);
}

void check_capacity(size_t layers, const LayerRoom& room, const std::string& what) {
  const uint32_t most = required(room.count, room.its);
  if (most >= layers) {
    if (layers > 0) required(room.to, room.list);
    return;
  }
  *room.count = static_cast<uint32_t>(layers);
  fail(TN_NEED_CAPACITY, SubjectName{what}, what, ": ", layers, " layers; there is room for ", most);
}

void give_layers(Host& host, const std::vector<LayerOutput>& layers, const LayerRoom& room) {
  size_t made = 0;
  try {
    for (; made < layers.size(); ++made) room.to[made] = host.layers.add<tn_layer>(layers[made]);
  } catch (...) {
    while (made > 0) host.layers.take(room.to[--made]);
    throw;
  }
  *room.count = static_cast<uint32_t>(layers.size());
}

}  // namespace tenon::host::api
