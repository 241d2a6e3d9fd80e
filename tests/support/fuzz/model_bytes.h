// Model files as parts, for fuzz tests: header, topology and values, damaged one at a time, with the checksum that
// fits. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/xxh3.h"
#include "tests/support/fuzz/mutations.h"
#include "tests/support/fuzz/source_files.h"

namespace tenon_tests {

inline constexpr size_t kModelLength = 8;  // bytes before the header

inline size_t model_header_end(const std::string& file) {
  uint64_t length = 0;
  for (size_t i = 0; i < kModelLength; ++i) length |= uint64_t{static_cast<unsigned char>(file.at(i))} << (8 * i);
  return kModelLength + length;
}
inline std::string model_header(const std::string& file) {
  return file.substr(kModelLength, model_header_end(file) - kModelLength);
}
inline std::string model_file(const std::string& header, const std::string& data) {
  std::string file;
  for (size_t i = 0; i < kModelLength; ++i) file += static_cast<char>(uint64_t{header.size()} >> (8 * i));
  return file + header + data;
}

// A model file of this header and data that states its checksum.
inline std::string checked_model(nlohmann::json header, const std::string& data) {
  if (!header.is_object()) return model_file(json_text(header), data);
  nlohmann::json& metadata = header["__metadata__"];
  if (metadata.is_object()) {
    metadata.erase("tenon.sha256");
    metadata.erase("tenon.xxh3_128");
    tenon::base::Xxh3 hash;
    const std::string canonical = json_text(header);
    hash.update(canonical.data(), canonical.size());
    hash.update(data.data(), data.size());
    metadata["tenon.xxh3_128"] = hash.finish();
  }
  return model_file(json_text(header), data);
}

inline nlohmann::json topology_of(const nlohmann::json& header) {
  return nlohmann::json::parse(header.at("__metadata__").at("tenon.topology").get<std::string>());
}

// A model file damaged in one of its parts. Behind the damage all but the first kind are files that fit together, as
// one writes them who wants to reach what reads them.
inline std::string damaged_model(Draw& draw, const std::vector<std::string>& files) {
  const std::string &file = draw.one_of(files), &other = draw.one_of(files);
  std::string data = file.substr(model_header_end(file));
  nlohmann::json header = nlohmann::json::parse(model_header(file));
  nlohmann::json& metadata = header.at("__metadata__");
  switch (draw.below(8)) {
    case 0:
      return mutated_bytes(draw, file, other);
    case 1:  // a header of any text, of a program that states no checksum
      metadata.erase("tenon.sha256");
      metadata.erase("tenon.xxh3_128");
      metadata["format"] = "other";
      return model_file(mutated_text(draw, json_text(header), model_header(other)), data);
    case 2:
      metadata["tenon.topology"] = mutated_text(draw, metadata.at("tenon.topology"), model_header(other));
      return checked_model(header, data);
    case 3:
      mutate_json(draw, header);
      return checked_model(header, data);
    case 4:
      data = mutated_bytes(draw, data, other);
      return checked_model(header, data);
    default: {
      nlohmann::json topology = topology_of(header);
      mutate_json(draw, topology);
      metadata["tenon.topology"] = json_text(topology);
      return checked_model(header, data);
    }
  }
}

inline constexpr const char* kCheckpointRecord = "tenon.checkpoint/record";

// The span of a tensor in the data of a model file.
inline std::pair<size_t, size_t> tensor_span(const nlohmann::json& header, const std::string& tensor) {
  const nlohmann::json& offsets = header.at(tensor).at("data_offsets");
  return {offsets.at(0).get<size_t>(), offsets.at(1).get<size_t>()};
}

inline std::string checkpoint_record(const std::string& file) {
  const auto [begin, end] = tensor_span(nlohmann::json::parse(model_header(file)), kCheckpointRecord);
  return file.substr(model_header_end(file) + begin, end - begin);
}
// A checkpoint with another record, of the length that the header then states.
inline std::string with_record(const std::string& file, const std::string& record) {
  nlohmann::json header = nlohmann::json::parse(model_header(file));
  std::string data = file.substr(model_header_end(file));
  const auto [begin, end] = tensor_span(header, kCheckpointRecord);
  const auto more = static_cast<int64_t>(record.size()) - static_cast<int64_t>(end - begin);
  data.replace(begin, end - begin, record);
  for (auto& [name, tensor] : header.items())
    if (tensor.contains("data_offsets"))
      for (nlohmann::json& offset : tensor.at("data_offsets"))
        if (offset.get<size_t>() >= end && (name == kCheckpointRecord || offset.get<size_t>() > begin))
          offset = offset.get<int64_t>() + more;
  header.at(kCheckpointRecord)["shape"] = nlohmann::json::array({record.size()});
  return checked_model(header, data);
}
inline std::string damaged_record(Draw& draw, const std::vector<std::string>& files) {
  const std::string& file = draw.one_of(files);
  const std::string record = checkpoint_record(file);
  const size_t text = record.find('}') + 1;  // the record begins with a text of JSON
  std::string changed = draw.once_in(2) ? mutated_bytes(draw, record, draw.one_of(files))
                                        : record.substr(0, text) + mutated_bytes(draw, record.substr(text), record);
  if (draw.once_in(2)) changed.resize(record.size());
  return with_record(file, changed);
}

}  // namespace tenon_tests
