// SPDX-License-Identifier: Apache-2.0
#include "core/files/model_parts.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "core/bounded_json.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/files/model_header.h"

namespace tenon::core {

namespace {

using Json = nlohmann::json;

// Reads the members of the JSON of ModelParts.
class PartsReader {
 public:
  explicit PartsReader(const std::string& file) : file_(file) {}

  [[nodiscard]] PartedTensor tensor(const Json& each) const {
    PartedTensor tensor;
    tensor.name = text_of(each, "name");
    tensor.place = static_cast<uint64_t>(number_of(member(each, "place"), "place"));
    const Json& shape = member(each, "shape");
    if (!shape.is_array() || shape.empty() || shape.size() > kMaxModelRank)
      bad("tensor ", quoted(tensor.name), ": shape is no list of 1 to ", kMaxModelRank, " numbers");
    for (const Json& dimension : shape) tensor.shape.push_back(number_of(dimension, "shape"));
    try {
      uint64_t bytes = sizeof(float);
      for (const int64_t dimension : tensor.shape)
        bytes = checked_multiply(bytes, static_cast<uint64_t>(dimension), "size in bytes");
    } catch (const Error& error) {
      bad("tensor ", quoted(tensor.name), ' ', base::to_string(tensor.shape), ": ", error.what());
    }
    return tensor;
  }
  [[nodiscard]] ModelPart part(const Json& each) const {
    ModelPart part;
    part.file = text_of(each, "file");
    part.checksum = text_of(each, "xxh3_128");
    const Json& blocks = member(each, "blocks");
    if (!blocks.is_array() || blocks.size() != 2) bad("part ", quoted(part.file), ": blocks is no list of 2 numbers");
    part.blocks = {number_of(blocks[0], "blocks"), number_of(blocks[1], "blocks")};
    if (part.blocks.first > kTableBlocks || part.blocks.count > kTableBlocks)
      bad("part ", quoted(part.file), ": blocks go beyond ", kTableBlocks);
    constexpr size_t kDigits = 32;
    if (part.checksum.size() != kDigits || part.checksum.find_first_not_of("0123456789abcdef") != std::string::npos)
      bad("part ", quoted(part.file), ": xxh3_128 is ", quoted(part.checksum), "; expected 32 hexadecimal digits");
    const std::filesystem::path path = part.file;
    const bool inside = std::none_of(path.begin(), path.end(), [](const auto& name) { return name == ".."; });
    if (part.file.empty() || path.is_absolute() || !inside)
      bad("part ", quoted(part.file), " is not below the folder of the file");
    return part;
  }
  [[nodiscard]] const Json& member(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) bad("there is no ", key);
    return object[key];
  }
  template <typename... Parts>
  [[noreturn]] void bad(const Parts&... parts) const {
    fail(TN_BAD_DATA, file_, ": metadata \"", kPartsKey, "\": ", parts...);
  }

 private:
  [[nodiscard]] std::string text_of(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_string()) bad(key, " is no text");
    return value;
  }
  [[nodiscard]] int64_t number_of(const Json& value, const char* key) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      bad(key, " is no whole number below 2^63");
    return value;
  }

  const std::string& file_;
};

}  // namespace

std::string parts_folder(const std::string& model) {
  const bool has_ending = model.ends_with(kModelEnding);
  return model.substr(0, model.size() - (has_ending ? std::strlen(kModelEnding) : 0)) + kPartsEnding;
}

std::string part_name(int64_t number, int64_t count) {
  char name[64];
  static_cast<void>(std::snprintf(name, sizeof name, "%03lld-of-%03lld.safetensors", static_cast<long long>(number),
                                  static_cast<long long>(count)));
  return name;
}

bool is_part_name(const std::string& name) {
  int number = 0, count = 0;
  // NOLINTNEXTLINE(cert-err34-c): three digits fit
  return std::sscanf(name.c_str(), "%3d-of-%3d.safetensors", &number, &count) == 2 && name == part_name(number, count);
}

std::string blocks_text(const TableBlocks& blocks) { return Json{blocks.first, blocks.count}.dump(); }

std::string parts_text(const ModelParts& parts) {
  Json files = Json::array(), tensors = Json::array();
  for (const ModelPart& part : parts.parts)
    files.push_back(
        {{"file", part.file}, {"blocks", {part.blocks.first, part.blocks.count}}, {"xxh3_128", part.checksum}});
  for (const PartedTensor& tensor : parts.tensors)
    tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}, {"place", tensor.place}});
  return Json{{"files", files}, {"tensors", tensors}}.dump();
}

ModelParts parts_of_text(const std::string& text, const std::string& file) {
  const PartsReader reader(file);
  const Json stored = bounded_json(text);
  ModelParts result;
  for (const Json& each : reader.member(stored, "tensors")) result.tensors.push_back(reader.tensor(each));
  for (const Json& each : reader.member(stored, "files")) result.parts.push_back(reader.part(each));
  for (size_t i = 1; i < result.tensors.size(); ++i)
    if (result.tensors[i].place <= result.tensors[i - 1].place) reader.bad("the places of tensors do not rise");
  int64_t end = 0;
  for (const ModelPart& part : result.parts) {
    if (part.blocks.first != end || part.blocks.count < 1 || part.blocks.count > kTableBlocks - end)
      reader.bad("part ", quoted(part.file), " has blocks ", part.blocks.first, " to ",
                 part.blocks.first + part.blocks.count - 1, "; expected blocks from ", end, " on");
    end += part.blocks.count;
  }
  if (end != kTableBlocks) reader.bad("the parts have ", end, " of ", kTableBlocks, " blocks");
  return result;
}

void RowCopy::take(uint64_t offset, const std::byte* data, uint64_t bytes) const {
  if (row_bytes_ == 0) return;
  while (bytes > 0) {
    const auto place = static_cast<int64_t>(offset / row_bytes_);
    const int64_t row = from_.row(place), block = row % kTableBlocks;
    // The rows from here to the next one that is the first, or the last but one, of those that both have.
    const int64_t common_begin = std::clamp(to_.first, from_.first, from_.first + from_.count);
    const int64_t common_end = std::clamp(to_.first + to_.count, common_begin, from_.first + from_.count);
    const bool common = block >= common_begin && block < common_end;
    int64_t end = from_.first + from_.count;
    if (common)
      end = common_end;
    else if (block < common_begin)
      end = common_begin;
    const uint64_t within = offset % row_bytes_;
    const uint64_t run = std::min(static_cast<uint64_t>(end - block) * row_bytes_ - within, bytes);
    if (common) std::memcpy(rows_ + static_cast<uint64_t>(to_.place(row)) * row_bytes_ + within, data, run);
    offset += run, data += run, bytes -= run;
  }
}

}  // namespace tenon::core
