// What wrappers of readers share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "core/error.h"
#include "host/reader.h"

namespace tenon {

inline void require_room(const char* who, int64_t most) {
  if (most < 1) fail(TN_INVALID, who, ": room for ", most, " samples; expected at least 1");
}

// A wrapper takes samples, before they are cut into minibatches.
inline void require_samples(const char* who, const Reader& of) {
  if (of.batch() != 0)
    fail(TN_MISUSE, who, ": the reader yields minibatches already; put ", who, " before batch and bucket");
}

inline void require_minibatches(const char* who, const Reader& of) {
  if (of.batch() == 0) fail(TN_MISUSE, who, ": the reader yields samples; put ", who, " after batch or bucket");
}

inline void require_place(const char* who, int64_t pass, int64_t position, int64_t size) {
  if (pass < 0) fail(TN_INVALID, who, ": pass is ", pass, "; expected at least 0");
  if (position < 0 || (size >= 0 && position > size))
    fail(TN_INVALID, who, ": position ", position, " is not between 0 and ", size >= 0 ? text(size) : "the end");
}

inline void require_indices(const char* who, const int64_t* indices, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i)
    if (indices[i] < 0 || indices[i] >= size)
      fail(TN_INVALID, who, ": sample ", indices[i], " does not exist; there are ", size);
}

// A reader that counts by itself what it gives.
class CountingReader : public Reader {
 public:
  [[nodiscard]] int64_t pass() const final { return pass_; }
  [[nodiscard]] int64_t position() const final { return position_; }

 protected:
  // next gave so many; 0: the pass ended.
  int64_t given(int64_t samples) {
    samples == 0 ? place(pass_ + 1, 0) : place(pass_, position_ + samples);
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
  explicit Wrapper(std::shared_ptr<Reader> of) : of_(std::move(of)) {}
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
  [[nodiscard]] int64_t left() const { return block_.samples() - used_; }
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
