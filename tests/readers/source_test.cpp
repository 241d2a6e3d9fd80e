// The bytes behind the contents of files, which readers of numbers load but do not use.
// SPDX-License-Identifier: Apache-2.0
#include "source.h"

#include <tenon/reader.hpp>

#include "compression.h"
#include "number.h"
#include "tests/support/reader_check.h"

namespace tenon_tests {

namespace {

using tenon::files::Block;
using tenon::files::kPadding;
using tenon::files::Source;

// Memory of which every byte is 0xab.
const tn_memory* filled_memory() {
  static const tn_memory memory = {sizeof memory, 0, nullptr,
                                   [](void*, uint64_t bytes) {
                                     void* const data = std::malloc(bytes);
                                     std::memset(data, 0xab, bytes);
                                     return data;
                                   },
                                   [](void*, void* data, uint64_t) { std::free(data); }};
  return &memory;
}

std::string behind(Source& source) {
  const std::string_view all = source.view(0, source.bytes());
  return {all.data() + all.size(), kPadding};
}

TEST(Source, BytesBehindTheContentAreZero) {
  const TemporaryFolder folder;
  const std::string zeros(kPadding, '\0');
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{1000}, size_t{1} << 16, (size_t{1} << 16) + 1}) {
    const Bytes content(bytes, 'x');
    for (const bool packed : {false, true}) {
      const std::string path = folder.file("f");
      std::ofstream(path, std::ios::binary) << (packed ? gzip(content) : content);
      tenon::files::SourceLimits limits;
      limits.most_kept = 1 << 20;
      Source source(path, limits, filled_memory(), nullptr);
      EXPECT_EQ(source.bytes(), bytes);
      EXPECT_EQ(behind(source), zeros) << bytes << (packed ? " gzip" : "");
    }
    Block block(filled_memory(), bytes + kPadding);
    Source member("member", std::move(block), bytes);
    EXPECT_EQ(behind(member), zeros) << bytes << " of an archive";
  }
}

// Counts the bytes that are allocated.
struct CountedMemory {
  uint64_t now = 0, most = 0;
  tn_memory table = {sizeof table, 0, this,
                     [](void* self, uint64_t bytes) {
                       auto& memory = *static_cast<CountedMemory*>(self);
                       memory.now += bytes;
                       memory.most = std::max(memory.most, memory.now);
                       return std::malloc(bytes);
                     },
                     [](void* self, void* data, uint64_t bytes) {
                       static_cast<CountedMemory*>(self)->now -= bytes;
                       std::free(data);
                     }};
};

TEST(Source, ALargeCompressedFileIsNotKeptInMemory) {
  const TemporaryFolder folder;
  const std::string before = std::getenv("TMPDIR") == nullptr ? "/tmp" : std::getenv("TMPDIR");
  Bytes content;
  for (int i = 0; content.size() < 2'000'000; ++i) content += std::to_string(i * 7919) + "\n";
  std::ofstream(folder.file("f.gz"), std::ios::binary) << gzip(content);
  std::filesystem::create_directory(folder.file("temporary"));
  // The folder of temporary files; one that is not there, so that the content is in memory without a name.
  for (const char* const place : {"temporary", "nowhere"}) {
    setenv("TMPDIR", folder.file(place).c_str(), 1);
    for (const uint64_t kept : {uint64_t{0}, uint64_t{100'000}, content.size() - 1}) {
      CountedMemory memory;
      tenon::files::SourceLimits limits;
      limits.most_kept = kept;
      Source source(folder.file("f.gz"), limits, &memory.table, nullptr);
      EXPECT_EQ(memory.now, 0u) << kept;
      EXPECT_LE(memory.most, 3 * (kept + kPadding)) << kept;
      ASSERT_EQ(source.bytes(), content.size());
      EXPECT_EQ(source.view(0, content.size()), content);
      EXPECT_EQ(source.view(1'234'567, 1000), content.substr(1'234'567, 1000));
      EXPECT_TRUE(std::filesystem::is_empty(folder.file("temporary"))) << "it has no name";
      limits.most_inflated = content.size() - 1;
      EXPECT_THROW(Source(folder.file("f.gz"), limits, &memory.table, nullptr), tn::Failure);
    }
  }
  setenv("TMPDIR", before.c_str(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder.file("nowhere")));
  CountedMemory memory;
  tenon::files::SourceLimits limits;
  limits.most_kept = content.size();
  const Source source(folder.file("f.gz"), limits, &memory.table, nullptr);
  EXPECT_GE(memory.now, content.size()) << "that is not too large";
}

TEST(Source, ACompressionWhoseLibraryIsMissing) {
  using namespace tenon::files;
  const Compression* const zstd = compression_of("\x28\xb5\x2f\xfd\x04\x68\x61");
  ASSERT_NE(zstd, nullptr);
  const Compression without = {zstd->name, zstd->library, zstd->begins, nullptr};
  try {
    (void)decoder_of(without, "data.csv");
    FAIL();
  } catch (const tn::Failure& failure) {
    EXPECT_EQ(failure.code(), TN_UNSUPPORTED);
    EXPECT_STREQ(failure.what(),
                 "is compressed with zstd, and this build lacks libzstd, which reads it: inflate the file first");
  }
}

}  // namespace
}  // namespace tenon_tests
