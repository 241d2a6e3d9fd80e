// A reader type with generated samples, for tests of the host. Sample i, counted over all shards, has two slots: "id"
// int64 [] = i, and "value" float32 [3] = i, i + 0.25, i + 0.5. On request it has three more, of i % 5 rows, i % 3
// inner sequences and i % 4 entries: "words" (row k: 10 * i + k), "text" (inner sequence j: (i + j) % 4 rows, row k:
// {i, 10 * j + k}) and "bag" (entry k: column i + 100 * k, value k + 0.5). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/reader.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "host/plugins/registry.h"

namespace tenon_tests {

using namespace tenon::host;

// Settings and counters of a test. A test may access the atomic ones while a thread reads. Must outlive its readers.
struct MemoryData {
  int64_t samples = 0;  // of all shards
  bool sized = true;    // whether the reader returns their number
  bool ends = true;     // false: an online reader, whose samples do not end
  bool seeks = true;
  std::atomic<int64_t> most = INT64_MAX;  // largest number of samples of one call of next
  std::atomic<int64_t> fail_at =
      -1;                           // the number of the call of next or read_at that fails with TN_IO, from 0; -1: none
  std::atomic<int64_t> calls = 0;   // of next and read_at
  std::atomic<int64_t> opened = 0;  // instances that are open

  std::atomic<tn_status> answer = TN_OK;                               // result of next without samples, unless TN_OK
  bool heeds_cancel = true;                                            // false: next ignores cancellation
  int64_t count_offset = 0;                                            // added to the count that next returns
  std::function<void(const volatile int32_t* cancel)> before_next;     // called by each next
  std::function<void(const tn_reader_buffers& buffers)> before_write;  // likewise, with its buffers
  std::function<void(const tn_reader_buffers& buffers)> spoil;         // changes the written samples
  std::vector<int64_t> passes;                                         // numbers of the passes that were begun
  std::mutex passes_mutex;
  std::vector<int64_t> damaged;  // samples that fail with TN_BAD_DATA; next continues after them
  bool empty_instance = false;
  bool fails_open = false;    // open fails and sets an invalid instance
  int64_t says_samples = -2;  // result of samples(); -2: the true number

  int64_t value_shape[1] = {3};
  tn_slot id = {sizeof(tn_slot), TN_I64, "id", TN_DENSE, 0, nullptr, -1, 0, 0, nullptr};
  int64_t text_shape[1] = {2}, bag_shape[1] = {1000};
  tn_slot value = {sizeof(tn_slot), TN_F32, "value", TN_DENSE, 1, value_shape, -1, 0, 0, nullptr};
  tn_slot words = {sizeof(tn_slot), TN_I64, "words", TN_RAGGED, 0, nullptr, -1, 1, 0, nullptr};
  tn_slot text = {sizeof(tn_slot), TN_F32, "text", TN_RAGGED, 1, text_shape, -1, 2, 0, nullptr};
  tn_slot bag = {sizeof(tn_slot), TN_F32, "bag", TN_CSR, 1, bag_shape, -1, 0, 0, nullptr};
  const tn_slot* slots[5] = {&id, &value, &words, &text, &bag};
  tn_reader_schema schema = {sizeof(tn_reader_schema), 2, slots};
  const tn_reader_schema* schema_given = &schema;

