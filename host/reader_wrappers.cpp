// shuffle, first_n and batch: readers over readers. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "core/checked.h"
#include "core/philox.h"
#include "host/reader.h"

namespace tenon {

namespace {

// The memory of sample number `index` in a buffer that begins at `data`.
std::byte* sample_at(void* data, int64_t index, uint64_t bytes) {
  return static_cast<std::byte*>(data) + static_cast<uint64_t>(index) * bytes;
}

// One buffer per slot, each for `samples` samples.
std::vector<Buffer> buffers_for(const Reader& reader, int64_t samples, const std::shared_ptr<Allocator>& allocator) {
  std::vector<Buffer> buffers;
  for (const Slot& slot : reader.slots())
    buffers.emplace_back(allocator, checked_multiply(static_cast<uint64_t>(samples), slot.bytes, "bytes of a slot"));
  return buffers;
}

// The memory of sample number `index` in each buffer.
std::vector<void*> samples_at(const Reader& reader, const std::vector<Buffer>& buffers, int64_t index) {
  std::vector<void*> pointers;
  for (size_t i = 0; i < buffers.size(); ++i)
    pointers.push_back(sample_at(buffers[i].data(), index, reader.slots()[i].bytes));
  return pointers;
}

void require_room(int64_t capacity) {
  if (capacity < 1) fail(TN_INVALID, "capacity is ", capacity, "; expected at least 1");
}

void require_place(const char* who, int64_t pass, int64_t position, int64_t size) {
  if (pass < 0) fail(TN_INVALID, who, ": pass is ", pass, "; expected at least 0");
  if (position < 0 || (size >= 0 && position > size))
    fail(TN_INVALID, who, ": position ", position, " is not between 0 and ", size >= 0 ? text(size) : "the end");
}

// ---- shuffle

// A wrapper that changes the order; the slots stay. One pass has samples 0 .. size() - 1 of its own order.
class Shuffled : public Reader {
 public:
  [[nodiscard]] const std::vector<Slot>& slots() const final { return of_->slots(); }
  [[nodiscard]] int64_t size() const final { return of_->size(); }
  [[nodiscard]] bool indexed() const final { return false; }
  [[nodiscard]] int64_t position() const final { return position_; }
  void read_at(const int64_t*, int64_t, void* const*) final {
    fail(TN_UNSUPPORTED, "shuffle: samples cannot be read by index");
  }

 protected:
  Shuffled(std::shared_ptr<Reader> of, uint64_t seed) : of_(std::move(of)), seed_(seed) {}

  std::shared_ptr<Reader> of_;
  uint64_t seed_;
  int64_t pass_ = 0;
  int64_t position_ = 0;
};

class IndexedShuffle final : public Shuffled {
 public:
  IndexedShuffle(std::shared_ptr<Reader> of, uint64_t seed, std::shared_ptr<Allocator> allocator)
      : Shuffled(std::move(of), seed),
        memory_(std::move(allocator), checked_multiply(static_cast<uint64_t>(size()), uint64_t{8}, "shuffle")) {}

  int64_t next(void* const* buffers, int64_t capacity) override {
    require_room(capacity);
    if (position_ == size()) {
      ++pass_;
      position_ = 0;
      return 0;
    }
    if (ordered_ != pass_) draw_order();
    const int64_t count = std::min(capacity, size() - position_);
    of_->read_at(order() + position_, count, buffers);
    position_ += count;
    return count;
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("shuffle", pass, position, size());
    pass_ = pass;
    position_ = position;
  }

 private:
  [[nodiscard]] int64_t* order() const { return reinterpret_cast<int64_t*>(memory_.data()); }

  // Fisher and Yates, from the top down.
  void draw_order() {
    const Philox philox(seed_, static_cast<uint64_t>(pass_));
    int64_t* const at = order();
    for (int64_t i = 0; i < size(); ++i) at[i] = i;
    uint64_t counter = 0;
    for (int64_t i = size() - 1; i > 0; --i)
      std::swap(at[i], at[below(philox, &counter, static_cast<uint64_t>(i) + 1)]);
    ordered_ = pass_;
  }

