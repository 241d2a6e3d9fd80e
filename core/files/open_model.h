// An open model file whose data is read and hashed. Used by the sources beside it alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/files/checksum.h"
#include "core/files/model_file.h"

namespace tenon::core {

constexpr const char* kFormat = "format";  // keys of the metadata
constexpr const char* kOurs = "tenon";     // the value of `format`
constexpr const char* kTopology = "tenon.topology";
constexpr const char* kChecksum = "tenon.xxh3_128";
constexpr uint64_t kChunk = uint64_t{1} << 18;  // bytes read at a time; they are hashed while they are in the cache

// An open file with a checked header and unread data.
struct OpenModel {
  std::unique_ptr<InputFile> input;
  std::string path;
  std::string name;  // for messages
  ModelFile file;
  uint64_t data_begin = 0;
  uint64_t data_bytes = 0;
  TableBlocks blocks;                // whose rows it has: of a part those that the model names, else all
  const char* checksum = kChecksum;  // the key of the checksum that the file states
  Checksum hash = Checksum::xxh3();  // of the canonical header, then of the data

  // Reads and hashes a part of the data in chunks. place(done) returns the memory for the bytes from number `done` on,
  // and taken(done, bytes) is called when they are there.
  template <typename Place, typename Taken>
  void read(uint64_t offset, uint64_t bytes, const Place& place, const Taken& taken) {
    for (uint64_t done = 0, part = 0; done < bytes; done += part) {
      part = std::min(kChunk, bytes - done);
      void* const to = place(done);
      input->read(data_begin + offset + done, to, part);
      hash.update(to, part);
      taken(done, part);
    }
  }
  // Reads a tensor of the file itself in chunks, without hashing it, and calls take(done, data, bytes) with each.
  template <typename Take>
  void read_chunks(const ModelTensor& tensor, const Take& take) const {
    std::vector<std::byte> chunk(std::min(kChunk, tensor.bytes));
    for (uint64_t done = 0, part = 0; done < tensor.bytes; done += part) {
      part = std::min(kChunk, tensor.bytes - done);
      input->read(data_begin + tensor.offset + done, chunk.data(), part);
      take(done, chunk.data(), part);
    }
  }
  // Returns a tensor that the file has.
  [[nodiscard]] const ModelTensor& tensor(const std::string& tensor_name) const;
  // Hashes a part of the data that is not kept.
  void skip(uint64_t offset, uint64_t bytes);
  // After all data: compares the checksum, if the file states one, with the hash of header and data.
  void verify();
  [[noreturn]] void fail_changed() const;
};

[[nodiscard]] OpenModel open_model(FileSystem& files, const std::filesystem::path& path);
// Opens a file whose header was read before. Throws TN_BAD_DATA if it has changed since.
[[nodiscard]] OpenModel open_again(FileSystem& files, const std::filesystem::path& path, const ModelFile& header);
// Opens a part of a model, and checks that it is the one that the model names: TN_BAD_DATA naming it.
[[nodiscard]] OpenModel open_part(FileSystem& files, const std::filesystem::path& model, const ModelFile& file,
                                  const ModelPart& part);
// Opens those with rows of the blocks.
[[nodiscard]] std::vector<OpenModel> open_parts(FileSystem& files, const std::filesystem::path& model,
                                                const ModelFile& file, const TableBlocks& blocks);

}  // namespace tenon::core