  MemoryData() = default;
  explicit MemoryData(int64_t how_many, bool sequences = false) : samples(how_many) {
    if (sequences) schema.slots_count = 5;
  }
  std::vector<std::string> names_given;  // slots of the lists of names that the reader got when it was opened
  MemoryData(const MemoryData&) = delete;
  MemoryData& operator=(const MemoryData&) = delete;
};

class MemoryInstance {
 public:
  static tn_status open(const tn_reader_open* open, void** instance) {
    auto& data = *reinterpret_cast<MemoryData*>(tn_int(open->attributes, "data", 0));
    if (data.empty_instance) return TN_OK;
    if (data.fails_open) {
      *instance = &data;
      return tn_fail(open->errors, TN_IO, nullptr, "cannot open it");
    }
    ++data.opened;
    data.names_given.clear();
    for (uint32_t i = 0; i < open->names_count; ++i) data.names_given.emplace_back(open->names[i]->slot);
    *instance = new MemoryInstance(data, *open);
    return TN_OK;
  }
  static void close(void* instance) {
    --of(instance).data_.opened;
    delete &of(instance);
  }
  static const tn_reader_schema* schema(void* instance) { return of(instance).data_.schema_given; }
  static int64_t samples(void* instance) {
    const MemoryInstance& it = of(instance);
    if (it.data_.says_samples != -2) return it.data_.says_samples;
    return it.data_.sized && it.data_.ends ? it.mine() : -1;
  }
  static tn_status read_at(void* instance, const int64_t* indices, int64_t count, const tn_reader_buffers* buffers) {
    MemoryInstance& it = of(instance);
    if (it.data_.calls++ == it.data_.fail_at) return it.broken();
    for (int64_t i = 0; i < count; ++i)
      if (it.is_damaged(indices[i])) return it.damage();
    Used used;
    bool room = true;
    for (int64_t i = 0; i < count; ++i) room = it.put(indices[i], buffers, i, used) && room;
    if (!room) return need(buffers, used);
    if (it.data_.spoil) it.data_.spoil(*buffers);
    return TN_OK;
  }
  static tn_status next(void* instance, const tn_reader_buffers* buffers, int64_t* count) {
    MemoryInstance& it = of(instance);
    *count = 0;
    if (it.data_.before_next) it.data_.before_next(it.cancel_);
    if (it.data_.before_write) it.data_.before_write(*buffers);
    if (it.data_.heeds_cancel && __atomic_load_n(it.cancel_, __ATOMIC_RELAXED) != 0)
      return tn_fail(it.errors_, TN_CANCELLED, nullptr, "stopped on request");
    if (it.data_.calls++ == it.data_.fail_at) return it.broken();
    if (it.data_.answer != TN_OK) return it.data_.answer;
    if (it.data_.ends && it.position_ == it.mine()) {
      it.position_ = 0;
      return TN_END;
    }
    if (it.is_damaged(it.position_)) {
      ++it.position_;
      return it.damage();
    }
    Used used;
    while (!it.is_damaged(it.position_) && *count < buffers->capacity && *count < it.data_.most &&
           (!it.data_.ends || it.position_ < it.mine())) {
      Used with = used;
      if (!it.put(it.position_, buffers, *count, with)) {
        if (*count == 0) return need(buffers, with);
        break;
      }
      used = with;
      ++it.position_;
      ++*count;
    }
    if (it.data_.spoil) it.data_.spoil(*buffers);
    *count += it.data_.count_offset;
    return TN_OK;
  }
  static int64_t position(void* instance) { return of(instance).position_; }
  static tn_status seek(void* instance, int64_t position) {
    MemoryInstance& it = of(instance);
    if (!it.data_.seeks) return tn_fail(it.errors_, TN_UNSUPPORTED, nullptr, "cannot seek");
    it.position_ = position;
    return TN_OK;
  }
  static const void* extension(void* /*user*/, const char* id) {
    static const tn_pass kPass = {sizeof(tn_pass), 0, begin_pass};
    return std::strcmp(id, TN_PASS) == 0 ? &kPass : nullptr;
  }

 private:
  struct Used {
    int64_t words = 0, inner = 0, text = 0, bag = 0;
  };

  MemoryInstance(MemoryData& data, const tn_reader_open& open)
      : data_(data), shard_(open.shard), shards_(open.shards), errors_(open.errors), cancel_(open.cancel) {}

