// Base classes and checks of the wrappers of readers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include "base/nearest.h"
#include "core/error.h"
#include "host/readers/reader.h"

namespace tenon::host {

using namespace core;

inline void require_room(const char* who, int64_t most) {
  if (most < 1) fail(TN_INVALID, ComponentName{who}, "room for ", most, " samples; expected at least 1");
}

// Most wrappers take samples, before they are cut into minibatches.
inline void require_samples(const char* who, const Reader& of) {
  if (of.batch() != 0)
    fail(TN_MISUSE, ComponentName{who}, "the reader yields minibatches already; put ", who, " before batch and bucket");
}

inline void require_minibatches(const char* who, const Reader& of) {
  if (of.batch() == 0)
    fail(TN_MISUSE, ComponentName{who}, "the reader yields samples; put ", who, " after batch or bucket");
}

// A wrapper that counts in passes must begin with the first sample of one.
inline void require_start(const char* who, const Reader& of) {
  if (of.position() != 0)
    fail(TN_MISUSE, ComponentName{who}, "the reader has given ", of.position(),
         " samples of its pass; seek to the beginning of a pass before it is wrapped");
}

inline void require_place(const char* who, int64_t pass, int64_t position, int64_t size) {
  constexpr int64_t kMost = int64_t{1} << 62;  // so that samples can be added
  if (pass < 0 || pass > kMost) fail(TN_INVALID, ComponentName{who}, "pass ", pass, " is not between 0 and 2^62");
  if (position > kMost) fail(TN_INVALID, ComponentName{who}, "position ", position, " is not between 0 and 2^62");
  if (position < 0 || (size >= 0 && position > size))
    fail(TN_INVALID, ComponentName{who}, "position ", position, " is not between 0 and ",
         size >= 0 ? text(size) : "the end");
}

inline void require_indices(const char* who, const int64_t* indices, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i)
    if (indices[i] < 0 || indices[i] >= size)
      fail(TN_INVALID, ComponentName{who}, "sample ", indices[i], " does not exist; there are ", size);
}

// Returns the number of a slot. Throws an Error of `code` if the reader has none of this name.
inline size_t slot_number(const char* who, const Reader& of, const std::string& name, tn_status code = TN_INVALID) {
  std::vector<std::string> known;
  for (const Slot& slot : of.slots()) {
    if (slot.name == name) return known.size();
    known.push_back(slot.name);
  }
  fail(code, ComponentName{who}, SubjectName{name}, "the reader has no slot \"", name, "\"",
       base::suggestion(name, known));
}

// Calls `read`, which reads `of`. If it throws and `of` has skipped a damaged sample, calls `passed` before rethrowing.
template <typename Read, typename Passed>
auto noticing(const Reader& of, const Read& read, const Passed& passed) {
  const int64_t before = of.position();
  try {
    return read();
  } catch (const Error&) {
    if (of.position() == before + 1) passed();
    throw;
  }
}

[[noreturn]] inline void fail_order() {
  fail(TN_UNSUPPORTED, "the samples are not in the order of the data, so their records are unknown");
}

// A reader that keeps its own position: counts the samples that it returns and the damaged ones that it skips.
class CountingReader : public Reader {
 public:
  [[nodiscard]] int64_t pass() const final { return pass_; }
  [[nodiscard]] int64_t position() const final { return position_; }

 protected:
  // Appends the samples of `of` at these indices, one at least, up to the first damaged one. If the first sample is
  // damaged, throws and skips it, as next does.
  int64_t give_at(Reader& of, const int64_t* indices, int64_t count, SampleBlock& to) {
    try {
      of.read_at(indices, count, to);
      return given(count);
    } catch (const Error& error) {
      if (error.code() != TN_BAD_DATA) throw;
    }
    int64_t done = 0;
    try {
      for (; done < count; ++done) of.read_at(indices + done, 1, to);
    } catch (const Error& error) {
      if (done == 0 && error.code() == TN_BAD_DATA) place(pass_, position_ + 1);
      if (done == 0) throw;
    }
    return given(done);
  }
  // Seeks with `go`, which reads; if it throws, seeks back to the old place.
  template <typename Go>
  void go_or_stay(const Go& go, int64_t pass, int64_t position) {
    const int64_t old_pass = pass_, old_position = position_;
    try {
      go(pass, position);
    } catch (...) {
      try {
        go(old_pass, old_position);
      } catch (const Error&) {  // the first failure is the one to report
      }
      throw;
    }
  }
  // Calls `read`, which reads a part of a minibatch from the position on, and advances the position. If it throws,
  // seeks back.
  template <typename Read>
  PartRead part_or_stay(const Read& read) {
    const int64_t old_pass = pass_, old_position = position_;
    try {
      const PartRead part = read();
      given(part.samples);
      return part;
    } catch (...) {
      try {
        seek(old_pass, old_position);
      } catch (const Error&) {  // the first failure is the one to report
      }
      throw;
    }
  }
  // Advances the position by `samples`, the result of next; 0 begins the next pass. Returns `samples`.
  int64_t given(int64_t samples) {
    if (samples == 0)
      place(pass_ + 1, 0);
    else
      place(pass_, position_ + samples);
    return samples;
  }
  void place(int64_t pass, int64_t position) {
    pass_ = pass;
    position_ = position;
  }

