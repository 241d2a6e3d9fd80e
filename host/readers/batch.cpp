// Readers of minibatches: batch and bucket. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "core/checked.h"
#include "core/philox.h"
#include "host/readers/wrapper.h"

namespace tenon::host {

namespace {

void require_minibatch(const char* who, int64_t most, int64_t batch) {
  if (most < batch) fail(TN_INVALID, ComponentName{who}, "room for ", most, " samples; a minibatch has up to ", batch);
}

// Cuts each pass into minibatches of a fixed number of samples.
class Batch final : public Wrapper {
 public:
  Batch(std::shared_ptr<Reader> of, int64_t samples, bool drop_last, const std::shared_ptr<Allocator>& allocator)
      : Wrapper(std::move(of)),
        batch_(samples),
        drop_last_(drop_last),
        reads_parts_(of_->whole_reason().empty()),
        kept_(of_->slots(), allocator) {}

  [[nodiscard]] int64_t batch() const override { return batch_; }
  [[nodiscard]] int64_t size() const override {
    return drop_last_ && of_->size() >= 0 ? of_->size() - of_->size() % batch_ : of_->size();
  }

  // A minibatch ends at a multiple of batch_. After a seek, or if a sample is damaged, one minibatch is smaller and the
  // following ones are the same as otherwise.
  int64_t next(SampleBlock& to, int64_t most) override {
    require_minibatch("batch", most, batch_);
    const bool direct = to.samples() == 0;  // fills `to` itself: nothing is copied
    if (direct && kept_.samples() > 0) to.take(kept_);
    SampleBlock& block = direct ? to : kept_;
    const int64_t wanted = batch_ - position() % batch_;
    try {
      fill(block, wanted);
    } catch (...) {
      if (direct) kept_.take(to);
      if (kept_.samples() == 0) follow(0);
      throw;
    }
    const int64_t count = block.samples();
    if (count == 0 || (drop_last_ && ended_ && read_to_ - position() < wanted)) {
      block.clear();
      ended_ = false;
      return given(0);
    }
    if (!direct) to.take(kept_);
    place(pass(), read_to_);
    return count;
  }

  PartRead next_part(SampleBlock& to, int64_t most, const MinibatchPart& part) override {
    if (!reads_parts_) return Reader::next_part(to, most, part);
    require_minibatch("batch", most, batch_);
    drop_held();
    if (position() >= size()) {
      seek(pass() + 1, 0);
      return {};
    }
    return part_or_stay([&] { return of_->next_part(to, batch_ - position() % batch_, part); });
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("batch", pass, position, size());
    of_->seek(pass, position);
    kept_.clear();
    ended_ = false;
    place(pass, position);
  }

 private:
  // Reads until `wanted` samples from the position on are read or skipped as damaged, or the pass ends.
  void fill(SampleBlock& block, int64_t wanted) {
    while (!ended_ && (read_to_ = of_->position()) - position() < wanted)
      ended_ = of_->next(block, wanted - (read_to_ - position())) == 0;
  }

  int64_t batch_;
  bool drop_last_;
  bool reads_parts_;
  SampleBlock kept_;     // samples read before a failure
  bool ended_ = false;   // the pass has ended, and next has not returned 0 yet
  int64_t read_to_ = 0;  // a position in the pass
};

// Makes minibatches of samples of similar length, sorted within windows. A window is a fixed number of samples, so seek
// reads no earlier window.
class Bucket final : public Wrapper {
 public:
  Bucket(std::shared_ptr<Reader> of, const BucketOptions& options, size_t slot,
         const std::shared_ptr<Allocator>& allocator)
      : Wrapper(std::move(of)), options_(options), slot_(slot), window_(of_->slots(), allocator) {}

  [[nodiscard]] int64_t batch() const override {
    const int64_t samples = options_.samples > 0 ? options_.samples : options_.rows;
    return std::min(samples, options_.window);
  }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_minibatch("bucket", most, batch());
    if (!arrange()) {
      window_.clear();
      number_ = 0;
      whole_ = ended_ = false;
      return given(0);
    }
    Mark mark(to);
    const Cut& cut = cuts_.back();
    for (int64_t i = cut.begin; i < cut.end; ++i) to.append(window_, order_[static_cast<size_t>(i)], 1);
    mark.keep();
    const int64_t count = cut.end - cut.begin;
    cuts_.pop_back();
    return given(count);
  }

  void seek(int64_t pass, int64_t position) override {
    require_place("bucket", pass, position, size());
    go_or_stay([this](int64_t to_pass, int64_t to) { go(to_pass, to); }, pass, position);
  }
  [[nodiscard]] std::string whole_reason() const override { return "bucket sorts the samples of a window by length"; }

 protected:
  [[nodiscard]] int64_t source_index(int64_t) const override { fail_order(); }

 private:
  struct Cut {  // a minibatch: a range of order_
    int64_t begin, end;
  };

