// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/checked.h"
#include "core/files/checksum.h"
#include "core/files/model_file.h"
#include "core/files/model_header.h"
#include "core/files/model_writer.h"
#include "core/files/open_model.h"
#include "core/shape.h"

namespace tenon::core {

namespace {

// Calls take with the rows of a table in their order.
void read_table(const ParameterEntry& table, uint64_t bytes, const RowReader& rows, const TakeBytes& take) {
  constexpr uint64_t kPartBytes = uint64_t{1} << 22;
  if (bytes == 0) return;
  const uint64_t row = bytes / static_cast<uint64_t>(table.shape[0]);
  const auto most = static_cast<int64_t>(std::max<uint64_t>(kPartBytes / row, 1));
  std::vector<float> part;
  for (int64_t first = 0; first < table.shape[0]; first += most) {
    const int64_t count = std::min(most, table.shape[0] - first);
    part.resize(static_cast<uint64_t>(count) * row / sizeof(float));
    rows(table, first, count, part.data());
    take(part.data(), part.size() * sizeof(float));
  }
}

TensorToWrite in_memory(ModelTensor tensor, const void* values) {
  const uint64_t bytes = tensor.bytes;
  return {std::move(tensor), [=](const TakeBytes& take) { take(values, bytes); }};
}

// Returns which entries of the set have these names.
std::vector<bool> marked(const ParameterSet& set, const std::vector<std::string>& names) {
  std::vector<bool> marks(set.entries().size());
  for (const std::string& name : names) {
    const size_t index = set.index(name);
    if (marks[index]) fail(TN_INVALID, SubjectName{name}, "duplicate parameter ", quoted(name), " to be saved");
    marks[index] = true;
  }
  return marks;
}

void check_length(const std::filesystem::path& path, uint64_t length) {
  if (length > kMaxModelHeader)
    fail(TN_INVALID, SubjectName{path.string()}, quoted(path.string()), ": the header would have ", length,
         " bytes; at most ", kMaxModelHeader, " are allowed");
}

}  // namespace

std::string write_tensors(FileSystem& files, const std::filesystem::path& path,
                          const std::map<std::string, std::string>& metadata, std::vector<TensorToWrite> tensors) {
  if (tensors.size() > kMaxModelTensors)
    fail(TN_INVALID, SubjectName{path.string()}, quoted(path.string()), ": ", tensors.size(), " tensors; at most ",
         kMaxModelTensors, " are allowed");
  ModelHeader header{metadata, {}};
  header.metadata[kFormat] = kOurs;
  uint64_t end = 0;
  for (TensorToWrite& each : tensors) {
    each.tensor.offset = end;
    end = checked_add(end, each.tensor.bytes, "size of the model");
    header.tensors.push_back(each.tensor);
  }
  Checksum hash = Checksum::xxh3();
  const std::string canonical = canonical_json(header);
  hash.update(canonical.data(), canonical.size());
  for (const TensorToWrite& each : tensors)
    each.read_values([&](const void* data, uint64_t bytes) { hash.update(data, bytes); });
  std::string checksum = hash.finish();
  header.metadata[kChecksum] = checksum;

  std::string json = canonical_json(header);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  check_length(path, json.size());
  unsigned char prefix[8];
  for (size_t i = 0; i < sizeof prefix; ++i) prefix[i] = static_cast<unsigned char>(json.size() >> (8 * i));
  const std::unique_ptr<FileSystem::Output> output = files.replace(path);
  output->write(prefix, sizeof prefix);
  output->write(json.data(), json.size());
  for (const TensorToWrite& each : tensors)
    each.read_values([&](const void* data, uint64_t bytes) {
      if (bytes != 0) output->write(data, bytes);
    });
  output->commit();
  return checksum;
}

std::string write_model(FileSystem& files, const std::filesystem::path& path, const std::string& topology_json,
                        const ParameterSet& set, const std::vector<std::string>& names, const CheckpointParts& parts,
                        const RowReader& rows) {
  const std::vector<bool> is_written = marked(set, names);
  check_length(path, topology_json.size());
  std::map<std::string, std::string> metadata = set.metadata();
  for (const auto& [key, value] : parts.metadata) metadata[key] = value;
  if (!topology_json.empty()) metadata[kTopology] = topology_json;
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < is_written.size(); ++i) {
    if (!is_written[i]) continue;
    const ParameterEntry& entry = set.entries()[i];
    if (entry.name.rfind(kCheckpointTensors, 0) == 0)
      fail(TN_INVALID, SubjectName{entry.name}, "parameter ", quoted(entry.name), ": names that begin with ",
           quoted(kCheckpointTensors), " are those of checkpoints");
    const uint64_t bytes = element_bytes({entry.dtype, entry.shape});
    const ModelTensor tensor{entry.name, "F32", entry.dtype, entry.shape, 0, bytes};
    if (entry.table && rows)
      tensors.push_back(
          {tensor, [&entry, bytes, &rows](const TakeBytes& take) { read_table(entry, bytes, rows, take); }});
    else
      tensors.push_back(in_memory(tensor, set.values(entry)));
  }
  for (const CheckpointTensor& part : parts.tensors)
    tensors.push_back(in_memory({part.name, part.type, TN_COMPUTE, part.shape, 0, part.bytes}, part.values));
  return write_tensors(files, path, metadata, std::move(tensors));
}

}  // namespace tenon::core
