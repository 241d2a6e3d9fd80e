// Reads minibatches ahead on a thread of its own. SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/signals_blocked.h"
#include "host/readers/wrapper.h"
#include "host/threads/own_thread.h"

namespace tenon::host {

namespace {

// The result of a call of next or next_part: a minibatch, the end of a pass, or a failure.
struct Outcome {
  PartRead read;
  std::exception_ptr failure;
  int64_t pass = 0, position = 0;  // of the reader afterwards
};

Outcome outcome_of(Reader& of, SampleBlock& to, const MinibatchPart& part) {
  Outcome outcome;
  try {
    outcome.read = part == MinibatchPart() ? PartRead{of.next(to, of.batch()), 0} : of.next_part(to, of.batch(), part);
  } catch (...) {
    outcome.failure = std::current_exception();
  }
  outcome.pass = of.pass();
  outcome.position = of.position();
  return outcome;
}

struct Item {
  SampleBlock block;
  Outcome outcome;
};

// Measures whether reading a minibatch takes `seconds` or more. Sums up a window of reads without the slowest one,
// which may have been interrupted.
class Stopwatch {
 public:
  explicit Stopwatch(double seconds) : limit_(seconds * kWindow), slow_(seconds <= 0) {}

  [[nodiscard]] bool slow() const { return slow_; }
  template <typename Read>
  auto time(Read&& read) {
    const auto began = std::chrono::steady_clock::now();
    auto result = read();
    add(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    return result;
  }

 private:
  static constexpr int kWindow = 16;

  void add(double seconds) {
    if (reads_++ % kWindow == 0) sum_ = slowest_ = 0;
    sum_ += seconds;
    slowest_ = std::max(slowest_, seconds);
    slow_ = slow_ || sum_ - slowest_ >= limit_;
  }

  double limit_;
  bool slow_;
  int64_t reads_ = 0;
  double sum_ = 0, slowest_ = 0;  // of the window
};

// The reading thread and a ring of items. The caller reads `of` until the thread starts, and again during seek;
// otherwise the thread alone reads it.
class ReadAhead : base::NotCopied {
 public:
  ReadAhead(std::shared_ptr<Reader> of, size_t minibatches, double worthwhile,
            const std::shared_ptr<Allocator>& allocator)
      : of_(std::move(of)), stopwatch_(worthwhile), ring_(minibatches) {
    for (Item& item : ring_) item.block = SampleBlock(of_->slots(), allocator);
  }
  ~ReadAhead() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    of_->cancel(true);
    changed_.notify_all();
    thread_.join();
    of_->cancel(false);
  }

  // Returns the next outcome and moves its samples to `to`.
  Outcome take(SampleBlock& to) {
    if (!thread_.joinable() && (alone_ || !stopwatch_.slow() || !start())) return read_here(to);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return filled_ > 0 || cancelled_; });
    if (filled_ == 0) fail_cancelled();
    Item& item = ring_[first_];
    if (!item.outcome.failure && item.outcome.read.samples > 0) to.take(item.block);
    Outcome taken = std::exchange(item.outcome, {});
    first_ = (first_ + 1) % ring_.size();
    --filled_;
    if (taken.failure) failed_ = false;
    lock.unlock();
    changed_.notify_all();
    return taken;
  }

  // Interrupts the thread's reading. If the reader cannot seek to the place, the thread reads the interrupted minibatch
  // again; otherwise everything read ahead is dropped. From then on it reads this part of the minibatches.
  void seek(int64_t pass, int64_t position, const MinibatchPart& part) {
    std::unique_lock lock(mutex_);
    hold_ = true;
    if (reading_) of_->cancel(true);
    changed_.wait(lock, [this] { return !reading_; });
    of_->cancel(false);
    hold_ = false;
    try {
      of_->seek(pass, position);
    } catch (...) {
      changed_.notify_all();
      throw;
    }
    part_ = part;
    filled_ = 0;
    failed_ = false;
    changed_.notify_all();
  }
  // Of the caller's thread, which alone sets it.
  [[nodiscard]] const MinibatchPart& part() const { return part_; }

  // Cancels the caller's reading or waiting; does not interrupt the thread.
  void cancel(bool on) {
    const std::lock_guard lock(mutex_);
    cancelled_ = on;
    if (here_) of_->cancel(on);
    changed_.notify_all();
  }

 private:
  [[noreturn]] static void fail_cancelled() { fail(TN_CANCELLED, ComponentName{"buffered"}, "cancelled"); }

  // While it lives, the caller reads, and cancel() interrupts `of`.
  class Here : base::NotCopied {
   public:
    explicit Here(ReadAhead& it) : it_(it) {
      const std::lock_guard lock(it_.mutex_);
      if (it_.cancelled_) fail_cancelled();
      it_.here_ = true;
    }
    ~Here() {
      const std::lock_guard lock(it_.mutex_);
      it_.here_ = false;
      if (it_.cancelled_) it_.of_->cancel(false);
    }

