// Wrappers that shuffle samples. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>

#include "core/checked.h"
#include "core/philox.h"
#include "host/readers/wrapper.h"

namespace tenon::host {

namespace {

// Reads samples 0 .. size() - 1 by index, in a new permutation in each pass.
class IndexedShuffle final : public Wrapper {
 public:
  IndexedShuffle(std::shared_ptr<Reader> of, uint64_t seed, std::shared_ptr<Allocator> allocator)
      : Wrapper(std::move(of)),
        seed_(seed),
        memory_(std::move(allocator), checked_multiply(static_cast<uint64_t>(size()), uint64_t{8}, "shuffle")) {}

  int64_t next(SampleBlock& to, int64_t most) override {
    require_room("shuffle", most);
    if (position() == size()) return given(0);
    if (ordered_ != pass()) draw_order();
    return give_at(*of_, order() + position(), std::min(most, size() - position()), to);
  }

  [[nodiscard]] std::string whole_reason() const override { return ""; }
  PartRead next_part(SampleBlock& to, int64_t most, const MinibatchPart& part) override {
    if (position() == size()) return {given(0), 0};
    if (ordered_ != pass()) draw_order();
    const int64_t samples = std::min(most, size() - position());
    const ShardRange range = part.range(samples, position());
    if (range.count > 0) of_->read_at(order() + position() + range.first, range.count, to);
    return {given(samples), range.first};
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("shuffle", pass, position, size());
    place(pass, position);
  }

 protected:
  [[nodiscard]] int64_t source_index(int64_t) const override { fail_order(); }

 private:
  [[nodiscard]] int64_t* order() const { return reinterpret_cast<int64_t*>(memory_.data()); }

  // Fisher-Yates shuffle, from the last index down.
  void draw_order() {
    of_->begin_pass(pass());
    const Philox philox(seed_, static_cast<uint64_t>(pass()));
    int64_t* const at = order();
    for (int64_t i = 0; i < size(); ++i) at[i] = i;
    uint64_t counter = 0;
    for (int64_t i = size() - 1; i > 0; --i)
      std::swap(at[i], at[below(philox, &counter, static_cast<uint64_t>(i) + 1)]);
    ordered_ = pass();
  }

  uint64_t seed_;
  Buffer memory_;         // int64 [size]
  int64_t ordered_ = -1;  // the pass whose order is in memory_
};

// Keeps a window of samples full and returns a random one of them. Each sample takes one random number, so the order
// does not depend on how many samples a call of next asks for.
class BufferShuffle final : public Wrapper {
 public:
  BufferShuffle(std::shared_ptr<Reader> of, int64_t window, uint64_t seed, const std::shared_ptr<Allocator>& allocator)
      : Wrapper(std::move(of)), seed_(seed), size_(window), held_(of_->slots(), allocator) {
    if (size() >= 0) held_.reserve(size() == window ? window : checked_add(window, most_given() + kPiece, "shuffle"));
  }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_room("shuffle", most);
    if (late_) std::rethrow_exception(std::exchange(late_, nullptr));
    int64_t count = 0;
    try {
      while (count < most && take(&to, most - count)) ++count;
    } catch (...) {
      if (count == 0) throw;
      late_ = std::current_exception();  // returns the samples so far; the next call throws
    }
    if (count == 0) begin(pass() + 1);
    return count;
  }

  [[nodiscard]] std::string whole_reason() const override {
    const std::string reason = of_->whole_reason();
    return reason.empty() ? "shuffle draws from a buffer of samples" : reason;
  }

  // Reads the pass from its beginning, since the window depends on all earlier samples.
  void seek(int64_t pass, int64_t position) override {
    require_place("shuffle", pass, position, size());
    go_or_stay([this](int64_t to_pass, int64_t to) { go(to_pass, to); }, pass, position);
  }

 protected:
  [[nodiscard]] int64_t source_index(int64_t) const override { fail_order(); }

 private:
  static constexpr int64_t kPiece = 64;  // samples that are read at once when the window is nearly full
  // Once held_ contains so many samples that were returned, they are removed from it.
  [[nodiscard]] int64_t most_given() const { return size_ / 2; }

  void go(int64_t pass, int64_t position) {
    of_->seek(pass, 0);
    begin(pass);
    while (this->position() < position)
      if (!take(nullptr, position - this->position()))
        fail(TN_INVALID, ComponentName{"shuffle"}, "position ", position, " is after the end, ", this->position());
  }

  void begin(int64_t pass) {
    place(pass, 0);
    held_.clear();
    window_.clear();
    seen_ = 0;
    draws_ = 0;
    ended_ = false;
    late_ = nullptr;
  }

  // Removes one sample from the window and appends it to `to`, if that is not null. Returns false at the end of the
  // pass. wanted: so many samples will be taken, if the pass has them; bounds how many are read at once.
  bool take(SampleBlock* to, int64_t wanted) {
    while (static_cast<int64_t>(window_.size()) < size_) {
      const int64_t room = size_ - static_cast<int64_t>(window_.size());
      if (seen_ == held_.samples() && !read(std::max(room, std::min(wanted, kPiece)))) break;
      window_.push_back(seen_++);
    }
    if (window_.empty()) return false;
    const Philox philox(seed_, static_cast<uint64_t>(pass()));
    uint64_t draws = draws_;
    int64_t& chosen = window_[below(philox, &draws, window_.size())];
    if (to != nullptr) to->append(held_, chosen, 1);
    draws_ = draws;
    chosen = window_.back();
    window_.pop_back();
    given(1);
    return true;
  }

  // Reads at most `most` samples into held_. Returns false at the end of the pass.
  bool read(int64_t most) {
    if (ended_) return false;
    if (seen_ - static_cast<int64_t>(window_.size()) >= std::max<int64_t>(most_given(), 1)) remove_given();
    ended_ = of_->next(held_, most) == 0;
    return !ended_;
  }

  // Removes the returned samples from held_ and renumbers the window.
  void remove_given() {
    std::vector<int64_t> kept = window_;
    std::sort(kept.begin(), kept.end());
    held_.retain(kept);
    for (int64_t& sample : window_) sample = std::lower_bound(kept.begin(), kept.end(), sample) - kept.begin();
    seen_ = held_.samples();
  }

  uint64_t seed_;
  int64_t size_;                 // of the full window
  SampleBlock held_;             // the window, later samples, and some returned ones
  std::vector<int64_t> window_;  // sample numbers in held_
  int64_t seen_ = 0;             // samples of held_ that have entered the window
  uint64_t draws_ = 0;
  bool ended_ = false;       // the pass of of_ has ended
  std::exception_ptr late_;  // a failure for the next call to throw
};

}  // namespace

std::unique_ptr<Reader> shuffle(std::shared_ptr<Reader> of, int64_t buffer, uint64_t seed,
                                std::shared_ptr<Allocator> allocator) {
  require_samples("shuffle", *of);
  require_start("shuffle", *of);
  if (buffer < 0) fail(TN_INVALID, ComponentName{"shuffle"}, "buffer is ", buffer, "; expected at least 0");
  if (of->indexed()) return std::make_unique<IndexedShuffle>(std::move(of), seed, std::move(allocator));
  const int64_t size = of->size();
  if (buffer == 0 && size < 0)
    fail(TN_INVALID, ComponentName{"shuffle"},
         "the reader does not know how many samples it has, so a buffer size is needed");
  const int64_t window = std::max<int64_t>(buffer == 0 || (size >= 0 && size < buffer) ? size : buffer, 1);
  return std::make_unique<BufferShuffle>(std::move(of), window, seed, allocator);
}

}  // namespace tenon::host
