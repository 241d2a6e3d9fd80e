// SPDX-License-Identifier: Apache-2.0
#include "weights/tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/files.h"
#include "base/text.h"

namespace tenon::weights {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uintmax_t kMostIndexBytes = 100'000'000;  // as a header of safetensors

[[noreturn]] void bad(const std::string& file, const std::string& reason) {
  throw Error(TN_BAD_DATA, "\"" + file + "\": " + reason, {}, file);
}

// Sets the files and places of the tensors that a file has itself: they lie behind its header without gaps.
void locate(const std::string& path, const std::vector<StoredTensor*>& tensors) {
  uint64_t end = 0;
  for (StoredTensor* const tensor : tensors) {
    tensor->file = path, tensor->offset = end;
    end += tensor->bytes;
  }
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error || size < end) bad(path, "the file has changed while it was read");
  for (StoredTensor* const tensor : tensors) tensor->offset += size - end;
}

StoredTensor tensor_of(const json& described) {
  StoredTensor tensor;
  tensor.name = described.at("name").get<std::string>();
  tensor.type = described.at("dtype").get<std::string>();
  tensor.shape = described.at("shape").get<Sizes>();
  tensor.bytes = described.at("bytes").get<uint64_t>();
  return tensor;
}

// Adds to the tensors of a model whose rows lie in a part where they are there.
void add_part(const Host& host, const std::string& file, const json& part, TensorFile& model) {
  const json described = json::parse(host.describe_model(file));
  std::vector<StoredTensor> rows;
  for (const json& each : described.at("tensors")) rows.push_back(tensor_of(each));
  std::vector<StoredTensor*> own;
  for (StoredTensor& each : rows) own.push_back(&each);
  locate(file, own);
  for (const StoredTensor& each : rows)
    for (StoredTensor& tensor : model.tensors)
      if (tensor.name == each.name)
        tensor.parts.push_back({file, each.offset, each.bytes, part.at("first_block"), part.at("blocks")});
}

// Reads a file of safetensors, whose header, and those of its parts, the library checks.
TensorFile read_file(const Host& host, const std::string& path) {
  const json model = json::parse(host.describe_model(path));
  TensorFile result;
  result.has_topology = model.at("topology").is_object();
  for (const auto& [key, value] : model.at("metadata").items())
    result.metadata[key] = value.is_string() ? value.get<std::string>() : value.dump();
  for (const json& each : model.at("tensors")) result.tensors.push_back(tensor_of(each));
  std::vector<StoredTensor*> own;
  for (size_t i = 0; i < result.tensors.size(); ++i)
    if (!model.at("tensors")[i].contains("in_parts")) own.push_back(&result.tensors[i]);
  locate(path, own);
  for (const json& part : model.value("parts", json::array()))
    add_part(host, (fs::path(path).parent_path() / part.at("file").get<std::string>()).string(), part, result);
  return result;
}

// Returns the shard of each tensor.
std::map<std::string, std::string> read_index(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) throw Error(TN_NOT_FOUND, "\"" + path + "\": there is no such file", {}, path);
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMostIndexBytes)
    bad(path, "is not an index of shards: expected a regular file of at most 100000000 bytes");
  std::ifstream file(path);
  const json index = json::parse(file, nullptr, false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    bad(path, "is not an index of shards: expected JSON with an object \"weight_map\" of {tensor: file}");
  std::map<std::string, std::string> result;
  for (const auto& [name, shard] : index["weight_map"].items()) {
    // A file beside the index and no other: an index that was downloaded must not open files elsewhere.
    const std::string beside = shard.is_string() ? shard.get<std::string>() : "";
    if (beside.empty() || beside == "." || beside == ".." || beside.find('/') != std::string::npos)
      bad(path, "weight_map: tensor \"" + name + "\": expected the name of a file in the same folder, got " +
                    shard.dump(-1, ' ', false, json::error_handler_t::replace));
    result.emplace(name, beside);
  }
  return result;
}

