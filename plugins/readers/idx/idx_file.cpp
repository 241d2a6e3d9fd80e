// Decodes IDX files. SPDX-License-Identifier: Apache-2.0
#include "idx_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "stream.h"

namespace tenon::idx {

namespace {

struct Type {
  uint8_t code;  // in the file
  tn_dtype dtype;
  const char* name;
};
constexpr Type kTypes[] = {{0x08, TN_U8, "uint8"},  {0x09, TN_I8, "int8"},     {0x0B, TN_I16, "int16"},
                           {0x0C, TN_I32, "int32"}, {0x0D, TN_F32, "float32"}, {0x0E, TN_F64, "float64"}};

constexpr uint64_t kSkipBytes = uint64_t{1} << 16;
constexpr uint64_t kFirstBlock = uint64_t{1} << 16;  // least bytes of the first allocation

std::string digits(uint64_t number) { return std::to_string(number); }

template <typename Unsigned>
void swap_all(uint8_t* values, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += sizeof(Unsigned)) {
    Unsigned value;
    std::memcpy(&value, values + i, sizeof value);
    if constexpr (sizeof value == 2) value = __builtin_bswap16(value);
    if constexpr (sizeof value == 4) value = __builtin_bswap32(value);
    if constexpr (sizeof value == 8) value = __builtin_bswap64(value);
    std::memcpy(values + i, &value, sizeof value);
  }
}

void to_native_order(File& file, uint64_t bytes) {
  if constexpr (std::endian::native == std::endian::big) return;
  const uint32_t width = tn_dtype_bytes(file.dtype);
  if (width == 2) swap_all<uint16_t>(file.values.data(), bytes);
  if (width == 4) swap_all<uint32_t>(file.values.data(), bytes);
  if (width == 8) swap_all<uint64_t>(file.values.data(), bytes);
}

// Decodes one file: the header, then the values of the shard's samples.
class Decoder {
 public:
  Decoder(const std::string& path, const tn::ReaderOpen& open)
      : shard_(open.shard()),
        memory_(open.memory()),
        stream_(path, files::Inflation::ratio_of(open.attributes()), open.cancel()) {
    file_.path = path;
  }

  File run(bool header_alone) {
    read_header();
    file_.samples = shard_.samples(static_cast<int64_t>(file_.all_samples));
    if (header_alone) return std::move(file_);
    read_values();
    uint8_t extra = 0;
    if (stream_.read(&extra, 1) != 0)
      fail(TN_BAD_DATA,
           "holds more than the " + digits(all_bytes_) + " bytes of values that its header says, " + described());
    to_native_order(file_, filled_);
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(tn_status code, std::string message) const {
    throw tn::Failure(code, file_.path, std::move(message));
  }

  // "uint8 [60000, 28, 28]"
  [[nodiscard]] std::string described() const {
    std::string text = std::string(file_.dtype_name) + " [" + digits(file_.all_samples);
    for (const int64_t dim : file_.shape) text += ", " + std::to_string(dim);
    return text + "]";
  }

  void read_header() {
    uint8_t magic[4];
    if (read_up_to(magic, sizeof magic) != sizeof magic)
      fail(TN_BAD_DATA, "expected an IDX header, got less than 4 bytes");
    const Type* const type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.code == magic[2]; });
    if (magic[0] != 0 || magic[1] != 0 || type == std::end(kTypes) || magic[3] == 0) {
      std::string got;
      constexpr char kHex[] = "0123456789abcdef";
      for (const uint8_t byte : magic) got += std::string(got.empty() ? "" : " ") + kHex[byte >> 4] + kHex[byte & 15];
      fail(TN_BAD_DATA,
           "not an IDX file: expected the bytes 00 00, a type (08, 09, 0b to 0e) and the number of dimensions, got " +
               got);
    }
    file_.dtype = type->dtype;
    file_.dtype_name = type->name;
    const int rank = magic[3];
    if (rank > TN_MAX_RANK)
      fail(TN_UNSUPPORTED,
           "has " + std::to_string(rank) + " dimensions; at most " + std::to_string(TN_MAX_RANK) + " can be read");
    for (int i = 0; i < rank; ++i) add_dimension(i, rank);
    if (__builtin_mul_overflow(file_.all_samples, file_.sample_bytes, &all_bytes_) ||
        all_bytes_ > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      fail(TN_BAD_DATA, "the header asks for more bytes than there can be: " + described());
  }

