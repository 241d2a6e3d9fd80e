// Model files: topology and parameters in one safetensors file. The format, and what a reader refuses, is specified
// in docs/model-file.md; the limits below are its only constants. Files are hostile input: every length is checked
// before it is used, and errors (TN_BAD_DATA) name the file, the tensor and what was expected.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/parameter_set.h"
#include "core/seams.h"

namespace tenon {

constexpr uint64_t kMaxModelHeader = 100'000'000;  // bytes of JSON
constexpr size_t kMaxModelRank = 64;
constexpr size_t kMaxModelMetadata = 65'536;  // entries

struct ModelTensor {
  std::string name;
  std::string type;             // as the file says it: "F32"
  tn_dtype dtype = TN_COMPUTE;  // TN_COMPUTE where the file's type is none of ours ("F8_E4M3")
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // bytes from the start of the data
  uint64_t bytes = 0;
  bool operator==(const ModelTensor&) const = default;
};

struct ModelFile {
  std::map<std::string, std::string> metadata;  // topology and checksum not included
  std::vector<ModelTensor> tensors;             // in the order of their data
  bool verified = false;                        // it carries a checksum, and it is right
  std::string topology;                         // JSON; empty in a foreign file
  std::string sha256;                           // hex; empty in a foreign file
  bool operator==(const ModelFile&) const = default;
};

// Reads and checks everything but the values; streams through these once to verify the checksum. A file that was not
// written by Tenon and has no checksum is accepted as not verified.
[[nodiscard]] ModelFile read_model_header(FileSystem& files, const std::filesystem::path& path);

// Reads the values of all entries of `set`. The file must hold exactly these, with their shapes and types: TN_INVALID
// names what is missing, what is extra and what differs. The checksum is verified over the bytes that are used.
// `expected`, unless null, is an earlier answer of read_model_header: a file that says something else
// is TN_BAD_DATA.
// The set is written only after all this succeeded; one that was only declared then gets its values, and until the file
// was found to fit no memory for them is asked for. Needs memory for a second copy of the values, from the set's
// allocator.
ModelFile load_model(FileSystem& files, const std::filesystem::path& path, ParameterSet& set,
                     const ModelFile* expected = nullptr);

// Writes the entries called `names` in the order of the set, and the topology as it is given. The same arguments and
// values give the same bytes. The file appears under its name only when it is complete and on disk.
void write_model(FileSystem& files, const std::filesystem::path& path, const std::string& topology_json,
                 const ParameterSet& set, const std::vector<std::string>& names);

}  // namespace tenon
