/* Tenon SDK for C++17: the slots of a reader, and the host's buffers for samples.
 * SPDX-License-Identifier: MIT
 *
 * tenon/reader.hpp passes a tn::Samples to a reader, which writes one sample after the other into it. */
#ifndef TENON_SAMPLES_HPP
#define TENON_SAMPLES_HPP

#include <tenon/reader.h>

#include <cstring>
#include <memory>
#include <string>
#include <tenon/base.hpp>
#include <type_traits>
#include <vector>

namespace tn {

// The names of a slot's values, in the order of their numbers, or those of its columns. Borrows the texts.
class Names {
 public:
  template <typename Texts>
  explicit Names(const Texts& texts) {
    for (const auto& text : texts) texts_.push_back({text.data(), text.size()});
    table_.size = sizeof table_;
    table_.count = static_cast<int64_t>(texts_.size());
    table_.texts = texts_.data();
  }
#if TN_TARGET_MINOR >= 4
  // columns: the names of the elements of a vector.
  template <typename Texts, typename Columns, uint16_t kMinor = 4>
  Names(const Texts& texts, const Columns& columns) : Names(texts) {
    require<kMinor>();
    for (const auto& column : columns) columns_.push_back({column.data(), column.size()});
    table_.columns_count = static_cast<int64_t>(columns_.size());
    table_.columns = columns_.data();
  }
#endif
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;
  const tn_names* get() const { return &table_; }

 private:
  std::vector<tn_text> texts_, columns_;
  tn_names table_ = {};
};

// One slot in owning form; tn_slot documents the members.
struct ReaderSlot {
  std::string name;
  tn_dtype dtype = TN_F32;
  std::vector<int64_t> shape = {};
  int64_t index_limit = -1;
  int32_t storage = TN_DENSE;
  uint32_t levels = 1;  // of TN_RAGGED
  std::shared_ptr<const Names> names = {};
};

// The buffers for the samples of one call, and the position of the sample that is being written. A sample that does not
// fit is only counted, so a reader writes every sample without checking capacity.
class Samples {
 public:
  // The number of the pass that the sample is read for, from 0.
  int64_t pass() const { return pass_; }

  // TN_DENSE: the sample's memory.
  // T: void, a type of one byte, or one of the size of the slot's elements.
  template <typename T = void>
  T* dense(size_t slot) {
    State& state = written(slot, TN_DENSE);
    if constexpr (!std::is_void_v<T>) {
      if (sizeof(T) != 1 && sizeof(T) != state.element_bytes)
        throw Failure(TN_PLUGIN_FAULT, state.name,
                      "is written as elements of " + std::to_string(sizeof(T)) + " bytes; expected " +
                          std::to_string(state.element_bytes));
    }
    return reinterpret_cast<T*>(static_cast<uint8_t*>(data_[slot]) + static_cast<uint64_t>(count_) * state.bytes);
  }
  // TN_RAGGED of one level: `count` rows of the slot's element type.
  void rows(size_t slot, const void* rows, int64_t count) {
    State& state = written(slot, TN_RAGGED);
    tn_sequence_room& room = room_of(slot);
    if (fits(state.rows, count, room.rows_capacity)) {
      put(room.rows, state.rows, rows, count, state.bytes);
      room.lengths[count_] = count;
    }
    state.new_rows = count;
  }
  // TN_RAGGED of two levels: concatenated rows, and the number of rows of each of the `count` inner sequences.
  void sequences(size_t slot, const void* rows, const int64_t* lengths, int64_t count) {
    State& state = written(slot, TN_RAGGED);
    tn_sequence_room& room = room_of(slot);
    state.new_rows = 0;
    for (int64_t i = 0; i < count; ++i) state.new_rows += lengths[i];
    state.new_inner = count;
    if (!fits(state.rows, state.new_rows, room.rows_capacity) || !fits(state.inner, count, room.inner_capacity)) return;
    put(room.rows, state.rows, rows, state.new_rows, state.bytes);
    put(room.inner_lengths, state.inner, lengths, count, sizeof *lengths);
    room.lengths[count_] = count;
  }
  // TN_CSR: `count` entries; ids must rise.
  void entries(size_t slot, const int64_t* ids, const float* values, int64_t count) {
    State& state = written(slot, TN_CSR);
    tn_sequence_room& room = room_of(slot);
    if (fits(state.rows, count, room.rows_capacity)) {
      put(room.rows, state.rows, values, count, sizeof *values);
      put(room.ids, state.rows, ids, count, sizeof *ids);
      room.lengths[count_] = count;
    }
    state.new_rows = count;
  }

