// SPDX-License-Identifier: Apache-2.0
#include "host/training/checkpoint_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/bounded_json.h"
#include "core/error.h"

namespace tenon::host {

namespace {

constexpr const char* kVersion = "tenon.checkpoint";  // in the metadata
constexpr const char* kRecord = "record";             // tensors, after kCheckpointTensors
constexpr const char* kState = "state";
constexpr const char* kAverage = "average";
constexpr const char* kBestValues = "best";
constexpr const char* kChanges = "tenon.checkpoint.changes";  // in the metadata

// The name of the record, number 0, or of that of a group. The record of a group has steps and learning rate only.
std::string record_name(size_t number) {
  return text(kCheckpointTensors, kRecord, number == 0 ? std::string() : text("/", number));
}

std::string best_record_name() { return text(kCheckpointTensors, kBestValues, "/", kRecord); }

std::string tensor_name(const char* kind, const Updater::StateValues& state) {
  return text(kCheckpointTensors, kind, "/", state.state, "/", state.parameter);
}

// Returns the names of all parameters and buffers that a file of a set holds, each once.
std::vector<std::string> names_of(const Topology& topology, const ParameterSet& set) {
  std::vector<std::string> names;
  for (const ParameterDeclaration& declaration : topology.declarations())
    if (!set.find(declaration.name).table && std::find(names.begin(), names.end(), declaration.name) == names.end())
      names.push_back(declaration.name);
  return names;
}

// Returns the shape of a state; of a table that of all rows.
std::vector<int64_t> whole_shape(const Updater::StateValues& state) {
  std::vector<int64_t> shape = state.shape;
  if (state.owned) shape[0] = state.owned->height;
  return shape;
}

CheckpointTensor stored(const char* kind, const Updater::StateValues& state) {
  return {tensor_name(kind, state), element_type_name(state.dtype), state.shape, state.values, state.bytes()};
}

}  // namespace

void write_checkpoint(FileSystem& files, const std::filesystem::path& path, const Topology& topology,
                      const ParameterSet& set, const CheckpointContents& contents) {
  const std::string version = version_of(contents.record);  // of all records
  std::vector<std::pair<std::string, std::string>> records = {{record_name(0), encode(contents.record, version)}};
  for (const UpdaterProgress& group : contents.groups) {
    CheckpointRecord of_group;
    of_group.steps = group.steps;
    of_group.learning_rate = group.learning_rate;
    records.emplace_back(record_name(records.size()), encode(of_group, version));
  }
  if (contents.best) records.emplace_back(best_record_name(), encode(*contents.best, version));
  CheckpointParts parts;
  parts.metadata[kVersion] = version;
  if (!contents.changes.empty()) parts.metadata[kChanges] = contents.changes;
  for (const auto& [name, bytes] : records)
    parts.tensors.push_back({name, "U8", {static_cast<int64_t>(bytes.size())}, bytes.data(), bytes.size()});
  uint64_t count_of_states = 0;
  // The rows of tables lie in the parts, each at the place that it would have among all tensors.
  ModelParts tables{{}, contents.parts};
  for (size_t i = 0; i < set.entries().size(); ++i)
    if (set.entries()[i].table) tables.tensors.push_back({set.entries()[i].name, set.entries()[i].shape, i});
  const auto add = [&](const char* kind, const std::vector<Updater::StateValues>& list) {
    for (const Updater::StateValues& state : list) {
      const uint64_t place = set.entries().size() + records.size() + count_of_states++;
      if (state.owned)
        tables.tensors.push_back({tensor_name(kind, state), whole_shape(state), place});
      else
        parts.tensors.push_back(stored(kind, state));
    }
  };
  add(kState, contents.states);
  add(kAverage, contents.averages);
  add(kBestValues, contents.best_values);
  if (!tables.tensors.empty()) parts.metadata[kPartsKey] = parts_text(tables);
  write_model(files, path, topology.to_json(set.names()).dump(), set, names_of(topology, set), parts);
}

std::string write_checkpoint_part(FileSystem& files, const std::filesystem::path& path, const ParameterSet& set,
                                  const std::vector<Updater::StateValues>& states) {
  const ParameterSet& owned = *set.owned();
  std::vector<std::string> names;
  for (const ParameterEntry& entry : owned.entries()) names.push_back(entry.name);
  CheckpointParts parts;
  parts.metadata[kPartKey] = blocks_text(*set.tables().blocks);
  for (const Updater::StateValues& state : states)
    if (state.owned) parts.tensors.push_back(stored(kState, state));
  return write_model(files, path, "", owned, names, parts);
}

void write_model_of(FileSystem& files, const std::filesystem::path& path, const Topology& topology,
                    const ParameterSet& set) {
  write_model(files, path, topology.to_json(set.names()).dump(), set, names_of(topology, set));
}

CheckpointFile::CheckpointFile(FileSystem& files, std::filesystem::path path,
                               const std::shared_ptr<Allocator>& allocator, const TableBlocks& blocks)
    : files_(files),
      path_(std::move(path)),
      header_(read_model_header(files, path_, blocks)),
      tensors_(files, path_, header_, allocator) {
  const std::string file = path_.string();
  const auto refuse = [&](const auto&... parts) { fail(TN_BAD_DATA, SubjectName{file}, file, ": ", parts...); };
  const auto version = header_.metadata.find(kVersion);
  if (version == header_.metadata.end())
    refuse("not a checkpoint: expected the metadata \"", kVersion, "\", got none",
           header_.topology.empty() ? "" : "; it is a model file");
  if (version->second != kCheckpointVersion && version->second != kFirstCheckpointVersion &&
      version->second != kCheckpointVersionOfCosts)
    refuse("metadata \"", kVersion, "\": expected version \"", kFirstCheckpointVersion, "\", \"", kCheckpointVersion,
           "\" or \"", kCheckpointVersionOfCosts, "\", got \"", version->second,
           "\": the checkpoint is of another version of Tenon");
  if (!header_.verified) refuse("the checkpoint has no checksum");
  record_ = record_of(record_name(0));
  run_ = parse("run", record_.run);
  topology_ = parse("topology", header_.topology);
}

CheckpointRecord CheckpointFile::record_of(const std::string& tensor) {
  const auto bytes = tensors_.read(tensor_of(tensor, "U8", nullptr));
  return decode({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path_.string(),
                header_.metadata.at(kVersion));
}

// Parses JSON of the file: bounded depth and size.
nlohmann::json CheckpointFile::parse(const char* what, const std::string& given) const {
  nlohmann::json json = bounded_json(given);
  if (!json.is_object())
    fail(TN_BAD_DATA, SubjectName{path_.string()}, path_.string(), ": damaged checkpoint: field \"", what,
         "\": expected a JSON object of at most ", kMostJsonLevels, " levels and ", kMostJsonValues, " values");
  return json;
}

const ModelTensor& CheckpointFile::tensor_of(const std::string& name, const char* type,
                                             const std::vector<int64_t>* shape) const {
  const ModelTensor* const tensor = tensors_.find(name);
  const auto refuse = [&](const auto&... parts) {
    fail(TN_BAD_DATA, SubjectName{path_.string()}, path_.string(), ": damaged checkpoint: tensor \"", name, "\"",
         parts...);
  };
  if (tensor == nullptr) refuse(" is missing");
  if (tensor->type != type || (shape != nullptr && tensor->shape != *shape))
    refuse(": expected ", type, shape == nullptr ? "" : " " + to_string(*shape), ", got ", tensor->type, " ",
           to_string(tensor->shape));
  return *tensor;
}

std::vector<Updater::StateValues> CheckpointFile::states() const {
  const std::string prefix = text(kCheckpointTensors, kState, "/");
  std::vector<Updater::StateValues> result;
  for (const ModelTensor& tensor : header_.tensors) {
    const size_t end = tensor.name.find('/', prefix.size());
    if (tensor.name.rfind(prefix, 0) != 0 || end == std::string::npos) continue;
    uint64_t count = 1;  // the header is checked: the product fits
    for (const int64_t dimension : tensor.shape) count *= static_cast<uint64_t>(dimension);
    result.push_back({tensor.name.substr(prefix.size(), end - prefix.size()), tensor.name.substr(end + 1), tensor.shape,
                      nullptr, count, tensor.dtype});
  }
  return result;
}

UpdaterProgress CheckpointFile::group(size_t number) {
  const CheckpointRecord record = record_of(record_name(number));
  return {record.steps, record.learning_rate};
}

std::optional<CheckpointRecord> CheckpointFile::best() {
  if (tensors_.find(best_record_name()) == nullptr) return std::nullopt;
  return record_of(best_record_name());
}

std::string CheckpointFile::changes() const {
  const auto entry = header_.metadata.find(kChanges);
  return entry == header_.metadata.end() ? "" : entry->second;
}

void CheckpointFile::read(const char* kind, const Updater::StateValues& state) {
  const std::vector<int64_t> shape = whole_shape(state);
  const ModelTensor& tensor = tensor_of(tensor_name(kind, state), element_type_name(state.dtype).c_str(), &shape);
  if (state.owned) return tensors_.read_rows(tensor, state.owned->blocks, static_cast<std::byte*>(state.values));
  const auto values = tensors_.read(tensor);
  if (values->size() != 0) std::memcpy(state.values, values->data(), values->size());
}

void CheckpointFile::load(ParameterSet& set) const { load_model(files_, path_, set, &header_); }

nlohmann::json without_names(nlohmann::json topology) {
  if (topology.contains("layers") && topology["layers"].is_array())
    for (nlohmann::json& layer : topology["layers"])
      if (layer.is_object())
        for (const char* key : {"names", "columns"}) layer.erase(key);
  return topology;
}

}  // namespace tenon::host