 private:
  int64_t pass_ = 0, position_ = 0;
};

// A wrapper over one reader.
class Wrapper : public CountingReader {
 public:
  [[nodiscard]] const std::vector<Slot>& slots() const override { return of_->slots(); }
  [[nodiscard]] int64_t size() const override { return of_->size(); }
  [[nodiscard]] std::string whole_reason() const override { return of_->whole_reason(); }
  void begin_pass(int64_t pass) override { of_->begin_pass(pass); }
  void cancel(bool on) override { of_->cancel(on); }
  [[nodiscard]] int64_t left_out() const override { return of_->left_out(); }
  [[nodiscard]] int64_t record(int64_t index) const override { return of_->record(source_index(index)); }
  std::string text_of(int64_t index, const std::string& column) override {
    return of_->text_of(source_index(index), column);
  }

 protected:
  // The sample of the wrapped reader that sample `index` of this one is.
  [[nodiscard]] virtual int64_t source_index(int64_t index) const { return index; }
  explicit Wrapper(std::shared_ptr<Reader> of) : of_(std::move(of)) { place(of_->pass(), of_->position()); }
  // Sets the position to that of of_ before the `held` samples that this wrapper has read but not returned. Also called
  // after a failure, since of_ may have skipped a damaged sample.
  void follow(int64_t held) { place(of_->pass(), of_->position() - held); }
  // Drops the samples that this wrapper has read but not returned, for a part of a minibatch that is read next.
  void drop_held() {
    if (of_->position() != position()) seek(pass(), position());
  }
  // Calls `read`, which reads of_. Follows of_ if that throws; the wrapper holds no samples then.
  template <typename Read>
  auto followed(const Read& read) {
    try {
      return read();
    } catch (const Error&) {
      follow(0);
      throw;
    }
  }
  std::shared_ptr<Reader> of_;
};

// A reader, and the samples read from it that are not used yet.
class Ahead {
 public:
  Ahead(std::shared_ptr<Reader> of, const std::shared_ptr<Allocator>& allocator)
      : of_(std::move(of)), block_(of_->slots(), allocator) {}

  [[nodiscard]] SampleBlock& block() { return block_; }
  [[nodiscard]] const SampleBlock& block() const { return block_; }
  [[nodiscard]] int64_t used() const { return used_; }  // samples of the block
  // 0 if the block was moved away as a whole.
  [[nodiscard]] int64_t left() const { return std::max<int64_t>(block_.samples() - used_, 0); }
  [[nodiscard]] bool ended() const { return ended_ && left() == 0; }
  // The reader's position without the samples not used yet. Valid until the pass has ended.
  [[nodiscard]] int64_t position() const { return of_->position() - left(); }
  void use(int64_t samples) { used_ += samples; }
  // Reads at most `most` samples if none are left. Returns false once the pass has ended.
  bool fill(int64_t most) {
    if (left() > 0) return true;
    if (ended_) return false;
    block_.clear();
    used_ = 0;
    ended_ = of_->next(block_, most) == 0;
    return !ended_;
  }
  // Clears the end-of-pass flag so that the next pass can be read.
  void begin() { ended_ = false; }
  // Forgets the samples and the end of the pass. Call it after a seek of the reader.
  void drop() {
    block_.clear();
    used_ = 0;
    ended_ = false;
  }

 private:
  std::shared_ptr<Reader> of_;
  SampleBlock block_;
  int64_t used_ = 0;
  bool ended_ = false;
};

}  // namespace tenon::host