  void add_dimension(int number, int rank) {
    uint8_t bytes[4];
    if (read_up_to(bytes, sizeof bytes) != sizeof bytes)
      fail(TN_BAD_DATA,
           "the header ends before dimension " + std::to_string(number + 1) + " of " + std::to_string(rank));
    const uint32_t dim = uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
    if (number == 0) {
      file_.all_samples = dim;
      file_.sample_bytes = tn_dtype_bytes(file_.dtype);
      return;
    }
    file_.shape.push_back(dim);
    if (dim == 0) fail(TN_BAD_DATA, "dimension " + std::to_string(number + 1) + " of the header is 0: " + described());
    if (__builtin_mul_overflow(file_.sample_bytes, uint64_t{dim}, &file_.sample_bytes) ||
        file_.sample_bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      fail(TN_BAD_DATA, "the header asks for more bytes than there can be: " + described());
  }

  void read_values() {
    const uint64_t all = file_.all_samples;
    wanted_ = static_cast<uint64_t>(file_.samples) * file_.sample_bytes;
    if (shard_.count == 1) return keep(wanted_);
    for (int64_t i = 0; i < static_cast<int64_t>(all); ++i)
      shard_.has(i) ? keep(file_.sample_bytes) : skip(file_.sample_bytes);
  }

  void keep(uint64_t bytes) {
    while (bytes != 0) {
      if (filled_ == file_.values.size()) grow();
      const uint64_t part = std::min(bytes, file_.values.size() - filled_);
      const uint64_t got = stream_.read(file_.values.data() + filled_, part);
      count(got);
      filled_ += got;
      bytes -= got;
    }
  }

  void skip(uint64_t bytes) {
    skipped_.resize(kSkipBytes);
    while (bytes != 0) {
      const uint64_t got = stream_.read(skipped_.data(), std::min(bytes, kSkipBytes));
      count(got);
      bytes -= got;
    }
  }

  void count(uint64_t got) {
    done_ += got;
    if (got == 0)
      fail(TN_BAD_DATA, "truncated: expected " + digits(all_bytes_) + " bytes of values for " + described() + ", got " +
                            digits(done_));
  }

  // Grows `values`: first to the estimate of the stream, then to twice the bytes read so far, never above wanted_.
  void grow() {
    const uint64_t likely = std::max(stream_.likely_bytes(), kFirstBlock);
    const uint64_t bytes = filled_ == 0 ? likely : filled_ > wanted_ / 2 ? wanted_ : 2 * filled_;
    files::Block larger(memory_, std::min(wanted_, bytes));
    if (filled_ != 0) std::memcpy(larger.data(), file_.values.data(), filled_);
    file_.values.swap(larger);
  }

  uint64_t read_up_to(uint8_t* to, uint64_t bytes) {
    uint64_t done = 0;
    while (done < bytes) {
      const uint64_t got = stream_.read(to + done, bytes - done);
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  tn::Shard shard_;
  const tn_memory* memory_;
  files::Stream stream_;
  File file_;
  uint64_t all_bytes_ = 0;  // bytes of values in the file, by its header
  uint64_t wanted_ = 0;     // bytes of values of this shard
  uint64_t filled_ = 0;     // bytes in file_.values so far
  uint64_t done_ = 0;       // bytes of values read or skipped
  std::vector<uint8_t> skipped_;
};

template <typename Integer>
void check_as(const File& file, const tn::Shard& shard, int64_t limit) {
  const uint64_t per_sample = file.sample_bytes / sizeof(Integer);
  const uint64_t count = static_cast<uint64_t>(file.samples) * per_sample;
  for (uint64_t i = 0; i < count; ++i) {
    Integer value;
    std::memcpy(&value, file.values.data() + i * sizeof value, sizeof value);
    if (value >= 0 && int64_t{value} < limit) continue;
    const int64_t sample = shard.sample(static_cast<int64_t>(i / per_sample));
    throw tn::Failure(TN_BAD_DATA, file.path,
                      "sample " + std::to_string(sample) + ": expected a value from 0 to " + std::to_string(limit - 1) +
                          ", got " + std::to_string(value));
  }
}

}  // namespace

File read_file(const std::string& path, const tn::ReaderOpen& open) {
  return Decoder(path, open).run(open.schema_alone());
}

void check_values(const File& file, const tn::Shard& shard, int64_t limit) {
  if (file.dtype == TN_U8) return check_as<uint8_t>(file, shard, limit);
  if (file.dtype == TN_I8) return check_as<int8_t>(file, shard, limit);
  if (file.dtype == TN_I16) return check_as<int16_t>(file, shard, limit);
  if (file.dtype == TN_I32) return check_as<int32_t>(file, shard, limit);
  throw tn::Failure(TN_INVALID, "classes", file.path + " holds " + file.dtype_name + "; expected whole numbers");
}

}  // namespace tenon::idx