  Buffer memory_;         // int64 [size]
  int64_t ordered_ = -1;  // the pass whose order is in memory_
};

// Keeps the buffer full and gives a random one of the samples in it. Each sample costs one draw, so the order does not
// depend on how many are asked for at a time.
class BufferShuffle final : public Shuffled {
 public:
  BufferShuffle(std::shared_ptr<Reader> of, int64_t buffer, uint64_t seed, const std::shared_ptr<Allocator>& allocator)
      : Shuffled(std::move(of), seed),
        room_(buffer),
        buffers_(buffers_for(*of_, buffer, allocator)),
        start_(samples_at(*of_, buffers_, 0)),
        free_(start_) {}

  int64_t next(void* const* buffers, int64_t capacity) override {
    require_room(capacity);
    if (late_) std::rethrow_exception(std::exchange(late_, nullptr));
    int64_t given = 0;
    try {
      while (given < capacity && take(buffers, given)) ++given;
    } catch (...) {
      if (given == 0) throw;
      late_ = std::current_exception();  // what was given is not lost: the next call throws
    }
    if (given == 0) begin(pass_ + 1);
    return given;
  }

  // Goes through the pass from its beginning: what is in the buffer depends on all samples before.
  void seek(int64_t pass, int64_t position) override {
    require_place("shuffle", pass, position, size());
    of_->seek(pass, 0);
    begin(pass);
    while (position_ < position)
      if (!take(nullptr, 0)) fail(TN_INVALID, "shuffle: position ", position, " is after the end, ", position_);
  }

 private:
  void begin(int64_t pass) {
    pass_ = pass;
    position_ = 0;
    filled_ = 0;
    draws_ = 0;
    ended_ = false;
    late_ = nullptr;
  }

  // Moves one sample out of the buffer, to sample number `index` of `to`; null: nowhere. False at the end of the pass.
  bool take(void* const* to, int64_t index) {
    while (filled_ < room_ && !ended_) {
      for (size_t i = 0; i < free_.size(); ++i) free_[i] = sample_at(start_[i], filled_, slots()[i].bytes);
      const int64_t count = of_->next(free_.data(), room_ - filled_);
      filled_ += count;
      ended_ = count == 0;
    }
    if (filled_ == 0) return false;
    const Philox philox(seed_, static_cast<uint64_t>(pass_));
    const auto chosen = static_cast<int64_t>(below(philox, &draws_, static_cast<uint64_t>(filled_)));
    --filled_;
    for (size_t i = 0; i < start_.size(); ++i) {
      const uint64_t bytes = slots()[i].bytes;
      std::byte* const sample = sample_at(start_[i], chosen, bytes);
      if (to != nullptr) std::memcpy(sample_at(to[i], index, bytes), sample, bytes);
      if (chosen != filled_) std::memcpy(sample, sample_at(start_[i], filled_, bytes), bytes);
    }
    ++position_;
    return true;
  }

  int64_t room_;  // samples in buffers_
  std::vector<Buffer> buffers_;
  std::vector<void*> start_, free_;  // the memory of the buffers, and of the first sample in each that is not in use
  int64_t filled_ = 0;
  uint64_t draws_ = 0;
  bool ended_ = false;       // the pass of of_
  std::exception_ptr late_;  // came when samples had been given
};

// ---- first_n

class FirstN final : public Reader {
 public:
  FirstN(std::shared_ptr<Reader> of, int64_t samples) : of_(std::move(of)), samples_(samples) {}

  [[nodiscard]] const std::vector<Slot>& slots() const override { return of_->slots(); }
  [[nodiscard]] int64_t size() const override { return of_->size() < 0 ? -1 : std::min(samples_, of_->size()); }
  [[nodiscard]] bool indexed() const override { return of_->indexed(); }
  [[nodiscard]] int64_t position() const override { return position_; }