  void go(int64_t pass, int64_t position) {
    const int64_t number = position / options_.window;
    of_->seek(pass, number * options_.window);
    window_.clear();
    cuts_.clear();
    number_ = number;
    whole_ = ended_ = arranged_ = false;
    place(pass, number * options_.window);
    while (this->position() < position) {
      if (!arrange_again())
        fail(TN_INVALID, ComponentName{"bucket"}, "position ", position, " is after the end, ", this->position());
      Cut& cut = cuts_.back();
      const int64_t skipped = std::min(cut.end - cut.begin, position - this->position());
      cut.begin += skipped;
      if (cut.begin == cut.end) cuts_.pop_back();
      given(skipped);
    }
  }

  // The same, but ignores damaged samples, which were reported when the window was read first.
  bool arrange_again() {
    while (true) try {
        return arrange();
      } catch (const Error& error) {
        if (error.code() != TN_BAD_DATA) throw;
      }
  }

  // Fills cuts_ if it is empty. Returns false at the end of the pass.
  bool arrange() {
    if (!cuts_.empty()) return true;
    if (arranged_) {
      window_.clear();
      arranged_ = whole_ = false;
    }
    while (!ended_ && (!whole_ || window_.samples() == 0)) fill();
    if (window_.samples() == 0) return false;
    sort();
    cut();
    order_cuts();
    arranged_ = true;
    return true;
  }

  // Reads the next window, which is empty if all its samples are damaged. The position moves past its damaged samples
  // first.
  void fill() {
    const int64_t begin = number_ * options_.window;
    int64_t read_to = begin;
    while (!ended_ && (read_to = of_->position()) - begin < options_.window)
      ended_ = of_->next(window_, options_.window - (read_to - begin)) == 0;
    place(pass(), read_to - window_.samples());
    ++number_;
    whole_ = true;
  }

  void sort() {
    const Column& column = window_.columns()[slot_];
    order_.resize(static_cast<size_t>(window_.samples()));
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int64_t a, int64_t b) { return column.length(a) < column.length(b); });
  }

  void cut() {
    const Column& column = window_.columns()[slot_];
    int64_t begin = 0, rows = 0;
    for (int64_t i = 0; i < window_.samples(); ++i) {
      const int64_t more = std::max<int64_t>(column.length(order_[static_cast<size_t>(i)]), 1);
      const bool full =
          (options_.samples > 0 && i - begin == options_.samples) || (options_.rows > 0 && more > options_.rows - rows);
      if (full && i > begin) {
        cuts_.push_back({begin, i});
        begin = i;
        rows = 0;
      }
      rows += more;
    }
    cuts_.push_back({begin, window_.samples()});
  }

  // Fisher-Yates shuffle; the random numbers depend on seed, pass and window alone.
  void order_cuts() {
    const Philox philox(options_.seed, static_cast<uint64_t>(pass()));
    uint64_t counter = static_cast<uint64_t>(number_) << 32;
    for (size_t i = cuts_.size() - 1; i > 0; --i) std::swap(cuts_[i], cuts_[below(philox, &counter, i + 1)]);
  }

  BucketOptions options_;
  size_t slot_;
  SampleBlock window_;
  std::vector<int64_t> order_;  // samples of window_, by length
  std::vector<Cut> cuts_;       // not yet returned; the last one is next
  bool whole_ = false;          // the whole window was read
  bool arranged_ = false;       // and cut into minibatches
  int64_t number_ = 0;          // of the next window in the pass
  bool ended_ = false;          // the pass of of_ has ended
};

size_t slot_of_lengths(const Reader& of, const std::string& name) {
  const size_t number = slot_number("bucket", of, name);
  if (const Slot& slot = of.slots()[number]; slot.storage == TN_DENSE)
    fail(TN_INVALID, ComponentName{"bucket"}, SubjectName{name}, "slot \"", name, "\" is ", slot_text(slot),
         "; its samples have no length");
  return number;
}

}  // namespace

std::unique_ptr<Reader> batch(std::shared_ptr<Reader> of, int64_t samples, bool drop_last,
                              const std::shared_ptr<Allocator>& allocator) {
  require_samples("batch", *of);
  if (samples < 1) fail(TN_INVALID, ComponentName{"batch"}, "samples is ", samples, "; expected at least 1");
  for (const Slot& slot : of->slots()) (void)checked_multiply(static_cast<uint64_t>(samples), slot.bytes, "batch");
  return std::make_unique<Batch>(std::move(of), samples, drop_last, allocator);
}

std::unique_ptr<Reader> bucket(std::shared_ptr<Reader> of, const BucketOptions& options,
                               const std::shared_ptr<Allocator>& allocator) {
  require_samples("bucket", *of);
  require_start("bucket", *of);
  if (options.window < 1)
    fail(TN_INVALID, ComponentName{"bucket"}, "window is ", options.window, " samples; expected at least 1");
  if (options.samples < 0 || options.rows < 0 || (options.samples == 0 && options.rows == 0))
    fail(TN_INVALID, ComponentName{"bucket"}, "a minibatch of ", options.samples, " samples and ", options.rows,
         " rows; expected a bound of at least 1 for one of them");
  const size_t slot = slot_of_lengths(*of, options.slot);
  return std::make_unique<Bucket>(std::move(of), options, slot, allocator);
}

}  // namespace tenon::host
