// Model files: topology and parameters in one safetensors file. SPDX-License-Identifier: Apache-2.0
//
// docs/model-file.md specifies the format and what a reader refuses; the limits below are its only constants. Files are
// untrusted input: every length is checked before it is used, and errors (TN_BAD_DATA) name the file, the tensor and
// the expected value.
#pragma once

#include <tenon/base.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/files/model_parts.h"
#include "core/parameter_set.h"
#include "core/system.h"

namespace tenon::core {

constexpr uint64_t kMaxModelHeader = 100'000'000;  // bytes of JSON
constexpr size_t kMaxModelRank = 64;
constexpr size_t kMaxModelMetadata = 65'536;  // entries

struct ModelTensor {
  std::string name;
  std::string type;             // as in the file: "F32"
  tn_dtype dtype = TN_COMPUTE;  // TN_COMPUTE if Tenon lacks the type ("F8_E4M3")
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // bytes from the start of the data
  uint64_t bytes = 0;
  bool in_parts = false;  // its rows lie in ModelFile::parts: offset is 0, bytes are those of all rows
  bool operator==(const ModelTensor&) const = default;
};

struct ModelFile {
  std::map<std::string, std::string> metadata;  // topology, checksum and parts not included
  std::vector<ModelTensor> tensors;             // in the order of their data, were all in one file
  std::vector<ModelPart> parts;                 // empty: the file has all tensors itself
  bool verified = false;                        // the file has a checksum, and it matches
  std::string topology;                         // JSON; empty in a foreign file
  std::string checksum;                         // hex; empty in a foreign file
  bool operator==(const ModelFile&) const = default;
};

// A parameter or buffer of a model file as a migration leaves it: float32.
struct MigratedTensor {
  std::vector<int64_t> shape;
  std::string from;                      // the tensor of the file that has its values; empty: `values` are its own
  std::shared_ptr<const Buffer> values;  // null if it has no elements
};
// Tensors that are not as in the file, by name; nothing: removed.
using TensorChanges = std::map<std::string, std::optional<MigratedTensor>>;

// Whether applications may give a text of this key to model files; the others belong to the format.
[[nodiscard]] bool is_metadata_key(const std::string& key);

// Reads and checks the header; reads the values once, in chunks, to verify the checksum, and those of the parts with
// rows of `blocks`. Accepts a file of another program without a checksum, as not verified.
[[nodiscard]] ModelFile read_model_header(FileSystem& files, const std::filesystem::path& path,
                                          const TableBlocks& blocks = {});

// Returns the parts that a model file names; reads its header alone.
[[nodiscard]] std::vector<ModelPart> parts_of_model(FileSystem& files, const std::filesystem::path& path);

// Reads the values of single tensors of a model file, for migrations.
class StoredTensors : base::NotCopied {
 public:
  // header: the result of read_model_header; borrowed, like `files`. Opens the file at the first read.
  StoredTensors(FileSystem& files, std::filesystem::path path, const ModelFile& header,
                std::shared_ptr<Allocator> allocator);
  ~StoredTensors();

  // Returns a tensor by name, null if the file lacks it.
  [[nodiscard]] const ModelTensor* find(const std::string& name) const;
  // Returns the values of a tensor of the file. Throws TN_BAD_DATA if the file has changed since its header was read.
  [[nodiscard]] std::shared_ptr<const Buffer> read(const ModelTensor& tensor);
  // Reads the rows of some blocks of a tensor. to: [blocks.rows(shape[0]), row].
  void read_rows(const ModelTensor& tensor, const TableBlocks& blocks, std::byte* to);
  [[nodiscard]] const std::shared_ptr<Allocator>& allocator() const { return allocator_; }

 private:
  struct Open;
  Open& opened();

  FileSystem& files_;
  const std::filesystem::path path_;
  const ModelFile& header_;
  std::shared_ptr<Allocator> allocator_;
  std::map<std::string, const ModelTensor*> by_name_;
  std::unique_ptr<Open> open_;
};

// Reads the values of all entries of `set`. The file, with `changes` and without the tensors of a checkpoint, must hold
// exactly these entries, with their shapes and types: throws TN_INVALID naming missing, extra and differing tensors.
// Verifies the checksum over the bytes that are loaded. `expected`, if not null, is an earlier result of
// read_model_header: throws TN_BAD_DATA if the file has changed since. Changes the set only after all checks have
// passed; a declared set gets its memory then. Allocates memory for all values, from the set's allocator, once the file
// is known to fit. Of a set with owned() the rows of this process are read in place, so that no memory is needed for
// them twice: if the file changes after read_model_header, a load that fails may leave them changed.
ModelFile load_model(FileSystem& files, const std::filesystem::path& path, ParameterSet& set,
                     const ModelFile* expected = nullptr, const TensorChanges& changes = {});

// Tensors and metadata that a checkpoint holds beside the model. Each name of a tensor begins with kCheckpointTensors;
// the names of parameters must not. load_model ignores such tensors, so that a checkpoint is also a model file.
constexpr const char* kCheckpointTensors = "tenon.checkpoint/";
struct CheckpointTensor {
  std::string name;
  std::string type;  // as in the file: "F32"
  std::vector<int64_t> shape;
  const void* values;
  uint64_t bytes;
};
struct CheckpointParts {
  std::map<std::string, std::string> metadata;
  std::vector<CheckpointTensor> tensors;
};

// Returns the name of a type in model files, such as "F32"; "" if they lack it.
[[nodiscard]] std::string element_type_name(tn_dtype dtype);

// Reads rows of a table of a set, whose rows lie with several owners, in their order. to: [count, width].
using RowReader = std::function<void(const ParameterEntry& table, int64_t first, int64_t count, float* to)>;

// Writes the entries `names`, in the order of the set, its metadata, and the topology unchanged; "": none, as a part of
// a model has it. The same arguments and values give the same bytes. The file appears under its name only when it is
// complete and on disk. rows: reads each row of a table twice; null: the set has all values. Returns the checksum.
std::string write_model(FileSystem& files, const std::filesystem::path& path, const std::string& topology_json,
                        const ParameterSet& set, const std::vector<std::string>& names,
                        const CheckpointParts& parts = {}, const RowReader& rows = nullptr);

// Writes a model file or a checkpoint again, as one file: with the bytes that it would have without parts. from: is
// verified; to: may be `from` without parts.
void join_model(FileSystem& files, const std::filesystem::path& from, const std::filesystem::path& to);
// Writes it with the rows of these tables, and of the states of updaters for them, in `count` parts, which lie in a new
// folder beside `to`: NAME.parts, or NAME.parts-1 and so on.
void split_model(FileSystem& files, const std::filesystem::path& from, const std::filesystem::path& to,
                 const std::vector<std::string>& tables, int64_t count);

}  // namespace tenon::core
