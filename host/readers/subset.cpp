// Wrappers that read a part of the samples: first_n, shard and split. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/checked.h"
#include "core/philox.h"
#include "host/readers/wrapper.h"

namespace tenon::host {

namespace {

class FirstN final : public Wrapper {
 public:
  FirstN(std::shared_ptr<Reader> of, int64_t samples, const std::shared_ptr<Allocator>& allocator)
      : Wrapper(std::move(of)), samples_(samples), skipped_(of_->slots(), allocator) {}

  [[nodiscard]] int64_t size() const override { return of_->size() < 0 ? -1 : std::min(samples_, of_->size()); }
  [[nodiscard]] bool indexed() const override { return of_->indexed(); }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_room("first_n", most);
    if (position() < samples_)
      return noticing(
          *of_, [&] { return given(of_->next(to, std::min(most, samples_ - position()))); },
          [&] { place(pass(), position() + 1); });
    skip_rest();
    return given(0);
  }

  PartRead next_part(SampleBlock& to, int64_t most, const MinibatchPart& part) override {
    if (position() < samples_)
      return part_or_stay([&] { return of_->next_part(to, std::min(most, samples_ - position()), part); });
    skip_rest();
    return {given(0), 0};
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    require_indices("first_n", indices, count, size());
    of_->read_at(indices, count, to);
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("first_n", pass, position, size() < 0 ? samples_ : size());
    of_->seek(pass, position);
    place(pass, position);
  }

 private:
  // Brings the inner reader to the beginning of its next pass. A reader that cannot seek is read to the end of its
  // pass; if its size is unknown, too, it may have no end and just continues.
  void skip_rest() {
    try {
      of_->seek(pass() + 1, 0);
    } catch (const Error& error) {
      if (error.code() != TN_UNSUPPORTED) throw;
      constexpr int64_t kPiece = 64;
      while (of_->size() >= 0 && of_->next(skipped_, kPiece) != 0) skipped_.clear();
    }
  }

  int64_t samples_;
  SampleBlock skipped_;
};

class Shard final : public Wrapper {
 public:
  Shard(std::shared_ptr<Reader> of, int64_t shard, int64_t shards, const std::shared_ptr<Allocator>& allocator)
      : Wrapper(std::move(of)), shard_(shard), shards_(shards), ahead_(of_, allocator) {}

  [[nodiscard]] int64_t size() const override {
    const int64_t all = of_->size();
    return all < 0 ? -1 : all > shard_ ? (all - shard_ - 1) / shards_ + 1 : 0;
  }
  [[nodiscard]] bool indexed() const override { return of_->indexed(); }
  [[nodiscard]] std::string whole_reason() const override {
    return indexed() || !of_->whole_reason().empty() ? of_->whole_reason()
                                                     : "shard reads the samples of all shards in their order";
  }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_room("shard", most);
    return indexed() ? by_index(to, most) : given(in_order(to, most));
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    require_indices("shard", indices, count, size());
    indices_.assign(indices, indices + count);
    for (int64_t& index : indices_) index = index * shards_ + shard_;
    of_->read_at(indices_.data(), count, to);
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("shard", pass, position, size());
    if (indexed()) {
      of_->begin_pass(pass);
    } else {
      // Behind the last sample that was returned: samples after it need not exist.
      const int64_t at =
          position == 0 ? 0 : checked_add(checked_multiply(position - 1, shards_, "shard"), shard_ + 1, "shard");
      of_->seek(pass, at);
      ahead_.drop();
      passed_ = at % shards_;
    }
    place(pass, position);
  }

 protected:
  [[nodiscard]] int64_t source_index(int64_t index) const override { return index * shards_ + shard_; }

 private:
  int64_t by_index(SampleBlock& to, int64_t most) {
    const int64_t count = std::min(most, size() - position());
    if (count == 0) {
      of_->begin_pass(pass() + 1);
      return given(0);
    }
    indices_.clear();
    for (int64_t i = 0; i < count; ++i) indices_.push_back((position() + i) * shards_ + shard_);
    return give_at(*of_, indices_.data(), count, to);
  }

  // Reads all samples and drops those of other shards.
  int64_t in_order(SampleBlock& to, int64_t most) {
    Mark mark(to);
    int64_t count = 0;
    while (count == 0 && fill(most)) {
      int64_t used = 0, passed = passed_;
      for (; count < most && used < ahead_.left(); ++used, passed = (passed + 1) % shards_)
        if (passed == shard_) {
          to.append(ahead_.block(), ahead_.used() + used, 1);
          ++count;
        }
      ahead_.use(used);
      passed_ = passed;
    }
    if (count == 0) {
      ahead_.begin();
      passed_ = 0;
    }
    mark.keep();
    return count;
  }