  int64_t next(void* const* buffers, int64_t capacity) override {
    require_room(capacity);
    int64_t count = 0;
    if (position_ < samples_)
      count = of_->next(buffers, std::min(capacity, samples_ - position_));
    else
      skip_rest(buffers, capacity);
    if (count == 0) ++pass_;
    position_ = count == 0 ? 0 : position_ + count;
    return count;
  }

  void read_at(const int64_t* indices, int64_t count, void* const* buffers) override {
    for (int64_t i = 0; i < count; ++i)
      if (indices[i] < 0 || indices[i] >= size())
        fail(TN_INVALID, "first_n: sample ", indices[i], " does not exist; there are ", size());
    of_->read_at(indices, count, buffers);
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("first_n", pass, position, size() < 0 ? samples_ : size());
    of_->seek(pass, position);
    pass_ = pass;
    position_ = position;
  }

 private:
  // Brings the inner reader to the beginning of its next pass. One that cannot seek is read to the end of its pass,
  // into memory that the caller lends; one that has no end either just goes on.
  void skip_rest(void* const* buffers, int64_t capacity) {
    try {
      of_->seek(pass_ + 1, 0);
    } catch (const Error& error) {
      if (error.code() != TN_UNSUPPORTED) throw;
      while (of_->size() >= 0 && of_->next(buffers, capacity) != 0) {
      }
    }
  }

  std::shared_ptr<Reader> of_;
  int64_t samples_;
  int64_t pass_ = 0;
  int64_t position_ = 0;
};

}  // namespace

std::unique_ptr<Reader> shuffle(std::shared_ptr<Reader> of, int64_t buffer, uint64_t seed,
                                std::shared_ptr<Allocator> allocator) {
  if (buffer < 0) fail(TN_INVALID, "shuffle: buffer is ", buffer, "; expected at least 0");
  if (of->indexed()) return std::make_unique<IndexedShuffle>(std::move(of), seed, std::move(allocator));
  const int64_t size = of->size();
  if (buffer == 0 && size < 0)
    fail(TN_INVALID, "shuffle: the reader does not know how many samples it has, so a buffer size is needed");
  const int64_t room = std::max<int64_t>(buffer == 0 || (size >= 0 && size < buffer) ? size : buffer, 1);
  return std::make_unique<BufferShuffle>(std::move(of), room, seed, allocator);
}

std::unique_ptr<Reader> first_n(std::shared_ptr<Reader> of, int64_t samples) {
  if (samples < 0) fail(TN_INVALID, "first_n: samples is ", samples, "; expected at least 0");
  return std::make_unique<FirstN>(std::move(of), samples);
}

BatchReader::BatchReader(std::shared_ptr<Reader> of, int64_t samples, bool drop_last,
                         std::shared_ptr<Allocator> allocator)
    : of_(std::move(of)), batch_(samples), drop_last_(drop_last) {
  if (samples < 1) fail(TN_INVALID, "batch: samples is ", samples, "; expected at least 1");
  buffers_ = buffers_for(*of_, batch_, allocator);
  pointers_ = samples_at(*of_, buffers_, 0);
}

int64_t BatchReader::next() {
  while (filled_ < batch_ && !ended_) {
    for (size_t i = 0; i < pointers_.size(); ++i)
      pointers_[i] = sample_at(buffers_[i].data(), filled_, of_->slots()[i].bytes);
    const int64_t count = of_->next(pointers_.data(), batch_ - filled_);
    filled_ += count;
    ended_ = count == 0;
  }
  const int64_t given = drop_last_ && filled_ < batch_ ? 0 : filled_;
  filled_ = 0;
  if (given == 0) {
    ended_ = false;
    ++pass_;
  }
  return given;
}

void BatchReader::restart() {
  if (ended_) {  // the pass is over, only nobody was told yet
    ended_ = false;
    filled_ = 0;
    ++pass_;
    return;
  }
  if (filled_ == 0 && of_->position() == 0) return;
  try {
    of_->seek(pass_, 0);
    filled_ = 0;
  } catch (const Error& error) {
    if (error.code() != TN_UNSUPPORTED) throw;
  }
}

}  // namespace tenon
