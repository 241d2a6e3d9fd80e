// What wrappers of readers share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "host/readers/reader.h"

namespace tenon {

inline void require_room(const char* who, int64_t most) {
  if (most < 1) fail(TN_INVALID, ComponentName{who}, "room for ", most, " samples; expected at least 1");
}

// A wrapper takes samples, before they are cut into minibatches.
inline void require_samples(const char* who, const Reader& of) {
  if (of.batch() != 0)
    fail(TN_MISUSE, ComponentName{who}, "the reader yields minibatches already; put ", who, " before batch and bucket");
}

inline void require_minibatches(const char* who, const Reader& of) {
  if (of.batch() == 0)
    fail(TN_MISUSE, ComponentName{who}, "the reader yields samples; put ", who, " after batch or bucket");
}

// A wrapper that goes through passes begins with the first sample of one.
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

// Calls `read`, which reads `of`. Where it fails and `of` has passed over a damaged sample, `passed` is called first.
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

// A reader that counts by itself what it gives, and what it passes over because it is damaged.
class CountingReader : public Reader {
 public:
  [[nodiscard]] int64_t pass() const final { return pass_; }
  [[nodiscard]] int64_t position() const final { return position_; }

 protected:
  // The samples of `of` at these indices, one at least, as next gives them: a damaged one ends what is given before it,
  // and once it is the first, the call fails and passes over it.
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
  // Goes to a place by reading; where that fails, back to where this reader was.
  template <typename Go>
  void go_or_stay(const Go& go, int64_t pass, int64_t position) {
    const int64_t old_pass = pass_, old_position = position_;
    try {
      go(pass, position);
    } catch (...) {
      try {
        go(old_pass, old_position);
      } catch (const Error&) {  // the first failure is the one to tell
      }
      throw;
    }
  }
  // next gave so many; 0: the pass ended.
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
  void begin_pass(int64_t pass) override { of_->begin_pass(pass); }
  void cancel(bool on) override { of_->cancel(on); }

 protected:
  explicit Wrapper(std::shared_ptr<Reader> of) : of_(std::move(of)) { place(of_->pass(), of_->position()); }
  // Where of_ is, but for the samples of it that are held here. Also after a failure: of_ may have passed over some.
  void follow(int64_t held) { place(of_->pass(), of_->position() - held); }
  // Calls `read`, which reads of_, and nothing of it is held here when it fails.
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

// A reader, and the samples that were read of it and not yet used.
class Ahead {
 public:
  Ahead(std::shared_ptr<Reader> of, const std::shared_ptr<Allocator>& allocator)
      : of_(std::move(of)), block_(of_->slots(), allocator) {}

  [[nodiscard]] SampleBlock& block() { return block_; }
  [[nodiscard]] const SampleBlock& block() const { return block_; }
  [[nodiscard]] int64_t used() const { return used_; }  // of the block
  // None where the block was taken away as a whole.
  [[nodiscard]] int64_t left() const { return std::max<int64_t>(block_.samples() - used_, 0); }
  [[nodiscard]] bool ended() const { return ended_ && left() == 0; }
  // Where the reader would be had it read no more than was used; until it has ended.
  [[nodiscard]] int64_t position() const { return of_->position() - left(); }
  void use(int64_t samples) { used_ += samples; }
  // Reads, where none are left, at most `most`; false once the pass has ended.
  bool fill(int64_t most) {
    if (left() > 0) return true;
    if (ended_) return false;
    block_.clear();
    used_ = 0;
    ended_ = of_->next(block_, most) == 0;
    return !ended_;
  }
  // The pass that ended is over for the one who reads, too.
  void begin() { ended_ = false; }
  // The reader was moved elsewhere.
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

}  // namespace tenon
