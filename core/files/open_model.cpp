// SPDX-License-Identifier: Apache-2.0
#include "core/files/open_model.h"

#include <bit>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "core/files/model_header.h"
#include "core/shape.h"

namespace tenon::core {

namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

constexpr const char* kFormerChecksum = "tenon.sha256";

// Takes the tensors that lie in parts among those of the file, each at its place.
void take_parts(OpenModel& model, const std::string& text) {
  ModelFile& file = model.file;
  try {
    ModelParts stored = parts_of_text(text, model.name);
    const size_t count = file.tensors.size() + stored.tensors.size();
    if (count > kMaxModelTensors) fail(TN_BAD_DATA, model.name, ": more than ", kMaxModelTensors, " tensors");
    std::set<std::string> names;
    for (const ModelTensor& tensor : file.tensors) names.insert(tensor.name);
    std::vector<ModelTensor> own = std::exchange(file.tensors, {});
    auto next = own.begin();
    for (PartedTensor& parted : stored.tensors) {
      const auto refuse = [&](const auto&... parts) {
        fail(TN_BAD_DATA, model.name, ": metadata \"", kPartsKey, "\": tensor ", quoted(parted.name), parts...);
      };
      if (!names.insert(parted.name).second) refuse(" is given twice");
      while (file.tensors.size() < parted.place && next != own.end()) file.tensors.push_back(std::move(*next++));
      if (file.tensors.size() != parted.place) refuse(" has place ", parted.place, " of ", count, " tensors");
      ModelTensor tensor{std::move(parted.name), "F32", TN_F32, std::move(parted.shape), 0, 0, true};
      tensor.bytes = element_bytes({TN_F32, tensor.shape});
      file.tensors.push_back(std::move(tensor));
    }
    std::move(next, own.end(), std::back_inserter(file.tensors));
    file.parts = std::move(stored.parts);
  } catch (const Error& error) {
    throw Error(TN_BAD_DATA, error.message(), error.component(), model.path);
  }
}

// Moves checksum, topology and parts out of the metadata, and hashes the header if there is a checksum.
void interpret(OpenModel& model, ModelHeader header) {
  ModelFile& file = model.file;
  if (!header.metadata.contains(kChecksum) && header.metadata.contains(kFormerChecksum)) {
    model.checksum = kFormerChecksum;
    model.hash = Checksum::sha256();
  }
  const auto checksum = header.metadata.find(model.checksum);
  if (checksum != header.metadata.end()) {
    file.checksum = checksum->second;
    header.metadata.erase(checksum);
    if (file.checksum.empty())
      fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": ", model.checksum, " is empty");
    const std::string canonical = canonical_json(header);
    model.hash.update(canonical.data(), canonical.size());
  } else if (const auto format = header.metadata.find(kFormat);
             format != header.metadata.end() && format->second == kOurs) {
    fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": metadata says format \"", kOurs, "\" but there is no ",
         kChecksum);
  }
  if (const auto topology = header.metadata.find(kTopology); topology != header.metadata.end()) {
    file.topology = std::move(topology->second);
    header.metadata.erase(topology);
  }
  file.tensors = std::move(header.tensors);
  if (const auto parts = header.metadata.find(kPartsKey); parts != header.metadata.end()) {
    take_parts(model, parts->second);
    header.metadata.erase(parts);
  }
  file.metadata = std::move(header.metadata);
}

ModelHeader parse_header(const OpenModel& model, const std::string& json) try {
  return parse_model_header(json, model.data_bytes, model.name);
} catch (const Error& error) {
  throw Error(error.code(), error.message(), error.component(), model.path);
}

// Returns the format of a file by its first bytes; "" for a model file and for unknown ones.
std::string_view other_format(std::string_view beginning) {
  using std::literals::operator""sv;
  constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
      {"{"sv, "JSON"sv},
      {"PK\3\4"sv, "a ZIP archive, as torch.save and numpy.savez write"sv},
      {"\x80"sv, "a pickle of Python, as joblib and old versions of torch.save write"sv},
      {"\x89HDF"sv, "HDF5, as Keras writes"sv},
      {"\x1f\x8b"sv, "compressed by gzip"sv},
      {"\x08"sv, "a protocol buffer, as ONNX is"sv}};
  const auto* const format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                          [&](const auto& each) { return beginning.starts_with(each.first); });
  if (format != std::end(kFormats)) return format->second;
  const auto is_text = [](char letter) {
    return (letter >= ' ' && letter < 0x7f) || (letter >= '\t' && letter <= '\r');
  };
  return std::all_of(beginning.begin(), beginning.end(), is_text) ? "text"sv : ""sv;
}

}  // namespace