   private:
    ReadAhead& it_;
  };
  Outcome read_here(SampleBlock& to) {
    const Here here(*this);
    return stopwatch_.time([&] { return outcome_of(*of_, to, part_); });
  }

  // Starts the thread. If the system refuses it, the caller goes on reading: the samples are the same.
  bool start() {
    const base::SignalsBlocked signals;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      alone_ = true;
      return false;
    }
    pthread_setname_np(thread_.native_handle(), "tenon-reader");
    return true;
  }

  void run() noexcept {
    mark_own_thread();
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || (!hold_ && !failed_ && filled_ < ring_.size()); });
      if (stop_) return;
      Item& item = ring_[(first_ + filled_) % ring_.size()];
      reading_ = true;
      const MinibatchPart part = part_;
      lock.unlock();
      item.block.clear();
      item.outcome = outcome_of(*of_, item.block, part);
      lock.lock();
      reading_ = false;
      if (!cut_short(item)) {
        failed_ = item.outcome.failure != nullptr;  // the thread continues once the caller has taken it
        ++filled_;
      }
      changed_.notify_all();
    }
  }

  // Whether seek() has interrupted the reading of `item`.
  [[nodiscard]] bool cut_short(const Item& item) const {
    if (!item.outcome.failure || !hold_) return false;
    try {
      std::rethrow_exception(item.outcome.failure);
    } catch (const Error& error) {
      return error.code() == TN_CANCELLED;
    } catch (...) {
      return false;
    }
  }

  std::shared_ptr<Reader> of_;
  Stopwatch stopwatch_;  // used by the caller alone, and so is:
  bool alone_ = false;   // the thread cannot be started
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_. The caller owns the filled_ items from first_ on, the thread owns the others.
  std::vector<Item> ring_;
  size_t first_ = 0, filled_ = 0;
  bool reading_ = false;  // the thread reads
  bool here_ = false;     // the caller reads
  bool hold_ = false;     // the thread must not begin to read
  bool failed_ = false;   // the thread waits until the caller has taken a failure
  bool stop_ = false;
  bool cancelled_ = false;
  MinibatchPart part_;  // of each minibatch that is read
  std::thread thread_;
};

class Buffered final : public Wrapper, base::NotCopied {
 public:
  Buffered(std::shared_ptr<Reader> of, size_t minibatches, double worthwhile,
           const std::shared_ptr<Allocator>& allocator)
      : Wrapper(std::move(of)),
        reads_parts_(of_->whole_reason().empty()),
        ahead_(std::make_unique<ReadAhead>(of_, minibatches, worthwhile, allocator)) {}
  ~Buffered() override {
    // In a child after fork the thread does not exist, and joining it would never return. The state is leaked instead.
    if (process_ != getpid()) static_cast<void>(ahead_.release());
  }

  [[nodiscard]] int64_t batch() const override { return of_->batch(); }

  int64_t next(SampleBlock& to, int64_t most) override { return take(to, most, {}).samples; }
  PartRead next_part(SampleBlock& to, int64_t most, const MinibatchPart& part) override {
    return reads_parts_ ? take(to, most, part) : Reader::next_part(to, most, part);
  }
  void seek(int64_t pass, int64_t position) override {
    ahead_->seek(pass, position, ahead_->part());
    place(pass, position);
  }
  void begin_pass(int64_t) override {}  // minibatches are not read by index
  void cancel(bool on) override { ahead_->cancel(on); }
  std::string text_of(int64_t, const std::string&) override {
    fail(TN_MISUSE, ComponentName{"buffered"}, "another thread may read; take texts from a reader of its own");
  }

 private:
  PartRead take(SampleBlock& to, int64_t most, const MinibatchPart& part) {
    if (most < batch())
      fail(TN_INVALID, ComponentName{"buffered"}, "room for ", most, " samples; a minibatch has up to ", batch());
    if (ahead_->part() != part) ahead_->seek(pass(), position(), part);  // what was read ahead is another part
    const Outcome taken = ahead_->take(to);
    place(taken.pass, taken.position);
    if (taken.failure) std::rethrow_exception(taken.failure);
    return taken.read;
  }

  const pid_t process_ = getpid();
  const bool reads_parts_;
  std::unique_ptr<ReadAhead> ahead_;
};

}  // namespace

std::unique_ptr<Reader> buffered(std::shared_ptr<Reader> of, int64_t minibatches,
                                 const std::shared_ptr<Allocator>& allocator, double worthwhile) {
  require_minibatches("buffered", *of);
  constexpr int64_t kMost = 4096;
  if (minibatches < 1 || minibatches > kMost)
    fail(TN_INVALID, ComponentName{"buffered"}, minibatches, " minibatches; expected 1 to ", kMost);
  return std::make_unique<Buffered>(std::move(of), static_cast<size_t>(minibatches), worthwhile, allocator);
}

}  // namespace tenon::host
