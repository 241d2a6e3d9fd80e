// Model files as one file, and in parts. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/nearest.h"
#include "base/utf8.h"
#include "core/files/model_file.h"
#include "core/files/model_header.h"
#include "core/files/model_writer.h"
#include "core/files/open_model.h"
#include "core/folder.h"
#include "core/shape.h"

namespace tenon::core {

namespace {

namespace fs = std::filesystem;

// An open model whose data was verified, with all of its parts.
struct Source {
  OpenModel model;
  std::vector<OpenModel> parts;
};

Source open_source(FileSystem& files, const fs::path& path) {
  const ModelFile verified = read_model_header(files, path);
  return {open_again(files, path, verified), open_parts(files, path, verified, {})};
}

// Calls take with the rows of `blocks` of a tensor, in their order, a few groups of kTableBlocks rows at a time.
void read_rows(const Source& source, const ModelTensor& tensor, const TableBlocks& blocks, const TakeBytes& take) {
  const int64_t height = tensor.shape[0];
  if (tensor.bytes == 0) return;
  const uint64_t row = tensor.bytes / static_cast<uint64_t>(height);
  const int64_t most =
      kTableBlocks * std::max<int64_t>(static_cast<int64_t>((uint64_t{1} << 20) / row) / kTableBlocks, 1);
  std::vector<std::byte> rows, part;
  for (int64_t first = 0; first < height; first += most) {
    const int64_t count = std::min(most, height - first);  // rows of the table, which begin with a group
    rows.resize(static_cast<uint64_t>(blocks.rows(count)) * row);
    const auto copy = [&](const OpenModel& from, const ModelTensor& stored) {
      part.resize(static_cast<uint64_t>(from.blocks.rows(count)) * row);
      const uint64_t begin = static_cast<uint64_t>(from.blocks.rows(first)) * row;
      from.input->read(from.data_begin + stored.offset + begin, part.data(), part.size());
      RowCopy(from.blocks, blocks, row, rows.data()).take(0, part.data(), part.size());
    };
    if (!tensor.in_parts) copy(source.model, tensor);
    for (const OpenModel& each : source.parts)
      if (tensor.in_parts && overlap(each.blocks, blocks)) copy(each, each.tensor(tensor.name));
    take(rows.data(), rows.size());
  }
}

// A tensor to be written with all of its rows. Borrows both.
TensorToWrite with_all_rows(const Source& source, const ModelTensor& tensor) {
  ModelTensor written = tensor;
  written.in_parts = false;
  return {written, [&](const TakeBytes& take) {
            if (tensor.in_parts) return read_rows(source, tensor, {}, take);
            source.model.read_chunks(tensor,
                                     [&](uint64_t, const std::byte* data, uint64_t bytes) { take(data, bytes); });
          }};
}

std::map<std::string, std::string> metadata_of(const ModelFile& file) {
  std::map<std::string, std::string> metadata = file.metadata;
  if (!file.topology.empty()) metadata[kTopology] = file.topology;
  return metadata;
}

// Whether a tensor is a table, or a state of one: "tenon.checkpoint/state/moment/items.weight".
bool is_of_table(const ModelTensor& tensor, const ModelTensor& table) {
  if (tensor.name == table.name) return true;
  return tensor.name.rfind(kCheckpointTensors, 0) == 0 && tensor.name.ends_with("/" + table.name) &&
         tensor.dtype == TN_F32 && !tensor.shape.empty() && tensor.shape[0] == table.shape[0];
}

// Returns the tensors that are to lie in parts, by their places.
std::vector<PartedTensor> parted(const OpenModel& model, const std::vector<std::string>& tables) {
  std::vector<const ModelTensor*> chosen;
  std::vector<std::string> names;
  for (const ModelTensor& tensor : model.file.tensors) names.push_back(tensor.name);
  for (const std::string& table : tables) {
    const auto at = std::find(names.begin(), names.end(), table);
    if (at == names.end())
      fail(TN_NOT_FOUND, SubjectName{table}, model.name, ": there is no tensor ", quoted(table),
           base::suggestion(table, names));
    const ModelTensor& tensor = model.file.tensors[static_cast<size_t>(at - names.begin())];
    if (tensor.dtype != TN_F32 || tensor.shape.empty())
      fail(TN_INVALID, SubjectName{table}, model.name, ": tensor ", quoted(table), " is ", tensor.type, " ",
           to_string(tensor.shape), "; expected rows of F32");
    chosen.push_back(&tensor);
  }
  std::vector<PartedTensor> result;
  for (size_t i = 0; i < names.size(); ++i) {
    const ModelTensor& tensor = model.file.tensors[i];
    if (std::any_of(chosen.begin(), chosen.end(), [&](const ModelTensor* each) { return is_of_table(tensor, *each); }))
      result.push_back({tensor.name, tensor.shape, i});
  }
  return result;
}

// Writes the model file and its parts, which lie in the folder `name` beside it.
void write_split(FileSystem& files, const Source& source, const fs::path& to, const std::string& name, ModelParts parts,
                 int64_t count) {
  const fs::path folder = fs::absolute(to).parent_path();
  const auto& tensors = source.model.file.tensors;
  for (int64_t number = 0; number < count; ++number) {
    const TableBlocks blocks = blocks_of(count, number);
    std::vector<TensorToWrite> rows;
    for (const PartedTensor& table : parts.tensors) {
      const ModelTensor& tensor = tensors[table.place];
      ModelTensor part = {tensor.name, "F32", TN_F32, tensor.shape};
      part.shape[0] = blocks.rows(part.shape[0]);
      part.bytes = element_bytes({TN_F32, part.shape});
      rows.push_back(
          {part, [&source, &tensor, blocks](const TakeBytes& take) { read_rows(source, tensor, blocks, take); }});
    }
    const std::string file = name + '/' + part_name(number, count);
    parts.parts.push_back(
        {file, blocks, write_tensors(files, folder / file, {{kPartKey, blocks_text(blocks)}}, std::move(rows))});
  }
  std::vector<TensorToWrite> others;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ModelTensor& tensor = tensors[i];
    const auto place_of = [&](const PartedTensor& each) { return each.place == i; };
    if (std::any_of(parts.tensors.begin(), parts.tensors.end(), place_of)) continue;
    others.push_back(with_all_rows(source, tensor));
  }
  std::map<std::string, std::string> metadata = metadata_of(source.model.file);
  metadata[kPartsKey] = parts_text(parts);
  write_tensors(files, to, metadata, std::move(others));
}

}  // namespace