// Each tensor is taken from the shard that the index names; others of that name are left out.
TensorFile read_shards(const Host& host, const std::string& path) {
  const std::map<std::string, std::string> shard_of = read_index(path);
  std::map<std::string, std::vector<std::string>> expected;  // tensors by shard
  for (const auto& [name, shard] : shard_of) expected[shard].push_back(name);
  TensorFile result;
  for (auto& [shard, names] : expected) {
    const TensorFile part = read_file(host, (base::folder_of(path) / shard).string());
    if (result.metadata.empty()) result.metadata = part.metadata;
    for (const StoredTensor& tensor : part.tensors) {
      const auto shard_here = shard_of.find(tensor.name);
      if (shard_here != shard_of.end() && shard_here->second != shard) continue;
      std::erase(names, tensor.name);
      result.tensors.push_back(tensor);
    }
    if (!names.empty()) bad(path, "weight_map: not in \"" + shard + "\": " + base::listed(names));
  }
  return result;
}

// IEEE 754 half precision.
float half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 31)
    return std::bit_cast<float>(static_cast<uint32_t>(bits & 0x8000) << 16 | 0x7f800000U |
                                static_cast<uint32_t>(fraction) << 13);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

// Converts the numbers of a type, which lie one after another in `bytes`.
template <typename Number, typename Convert>
std::vector<float> numbers(const std::string& bytes, const Convert& convert) {
  std::vector<float> result(bytes.size() / sizeof(Number));
  for (size_t i = 0; i < result.size(); ++i) {
    Number number;
    std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
    result[i] = convert(number);
  }
  return result;
}

}  // namespace

bool TensorFile::of_pytorch() const {
  const auto format = metadata.find("format");
  return !has_topology && format != metadata.end() && format->second == "pt";
}

TensorFile read_tensors(const Host& host, const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const fs::path index = fs::path(path) / "model.safetensors.index.json";
    return fs::exists(index, error) ? read_shards(host, index.string())
                                    : read_file(host, (fs::path(path) / "model.safetensors").string());
  }
  return path.ends_with(".json") ? read_shards(host, path) : read_file(host, path);
}

namespace {

std::string read_part(const std::string& name, const std::string& path, uint64_t offset, uint64_t count) {
  std::string bytes(count, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  if (!file) bad(path, "tensor \"" + name + "\": cannot be read: the file has changed, or the disk fails");
  return bytes;
}

}  // namespace

std::string read_bytes(const StoredTensor& tensor) {
  if (tensor.parts.empty()) return read_part(tensor.name, tensor.file, tensor.offset, tensor.bytes);
  constexpr int64_t kBlocks = 256;
  std::string bytes(tensor.bytes, '\0');
  if (bytes.empty()) return bytes;
  const uint64_t row = tensor.bytes / static_cast<uint64_t>(tensor.shape.at(0));
  for (const PartOfRows& part : tensor.parts) {
    const std::string rows = read_part(tensor.name, part.file, part.offset, part.bytes);
    for (uint64_t at = 0; at < rows.size(); at += row) {
      const auto place = static_cast<int64_t>(at / row);
      const int64_t number = place / part.count * kBlocks + part.first + place % part.count;
      std::copy_n(rows.data() + at, row, bytes.data() + static_cast<uint64_t>(number) * row);
    }
  }
  return bytes;
}

std::vector<float> read_values(const StoredTensor& tensor) {
  const auto plain = [](auto number) { return static_cast<float>(number); };
  const auto bfloat16 = [](uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); };
  using Read = std::vector<float> (*)(const std::string&, const decltype(plain)&);
  static const std::map<std::string, Read> plain_types = {
      {"F32", numbers<float, decltype(plain)>},    {"F64", numbers<double, decltype(plain)>},
      {"I8", numbers<int8_t, decltype(plain)>},    {"I16", numbers<int16_t, decltype(plain)>},
      {"I32", numbers<int32_t, decltype(plain)>},  {"I64", numbers<int64_t, decltype(plain)>},
      {"U8", numbers<uint8_t, decltype(plain)>},   {"U16", numbers<uint16_t, decltype(plain)>},
      {"U32", numbers<uint32_t, decltype(plain)>}, {"BOOL", numbers<uint8_t, decltype(plain)>}};
  if (tensor.type == "F16") return numbers<uint16_t>(read_bytes(tensor), half);
  if (tensor.type == "BF16") return numbers<uint16_t>(read_bytes(tensor), bfloat16);
  const auto read = plain_types.find(tensor.type);
  if (read == plain_types.end())
    bad(tensor.file,
        "tensor \"" + tensor.name + "\" has the type " + tensor.type + ", which Tenon does not compute with");
  return read->second(read_bytes(tensor), plain);
}

}  // namespace tenon::weights