  static MemoryInstance& of(void* instance) { return *static_cast<MemoryInstance*>(instance); }
  [[nodiscard]] int64_t mine() const { return (data_.samples - shard_ + shards_ - 1) / shards_; }
  [[nodiscard]] tn_status broken() const { return tn_fail(errors_, TN_IO, "records.bin", "cannot read it"); }
  [[nodiscard]] tn_status damage() const { return tn_fail(errors_, TN_BAD_DATA, "records.bin", "a damaged sample"); }
  [[nodiscard]] bool is_damaged(int64_t index) const {
    return std::find(data_.damaged.begin(), data_.damaged.end(), index * shards_ + shard_) != data_.damaged.end();
  }
  static tn_sequence_room* room(const tn_reader_buffers* buffers, size_t slot) {
    return static_cast<tn_sequence_room*>(buffers->data[slot]);
  }
  // Writes the rows that fit and counts all rows. Returns false if some do not fit.
  bool put(int64_t index, const tn_reader_buffers* buffers, int64_t to, Used& used) const {
    const int64_t id = index * shards_ + shard_;
    const auto base = static_cast<float>(id);
    const float value[3] = {base, base + 0.25F, base + 0.5F};
    std::memcpy(static_cast<int64_t*>(buffers->data[0]) + to, &id, sizeof id);
    std::memcpy(static_cast<float*>(buffers->data[1]) + 3 * to, value, sizeof value);
    return data_.schema.slots_count == 2 || put_sequences(id, buffers, to, used);
  }
  static bool put_sequences(int64_t id, const tn_reader_buffers* buffers, int64_t to, Used& used) {
    tn_sequence_room &words = *room(buffers, 2), &text = *room(buffers, 3), &bag = *room(buffers, 4);
    words.lengths[to] = id % 5;
    for (int64_t k = 0; k < id % 5; ++k, ++used.words)
      if (used.words < words.rows_capacity) static_cast<int64_t*>(words.rows)[used.words] = 10 * id + k;
    text.lengths[to] = id % 3;
    for (int64_t j = 0; j < id % 3; ++j, ++used.inner) {
      if (used.inner < text.inner_capacity) text.inner_lengths[used.inner] = (id + j) % 4;
      for (int64_t k = 0; k < (id + j) % 4; ++k, ++used.text) {
        if (used.text >= text.rows_capacity) continue;
        static_cast<float*>(text.rows)[2 * used.text] = static_cast<float>(id);
        static_cast<float*>(text.rows)[2 * used.text + 1] = static_cast<float>(10 * j + k);
      }
    }
    bag.lengths[to] = id % 4;
    for (int64_t k = 0; k < id % 4; ++k, ++used.bag) {
      if (used.bag >= bag.rows_capacity) continue;
      bag.ids[used.bag] = id + 100 * k;
      static_cast<float*>(bag.rows)[used.bag] = static_cast<float>(k) + 0.5F;
    }
    return used.words <= words.rows_capacity && used.inner <= text.inner_capacity && used.text <= text.rows_capacity &&
           used.bag <= bag.rows_capacity;
  }
  static tn_status need(const tn_reader_buffers* buffers, const Used& used) {
    room(buffers, 2)->rows_needed = used.words;
    room(buffers, 3)->inner_needed = used.inner;
    room(buffers, 3)->rows_needed = used.text;
    room(buffers, 4)->rows_needed = used.bag;
    return TN_NEED_CAPACITY;
  }
  static tn_status begin_pass(void* instance, int64_t pass) {
    MemoryData& data = of(instance).data_;
    const std::lock_guard lock(data.passes_mutex);
    data.passes.push_back(pass);
    return TN_OK;
  }

  MemoryData& data_;
  int64_t shard_, shards_;
  const tn_errors* errors_;
  const volatile int32_t* cancel_;
  int64_t position_ = 0;
};

// The reader type; `indexed`: with read_at.
inline ReaderType memory_reader_type(bool indexed) {
  ReaderType type;
  type.plugin = "test.memory";
  type.description.type = "memory";
  Attribute data;
  data.name = "data";
  data.kind = TN_ATTR_INT;
  data.required = true;
  type.description.attributes = {data};
  type.table.size = sizeof type.table;
  type.table.open = MemoryInstance::open;
  type.table.close = MemoryInstance::close;
  type.table.schema = MemoryInstance::schema;
  type.table.samples = MemoryInstance::samples;
  type.table.read_at = indexed ? MemoryInstance::read_at : nullptr;
  type.table.next = MemoryInstance::next;
  type.table.position = MemoryInstance::position;
  type.table.seek = MemoryInstance::seek;
  type.table.extension = MemoryInstance::extension;
  return type;
}

// The attributes of a reader of `data`.
inline Values memory_attributes(MemoryData& data) {
  return {{"data", static_cast<int64_t>(reinterpret_cast<intptr_t>(&data))}};
}

}  // namespace tenon_tests