  bool fill(int64_t most) {
    constexpr int64_t kMost = 1024;  // samples read at once, most of which are dropped
    return noticing(
        *of_, [&] { return ahead_.fill(most > kMost / shards_ ? std::max(most, kMost) : most * shards_); },
        [&] {
          if (passed_ == shard_) place(pass(), position() + 1);
          passed_ = (passed_ + 1) % shards_;
        });
  }

  int64_t shard_, shards_;
  Ahead ahead_;
  int64_t passed_ = 0;  // samples read of all shards, modulo shards_
  std::vector<int64_t> indices_;
};

// Reads a list of samples by index.
class Split final : public Wrapper {
 public:
  // Divides the samples of `of`: `held` of them are held out.
  Split(std::shared_ptr<Reader> of, int64_t held, const SplitOptions& options, std::shared_ptr<Allocator> allocator)
      : Wrapper(std::move(of)),
        count_(options.held_out ? held : of_->size() - held),
        memory_(std::move(allocator), checked_multiply(static_cast<uint64_t>(count_), uint64_t{8}, "split")) {
    // Selection sampling: sample i is held out with the probability (still to be held out) / (samples from i on).
    constexpr uint64_t kStream = uint64_t{0x73706C69} << 32;  // separates the draws from those of shuffle
    const Philox philox(options.seed, kStream);
    uint64_t counter = 0;
    int64_t* to = samples();
    for (int64_t i = 0; i < of_->size(); ++i) {
      const auto left = static_cast<uint64_t>(of_->size() - i);
      const bool out = below(philox, &counter, left) < static_cast<uint64_t>(held);
      if (out) --held;
      if (out == options.held_out) *to++ = i;
    }
  }

  [[nodiscard]] int64_t size() const override { return count_; }
  [[nodiscard]] bool indexed() const override { return true; }
  [[nodiscard]] std::string whole_reason() const override { return ""; }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_room("split", most);
    const int64_t count = std::min(most, size() - position());
    if (count > 0) return give_at(*of_, samples() + position(), count, to);
    of_->begin_pass(pass() + 1);
    return given(0);
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    require_indices("split", indices, count, size());
    indices_.clear();
    for (int64_t i = 0; i < count; ++i) indices_.push_back(samples()[indices[i]]);
    of_->read_at(indices_.data(), count, to);
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("split", pass, position, size());
    of_->begin_pass(pass);
    place(pass, position);
  }

 protected:
  [[nodiscard]] int64_t source_index(int64_t index) const override {
    require_indices("split", &index, 1, size());
    return samples()[index];
  }

 private:
  [[nodiscard]] int64_t* samples() const { return reinterpret_cast<int64_t*>(memory_.data()); }

  int64_t count_;
  Buffer memory_;                 // int64 [count_]: the samples of this part, ascending
  std::vector<int64_t> indices_;  // used by read_at
};

}  // namespace

std::unique_ptr<Reader> split(std::shared_ptr<Reader> of, const SplitOptions& options,
                              std::shared_ptr<Allocator> allocator) {
  require_samples("split", *of);
  require_start("split", *of);
  if (!of->indexed())
    fail(TN_UNSUPPORTED, ComponentName{"split"}, "the reader cannot read samples by index, which a split needs");
  if (!(options.fraction > 0 && options.fraction < 1))
    fail(TN_INVALID, ComponentName{"split"}, SubjectName{"fraction"}, "fraction is ", options.fraction,
         "; expected a number between 0 and 1");
  const auto held = static_cast<int64_t>(std::llround(options.fraction * static_cast<double>(of->size())));
  if (of->size() > 0 && (held < 1 || held >= of->size()))
    fail(TN_INVALID, ComponentName{"split"}, SubjectName{"fraction"}, "fraction ", options.fraction, " of ", of->size(),
         " samples is ", held, "; expected at least 1 sample in each part");
  return std::make_unique<Split>(std::move(of), held, options, std::move(allocator));
}

std::unique_ptr<Reader> first_n(std::shared_ptr<Reader> of, int64_t samples,
                                const std::shared_ptr<Allocator>& allocator) {
  require_samples("first_n", *of);
  require_start("first_n", *of);
  if (samples < 0) fail(TN_INVALID, ComponentName{"first_n"}, "samples is ", samples, "; expected at least 0");
  return std::make_unique<FirstN>(std::move(of), samples, allocator);
}

std::unique_ptr<Reader> shard(std::shared_ptr<Reader> of, int64_t shard, int64_t shards,
                              const std::shared_ptr<Allocator>& allocator) {
  require_samples("shard", *of);
  require_start("shard", *of);
  if (shards < 1 || shard < 0 || shard >= shards)
    fail(TN_INVALID, ComponentName{"shard"}, "shard ", shard, " of ", shards, " does not exist");
  return std::make_unique<Shard>(std::move(of), shard, shards, allocator);
}

}  // namespace tenon::host
