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