OpenModel open_model(FileSystem& files, const std::filesystem::path& path) {
  OpenModel model;
  model.path = path.string();
  model.name = quoted(path.string());
  model.input = files.open(path);
  const uint64_t size = model.input->size();
  unsigned char prefix[8] = {};
  if (size < sizeof prefix)
    fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": ", size,
         " bytes; a model file begins with the 8 bytes of its header's length");
  model.input->read(0, prefix, sizeof prefix);
  uint64_t length = 0;
  for (size_t i = sizeof prefix; i-- > 0;) length = length << 8 | prefix[i];
  if (length > kMaxModelHeader) {
    const std::string_view format = other_format({reinterpret_cast<const char*>(prefix), sizeof prefix});
    if (!format.empty()) fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": not a model file: it is ", format);
    fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": not a model file, or damaged: its header would have ",
         length, " bytes; at most ", kMaxModelHeader, " are allowed");
  }
  if (length > size - sizeof prefix)
    fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": the header has ", length, " bytes; the file holds ",
         size - sizeof prefix, " after the length");
  std::string json(length, '\0');
  model.input->read(sizeof prefix, json.data(), length);
  model.data_begin = sizeof prefix + length;
  model.data_bytes = size - model.data_begin;
  interpret(model, parse_header(model, json));
  return model;
}

OpenModel open_part(FileSystem& files, const std::filesystem::path& model, const ModelFile& file,
                    const ModelPart& part) {
  const std::string model_name = quoted(model.string());
  const auto refuse = [&](const auto&... parts) {
    fail(TN_BAD_DATA, SubjectName{model.string()}, model_name, ": part ", quoted(part.file), parts...);
  };
  OpenModel opened;
  try {
    opened = open_model(files, model.parent_path() / part.file);
  } catch (const Error& error) {
    if (error.code() == TN_NOT_FOUND) refuse(", which has rows of its tables, is missing");
    throw error.with_context(text(model_name, ": part ", quoted(part.file)));
  }
  if (opened.file.checksum != part.checksum)
    refuse(" is that of another save: its checksum is ", quoted(opened.file.checksum), ", expected ",
           quoted(part.checksum));
  if (!opened.file.parts.empty()) refuse(" has parts itself");
  const auto blocks = opened.file.metadata.find(kPartKey);
  if (blocks == opened.file.metadata.end() || blocks->second != blocks_text(part.blocks))
    refuse(" does not have blocks ", blocks_text(part.blocks));
  opened.blocks = part.blocks;
  std::map<std::string, const ModelTensor*> expected;
  for (const ModelTensor& tensor : file.tensors)
    if (tensor.in_parts) expected.emplace(tensor.name, &tensor);
  for (const ModelTensor& tensor : opened.file.tensors) {
    const auto table = expected.find(tensor.name);
    if (table == expected.end()) refuse(" has a tensor ", quoted(tensor.name), ", which is none of its tables");
    std::vector<int64_t> shape = table->second->shape;
    shape[0] = part.blocks.rows(shape[0]);
    if (tensor.dtype != TN_F32 || tensor.shape != shape)
      refuse(": tensor ", quoted(tensor.name), " is ", tensor.type, " ", to_string(tensor.shape), ", expected F32 ",
             to_string(shape));
    expected.erase(table);
  }
  if (!expected.empty()) refuse(" lacks tensor ", quoted(expected.begin()->first));
  return opened;
}

OpenModel open_again(FileSystem& files, const std::filesystem::path& path, const ModelFile& header) {
  OpenModel model = open_model(files, path);
  if (model.file.tensors != header.tensors || model.file.checksum != header.checksum) model.fail_changed();
  return model;
}

std::vector<ModelPart> parts_of_model(FileSystem& files, const std::filesystem::path& path) {
  return open_model(files, path).file.parts;
}

std::vector<OpenModel> open_parts(FileSystem& files, const std::filesystem::path& model, const ModelFile& file,
                                  const TableBlocks& blocks) {
  std::vector<OpenModel> opened;
  for (const ModelPart& part : file.parts)
    if (overlap(part.blocks, blocks)) opened.push_back(open_part(files, model, file, part));
  return opened;
}

const ModelTensor& OpenModel::tensor(const std::string& tensor_name) const {
  return *std::find_if(file.tensors.begin(), file.tensors.end(),
                       [&](const ModelTensor& each) { return each.name == tensor_name; });
}

void OpenModel::skip(uint64_t offset, uint64_t bytes) {
  std::string chunk(std::min(kChunk, bytes), '\0');
  read(
      offset, bytes, [&](uint64_t) { return chunk.data(); }, [](uint64_t, uint64_t) {});
}

void OpenModel::verify() {
  if (file.checksum.empty()) return;
  const std::string actual = hash.finish();
  if (file.checksum != actual)
    fail(TN_BAD_DATA, SubjectName{path}, name, ": damaged: ", checksum, " is ", quoted(file.checksum),
         ", the content has \"", actual, "\"");
  file.verified = true;
}

void OpenModel::fail_changed() const {
  fail(TN_BAD_DATA, SubjectName{path}, name, ": the file has changed since it was first read");
}

}  // namespace tenon::core
