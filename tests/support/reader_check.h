// Calls readers through their C table: samples of every storage, and checks that apply to every reader.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "core/error.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/registry.h"
#include "host/plugins/services.h"
#include "tests/support/faults.h"
#include "tests/support/gzip.h"
#include "tests/support/memory_system.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::host;

using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

template <typename T>
std::vector<T> as(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The content of one slot of one sample.
struct Content {
  Bytes values;  // the sample, its rows, or its entries' values
  Ints ids;      // TN_CSR
  Ints lengths;  // of inner sequences
  bool operator==(const Content&) const = default;
};
using Sample = std::vector<Content>;  // by slot

// One instance of a reader. Buffers for rows are initially empty and grow only when the reader needs more room.
class TableReader {
 public:
  TableReader(const ReaderType& type, const Values& given, const std::string& folder, uint32_t shard, uint32_t shards,
              const tn_services* services, const volatile int32_t* cancel, uint64_t seed = 0)
      : table_(type.table) {
    const std::vector<Value> values = resolve(type.description.attributes, given);
    const AttributesView view(type.description.attributes, values);
    tn_reader_open open = {};
    open.size = sizeof open;
    open.shard = shard;
    open.shards = shards;
    open.services = services;
    open.errors = sink_.get();
    open.attributes = view.get();
    open.directory = folder.c_str();
    open.cancel = cancel;
    open.seed = seed;
    sink_.check(table_.open(&open, &instance_));
  }
  ~TableReader() {
    if (instance_ != nullptr) table_.close(instance_);
  }
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  [[nodiscard]] const tn_slot& slot(size_t i) const { return *table_.schema(instance_)->slots[i]; }
  [[nodiscard]] size_t slots() const { return table_.schema(instance_)->slots_count; }
  [[nodiscard]] std::vector<int64_t> shape(size_t i) const { return {slot(i).shape, slot(i).shape + slot(i).rank}; }
  [[nodiscard]] int64_t samples() const { return table_.samples(instance_); }
  [[nodiscard]] int64_t position() const { return table_.position(instance_); }
  void seek(int64_t position) { sink_.check(table_.seek(instance_, position)); }
  void pass(int64_t number) {
    const auto* pass = static_cast<const tn_pass*>(table_.extension(table_.user, TN_PASS));
    ASSERT_NE(pass, nullptr);
    sink_.check(pass->begin(instance_, number));
  }
  void call_next_without_room() {
    prepare(0);
    int64_t count = -1;
    EXPECT_EQ(table_.next(instance_, &buffers_, &count), TN_NEED_CAPACITY);
    EXPECT_EQ(count, 0);
  }

  // Reads at most `capacity` samples; none at the end of the pass.
  std::vector<Sample> next(int64_t capacity) {
    const int64_t before = position();
    int64_t count = 0;
    const tn_status status = with_room(capacity, [&] { return table_.next(instance_, &buffers_, &count); });
    if (status == TN_END) return {};
    sink_.check(status);
    EXPECT_GE(count, 1);
    EXPECT_LE(count, capacity);
    EXPECT_EQ(position(), before + count);
    return taken(count);
  }
  std::vector<Sample> read_at(const Ints& indices) {
    const auto count = static_cast<int64_t>(indices.size());
    sink_.check(with_room(count, [&] { return table_.read_at(instance_, indices.data(), count, &buffers_); }));
    return taken(count);
  }
  // Whether several threads may read at the same time; read_parallel then reads like read_at, with errors of its own.
  [[nodiscard]] bool parallel() const { return table_.extension(table_.user, TN_PARALLEL_READ) != nullptr; }
  std::vector<Sample> read_parallel(const Ints& indices) {
    const auto& table = *static_cast<const tn_parallel_read*>(table_.extension(table_.user, TN_PARALLEL_READ));
    const auto count = static_cast<int64_t>(indices.size());
    ErrorSink errors("reader");
    prepare(count);
    errors.check(table.read_at(instance_, indices.data(), count, &buffers_, errors.get()));
    return taken(count);
  }
  // Reads the rest of the pass.
  std::vector<Sample> all(int64_t capacity = 3) {
    std::vector<Sample> samples;
    while (true) {
      const std::vector<Sample> more = next(capacity);
      if (more.empty()) return samples;
      samples.insert(samples.end(), more.begin(), more.end());
    }
  }

 private:
  struct Room {
    Bytes data;
    Ints ids, lengths, inner;
    tn_sequence_room room = {};
  };

  [[nodiscard]] uint64_t element_bytes(size_t i) const {
    uint64_t bytes = tn_dtype_bytes(slot(i).dtype);
    if (slot(i).storage != TN_CSR)
      for (const int64_t dim : shape(i)) bytes *= static_cast<uint64_t>(dim);
    return bytes;
  }
  void prepare(int64_t capacity) {
    rooms_.resize(slots());
    pointers_.resize(slots());
    for (size_t i = 0; i < slots(); ++i) {
      Room& it = rooms_[i];
      const bool dense = slot(i).storage == TN_DENSE;
      tn_sequence_room& room = it.room;
      if (!dense) room.rows_capacity = std::max(room.rows_capacity, room.rows_needed);
      if (!dense) room.inner_capacity = std::max(room.inner_capacity, room.inner_needed);
      it.data.assign(element_bytes(i) * static_cast<uint64_t>(dense ? capacity : room.rows_capacity), '?');
      it.lengths.assign(static_cast<size_t>(capacity), -1);
      it.ids.assign(static_cast<size_t>(room.rows_capacity), -1);
      it.inner.assign(static_cast<size_t>(room.inner_capacity), -1);
      room.size = sizeof room;
      room.rows = it.data.data();
      room.ids = slot(i).storage == TN_CSR ? it.ids.data() : nullptr;
      room.lengths = it.lengths.data();
      room.inner_lengths = it.inner.data();
      room.rows_needed = room.inner_needed = 0;
      pointers_[i] = dense ? static_cast<void*>(it.data.data()) : &room;
    }
    buffers_ = {sizeof buffers_, static_cast<uint32_t>(slots()), capacity, pointers_.data()};
  }
  template <typename Call>
  tn_status with_room(int64_t capacity, const Call& call) {
    const int64_t before = position();
    for (Room& it : rooms_) it.room = {};
    for (int attempt = 0;; ++attempt) {
      prepare(capacity);
      const tn_status status = call();
      if (status != TN_NEED_CAPACITY || attempt == 2) return status;
      EXPECT_EQ(position(), before) << "TN_NEED_CAPACITY changed the position";
    }
  }
  std::vector<Sample> taken(int64_t count) {
    std::vector<Sample> samples(static_cast<size_t>(count));
    for (size_t i = 0; i < slots(); ++i) {
      const uint64_t bytes = element_bytes(i);
      uint64_t row = 0, inner = 0;
      for (size_t n = 0; n < samples.size(); ++n) {
        Content content;
        auto rows = static_cast<uint64_t>(slot(i).storage == TN_DENSE ? 1 : rooms_[i].lengths[n]);
        if (slot(i).levels == 2) {
          const auto first = rooms_[i].inner.begin() + static_cast<ptrdiff_t>(inner);
          content.lengths.assign(first, first + static_cast<ptrdiff_t>(rows));
          inner += rows;
          rows = 0;
          for (const int64_t length : content.lengths) rows += static_cast<uint64_t>(length);
        }
        content.values = rooms_[i].data.substr(row * bytes, rows * bytes);
        const auto ids = rooms_[i].ids.begin() + static_cast<ptrdiff_t>(row);
        if (slot(i).storage == TN_CSR) content.ids.assign(ids, ids + static_cast<ptrdiff_t>(rows));
        row += rows;
        samples[n].push_back(content);
      }
    }
    return samples;
  }

  const tn_reader_type& table_;
  ErrorSink sink_{"reader"};
  void* instance_ = nullptr;
  std::vector<Room> rooms_;
  std::vector<void*> pointers_;
  tn_reader_buffers buffers_ = {};
};

// A folder of files and a reader type, loaded as a plugin.
class ReaderTest : public ::testing::Test {
 protected:
  explicit ReaderTest(std::string type) : type_(std::move(type)) {}

  void TearDown() override { EXPECT_EQ(allocator_->held, 0u); }

  void put(const std::string& name, const Bytes& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  [[nodiscard]] Bytes got(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::unique_ptr<TableReader> open(const Values& attributes, uint32_t shard = 0, uint32_t shards = 1,
                                    uint64_t seed = 0) {
    return std::make_unique<TableReader>(registry_.reader(type_), attributes, folder_.string(), shard, shards,
                                         services_.tables(registry_.reader(type_)), &cancel_, seed);
  }
  std::vector<Sample> all(const Values& attributes) { return open(attributes)->all(); }
  // Writes a file with this content and returns the attributes to read it.
  Values file(const Bytes& content, Values more = {}, const std::string& name = "f") const {
    put(name, content);
    more["files"] = Strings{name};
    return more;
  }
  // The values of one slot of all samples, concatenated.
  template <typename T>
  std::vector<T> values(const Values& attributes, size_t slot = 0) {
    Bytes joined;
    for (const Sample& sample : all(attributes)) joined += sample[slot].values;
    return as<T>(joined);
  }
  // The error of opening the reader or of reading all samples; TN_OK if there is none.
  Error refusal(const Values& attributes) {
    return error_of([&] { open(attributes)->all(); });
  }
  // Checks that the first error has the code TN_BAD_DATA and a message that contains `message`.
  void expect_damage(const Values& attributes, const std::string& message) {
    const Error error = refusal(attributes);
    EXPECT_EQ(error.code(), TN_BAD_DATA) << error.message();
    EXPECT_THAT(error.message(), ::testing::HasSubstr(message));
  }

  // Checks that every way of reading gives the same samples: next with any capacity, read_at, from any position, from
  // shards, in the next pass. Returns the samples.
  std::vector<Sample> check(const Values& attributes) {
    const auto reader = open(attributes);
    const std::vector<Sample> all = reader->all(1);
    EXPECT_EQ(reader->samples(), static_cast<int64_t>(all.size()));
    EXPECT_EQ(reader->position(), 0);
    for (const int64_t capacity : {1, 2, 1000}) EXPECT_TRUE(reader->all(capacity) == all) << "portions of " << capacity;
    const auto count = static_cast<int64_t>(all.size());
    Ints order;
    std::vector<Sample> expected;
    for (int64_t i = 0; i < count; ++i) order.push_back((i * 7 + 3) % count);  // with repetitions if 7 divides count
    for (const int64_t i : order) expected.push_back(all[static_cast<size_t>(i)]);
    EXPECT_TRUE(reader->read_at(order) == expected);
    EXPECT_EQ(error_of([&] { reader->read_at({count}); }).code(), TN_INVALID);
    if (reader->parallel()) {
      EXPECT_TRUE(reader->read_parallel(order) == expected);
    }
    for (int64_t position = 0; position <= count; position += std::max<int64_t>(count / 5, 1)) {
      reader->seek(position);
      EXPECT_EQ(reader->position(), position);
      if (position < count) reader->call_next_without_room();
      EXPECT_TRUE(reader->all() == std::vector<Sample>(all.begin() + position, all.end())) << "from " << position;
    }
    EXPECT_EQ(error_of([&] { reader->seek(count + 1); }).code(), TN_INVALID);
    EXPECT_EQ(error_of([&] { reader->seek(-1); }).code(), TN_INVALID);
    for (const uint32_t shards : {2u, 3u, static_cast<uint32_t>(count) + 1}) check_shards(attributes, all, shards);
    return all;
  }
  void check_shards(const Values& attributes, const std::vector<Sample>& all, uint32_t shards) {
    size_t found = 0;
    for (uint32_t shard = 0; shard < shards; ++shard) {
      const auto reader = open(attributes, shard, shards);
      const std::vector<Sample> mine = reader->all();
      EXPECT_EQ(reader->samples(), static_cast<int64_t>(mine.size()));
      for (size_t i = 0; i < mine.size(); ++i) {
        ASSERT_LT(i * shards + shard, all.size());
        EXPECT_TRUE(mine[i] == all[i * shards + shard]) << "sample " << i << " of shard " << shard << " of " << shards;
      }
      found += mine.size();
    }
    EXPECT_EQ(found, all.size()) << shards << " shards";
  }
  // Makes each allocation fail in turn: the reader must return TN_OUT_OF_MEMORY and release its memory.
  void check_no_memory(const Values& attributes) {
    const uint64_t held = allocator_->held;
    allocator_->calls = 0;
    open(attributes)->all();
    const int64_t calls = allocator_->calls;
    EXPECT_GE(calls, 1);
    for (int64_t call = 0; call < calls; ++call) {
      allocator_->calls = 0;
      allocator_->fail_at = call;
      EXPECT_EQ(refusal(attributes).code(), TN_OUT_OF_MEMORY);
      EXPECT_EQ(allocator_->held, held);
    }
    allocator_->fail_at = -1;
  }
  void expect_cancelled(const Values& attributes) {
    cancel_ = 1;
    EXPECT_EQ(refusal(attributes).code(), TN_CANCELLED);
    cancel_ = 0;
  }

  std::string type_;
  const tenon_tests::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  int32_t cancel_ = 0;
  std::shared_ptr<FaultyAllocator> allocator_ = std::make_shared<FaultyAllocator>();
  Services services_{allocator_, nullptr};
  Registry registry_{{tenon_tests::plugin_folder() + "/readers"}, system_files()};
};

}  // namespace tenon_tests