void join_model(FileSystem& files, const fs::path& from, const fs::path& to) {
  const Source source = open_source(files, from);
  std::vector<TensorToWrite> tensors;
  for (const ModelTensor& tensor : source.model.file.tensors) tensors.push_back(with_all_rows(source, tensor));
  write_tensors(files, to, metadata_of(source.model.file), std::move(tensors));
}

void split_model(FileSystem& files, const fs::path& from, const fs::path& to, const std::vector<std::string>& tables,
                 int64_t count) {
  if (count < 1 || count > kTableBlocks)
    fail(TN_INVALID, SubjectName{"parts"}, "parts is ", count, "; expected 1 to ", kTableBlocks);
  const Source source = open_source(files, from);
  ModelParts parts{parted(source.model, tables), {}};
  if (parts.tensors.empty()) fail(TN_INVALID, SubjectName{"tables"}, "there are no tables to divide");
  const std::string file_name = to.filename().string();
  if (!base::is_utf8(file_name))
    fail(TN_INVALID, SubjectName{to.string()}, to.string(),
         ": the name is not UTF-8, in which the file names its parts");
  const fs::path folder = fs::absolute(to).parent_path();
  const std::string name = make_new_folder(folder, parts_folder(file_name));
  try {
    write_split(files, source, to, name, std::move(parts), count);
  } catch (...) {
    std::error_code ignored;
    for (int64_t number = 0; number < count; ++number) fs::remove(folder / name / part_name(number, count), ignored);
    fs::remove(folder / name, ignored);
    throw;
  }
}

}  // namespace tenon::core
