// Inflates gzip, bzip2, xz and Zstandard, each by the library of its authors. SPDX-License-Identifier: Apache-2.0
#include "compression.h"

#include <zlib.h>
#ifdef TENON_HAS_BZIP2
#include <bzlib.h>
#endif
#ifdef TENON_HAS_XZ
#include <lzma.h>
#endif
#ifdef TENON_HAS_ZSTD
#include <zstd.h>
#endif

#include <new>
#include <tenon/base.hpp>

#ifdef TENON_HAS_BZIP2
// The streams of stdio to libbz2 (CMakeLists.txt).
extern "C" {
[[gnu::visibility("hidden")]] extern void* const tenon_bzip2_stdin = nullptr;
[[gnu::visibility("hidden")]] extern void* const tenon_bzip2_stdout = nullptr;
[[gnu::visibility("hidden")]] extern void* const tenon_bzip2_stderr = nullptr;
}
#endif

namespace tenon::files {

namespace {

using MakeDecoder = std::unique_ptr<Decoder> (*)();

class Gzip : public Decoder {
 public:
  Gzip() {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }

  Step step(const uint8_t* from, size_t bytes, uint8_t* to, size_t room) override {
    stream_.next_in = const_cast<uint8_t*>(from);  // which zlib does not change
    stream_.avail_in = static_cast<uInt>(bytes);
    stream_.next_out = to;
    stream_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    Step step = {bytes - stream_.avail_in, room - stream_.avail_out, result == Z_STREAM_END};
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      step.fault = stream_.msg != nullptr ? stream_.msg : "not a gzip stream";
    return step;
  }
  void restart() override { (void)inflateReset(&stream_); }

 private:
  z_stream stream_ = {};
};

#ifdef TENON_HAS_BZIP2
class Bzip2 : public Decoder {
 public:
  Bzip2() { open(); }
  ~Bzip2() override { BZ2_bzDecompressEnd(&stream_); }

  Step step(const uint8_t* from, size_t bytes, uint8_t* to, size_t room) override {
    stream_.next_in = reinterpret_cast<char*>(const_cast<uint8_t*>(from));
    stream_.avail_in = static_cast<unsigned>(bytes);
    stream_.next_out = reinterpret_cast<char*>(to);
    stream_.avail_out = static_cast<unsigned>(room);
    const int result = BZ2_bzDecompress(&stream_);
    if (result == BZ_MEM_ERROR) throw std::bad_alloc();
    Step step = {bytes - stream_.avail_in, room - stream_.avail_out, result == BZ_STREAM_END};
    if (result == BZ_DATA_ERROR_MAGIC)
      step.fault = "not a bzip2 stream";
    else if (result != BZ_OK && result != BZ_STREAM_END)
      step.fault = "a block is damaged, or its checksum is wrong";
    return step;
  }
  void restart() override {
    BZ2_bzDecompressEnd(&stream_);
    open();
  }

 private:
  void open() {
    stream_ = {};
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }

  bz_stream stream_ = {};
};
constexpr MakeDecoder kBzip2 = [] { return std::unique_ptr<Decoder>(new Bzip2); };
#else
constexpr MakeDecoder kBzip2 = nullptr;
#endif

#ifdef TENON_HAS_XZ
class Xz : public Decoder {
 public:
  Xz() { restart(); }
  ~Xz() override { lzma_end(&stream_); }

  Step step(const uint8_t* from, size_t bytes, uint8_t* to, size_t room) override {
    stream_.next_in = from;
    stream_.avail_in = bytes;
    stream_.next_out = to;
    stream_.avail_out = room;
    const lzma_ret result = lzma_code(&stream_, LZMA_RUN);
    if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
    Step step = {bytes - stream_.avail_in, room - stream_.avail_out, result == LZMA_STREAM_END};
    if (result == LZMA_MEMLIMIT_ERROR)
      step.fault = "inflating it needs more than 256 MiB of memory";
    else if (result == LZMA_FORMAT_ERROR)
      step.fault = "not an xz stream";
    else if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR)
      step.fault = "a block is damaged, or its checksum is wrong";
    return step;
  }
  void restart() override {
    constexpr uint64_t kMostMemory = uint64_t{256} << 20;  // xz -9 needs 65 MiB; a header may ask for 4 GiB
    if (lzma_stream_decoder(&stream_, kMostMemory, 0) != LZMA_OK) throw std::bad_alloc();
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};
constexpr MakeDecoder kXz = [] { return std::unique_ptr<Decoder>(new Xz); };
#else
constexpr MakeDecoder kXz = nullptr;
#endif

#ifdef TENON_HAS_ZSTD
class Zstd : public Decoder {  // whose windows have at most 128 MiB
 public:
  Zstd() : context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) throw std::bad_alloc();
  }
  ~Zstd() override { ZSTD_freeDCtx(context_); }

  Step step(const uint8_t* from, size_t bytes, uint8_t* to, size_t room) override {
    ZSTD_inBuffer in = {from, bytes, 0};
    ZSTD_outBuffer out = {to, room, 0};
    const size_t result = ZSTD_decompressStream(context_, &out, &in);
    Step step = {in.pos, out.pos, result == 0};
    // Without input it makes no progress, which the caller refuses.
    if (ZSTD_isError(result) != 0 && bytes != 0) step.fault = ZSTD_getErrorName(result);
    return step;
  }
  void restart() override {}

 private:
  ZSTD_DCtx* context_;
};
constexpr MakeDecoder kZstd = [] { return std::unique_ptr<Decoder>(new Zstd); };
#else
constexpr MakeDecoder kZstd = nullptr;
#endif

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

bool is_gzip(std::string_view file) { return starts(file, "\x1f\x8b"); }
// A block follows the size of blocks, or the end of an empty stream: the digits of pi or of its square root.
bool is_bzip2(std::string_view file) {
  return starts(file, "BZh") && file.size() == kBeginningBytes && file[3] >= '1' && file[3] <= '9' &&
         (file.substr(4) == "\x31\x41\x59\x26\x53\x59" || file.substr(4) == "\x17\x72\x45\x38\x50\x90");
}
bool is_xz(std::string_view file) { return starts(file, std::string_view("\xfd\x37zXZ\0", 6)); }
// A frame, or one to be skipped in front of it.
bool is_zstd(std::string_view file) {
  return starts(file, "\x28\xb5\x2f\xfd") ||
         (file.size() >= 4 && (file[0] & 0xf0) == 0x50 && file.substr(1, 3) == "\x2a\x4d\x18");
}

constexpr Compression kKinds[] = {{"gzip", "zlib", is_gzip, [] { return std::unique_ptr<Decoder>(new Gzip); }},
                                  {"bzip2", "libbz2", is_bzip2, kBzip2},
                                  {"xz", "liblzma", is_xz, kXz},
                                  {"zstd", "libzstd", is_zstd, kZstd}};

}  // namespace

const Compression* compression_of(std::string_view beginning) {
  for (const Compression& kind : kKinds)
    if (kind.begins(beginning)) return &kind;
  return nullptr;
}

bool is_zip(std::string_view beginning) { return starts(beginning, "PK\3\4") || starts(beginning, "PK\5\6"); }

std::unique_ptr<Decoder> decoder_of(const Compression& compression, const std::string& path) {
  if (compression.make == nullptr)
    throw tn::Failure(TN_UNSUPPORTED, path,
                      std::string("is compressed with ") + compression.name + ", and this build lacks " +
                          compression.library + ", which reads it: inflate the file first");
  return compression.make();
}

}  // namespace tenon::files