  // The functions below are for the wrapper: they set the slots, start a call, keep samples, and report capacity.
  explicit Samples(const std::vector<ReaderSlot>& slots) {
    for (const ReaderSlot& slot : slots) {
      State state;
      state.name = slot.name;
      state.storage = slot.storage;
      state.element_bytes = state.bytes = tn_dtype_bytes(slot.dtype);
      if (slot.storage != TN_CSR)
        for (const int64_t dim : slot.shape) state.bytes *= static_cast<uint64_t>(dim);
      states_.push_back(state);
    }
  }
  void begin(const tn_reader_buffers* buffers, int64_t pass) {
    if (buffers->slots_count != states_.size())
      throw Failure(TN_INVALID, "buffers",
                    "expected " + std::to_string(states_.size()) + ", got " + std::to_string(buffers->slots_count));
    data_ = buffers->data;
    count_ = 0;
    pass_ = pass;
    for (State& state : states_) {
      state.rows = state.inner = state.new_rows = state.new_inner = 0;
      state.written = false;
    }
  }
  // True if all samples since begin fit, the current one included.
  bool fits() const {
    for (size_t slot = 0; slot < states_.size(); ++slot) {
      const State& state = states_[slot];
      if (state.storage == TN_DENSE) continue;
      const tn_sequence_room& room = room_of(slot);
      if (!fits(state.rows, state.new_rows, room.rows_capacity) ||
          !fits(state.inner, state.new_inner, room.inner_capacity))
        return false;
    }
    return true;
  }
  // Keeps the current sample and moves on to the next.
  void commit() {
    ++count_;
    for (State& state : states_) {
      if (!state.written) throw Failure(TN_PLUGIN_FAULT, state.name, "is not written for every sample");
      state.written = false;
      state.rows += state.new_rows;
      state.inner += state.new_inner;
      state.new_rows = state.new_inner = 0;
    }
  }
  int64_t count() const { return count_; }
  // Sets the `needed` members to the capacity that all samples since begin need.
  void report_needed() {
    for (size_t slot = 0; slot < states_.size(); ++slot) {
      if (states_[slot].storage == TN_DENSE) continue;
      room_of(slot).rows_needed = states_[slot].rows + states_[slot].new_rows;
      room_of(slot).inner_needed = states_[slot].inner + states_[slot].new_inner;
    }
  }

 private:
  struct State {
    std::string name;
    int32_t storage = TN_DENSE;
    bool written = false;  // for the current sample
    uint64_t element_bytes = 0;
    uint64_t bytes = 0;                   // of one sample, row or value
    int64_t rows = 0, inner = 0;          // of the samples kept so far
    int64_t new_rows = 0, new_inner = 0;  // of the current sample
  };

  // Returns the state of a slot that is about to be written.
  State& written(size_t slot, int32_t storage) {
    if (slot >= states_.size())
      throw Failure(TN_PLUGIN_FAULT, "slots",
                    "number " + std::to_string(slot) + " is written; there are " + std::to_string(states_.size()));
    State& state = states_[slot];
    if (state.storage != storage)
      throw Failure(TN_PLUGIN_FAULT, state.name, "is written by the function of another storage");
    state.written = true;
    return state;
  }
  static bool fits(int64_t used, int64_t more, int64_t capacity) { return more <= capacity - used; }
  static void put(void* to, int64_t at, const void* from, int64_t count, uint64_t bytes) {
    if (count == 0) return;
    std::memcpy(static_cast<uint8_t*>(to) + static_cast<uint64_t>(at) * bytes, from,
                static_cast<uint64_t>(count) * bytes);
  }
  tn_sequence_room& room_of(size_t slot) const { return *static_cast<tn_sequence_room*>(data_[slot]); }

  std::vector<State> states_;
  void* const* data_ = nullptr;
  int64_t count_ = 0;  // samples kept
  int64_t pass_ = 0;
};

}  // namespace tn
#endif
