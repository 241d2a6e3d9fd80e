// Streams that run late, and events. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/base.h>

#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tenon::far {

// A failure of work that was enqueued.
struct Failure {
  tn_status status = TN_OK;
  std::string message, port;
};

// The moments of a stream at which an event was recorded.
class Event {
 public:
  // Returns the number of the next moment.
  [[nodiscard]] uint64_t record();
  [[nodiscard]] uint64_t recorded() const;
  void reach(uint64_t moment);
  void await(uint64_t moment);

 private:
  mutable std::mutex mutex_;
  std::condition_variable reached_changed_;
  uint64_t recorded_ = 0, reached_ = 0;
};

// Work in order on a thread of its own, which begins as late as possible: when somebody waits for it, or after a
// while. So a host that reads a result, changes what a copy reads, or frees memory without a wait shows at once. Work
// that fails ends the step: all behind it is dropped until the failure is reported. Thread-safe.
class Stream {
 public:
  using Work = std::function<Failure()>;

  Stream() : thread_([this] { run(); }) {}
  // Waits for all work.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Adds work, which runs in the floating-point mode of the calling thread. While the stream records, all is recorded
  // instead; events and waits are refused then.
  void enqueue(Work work);
  void begin_recording();
  [[nodiscard]] bool records();
  // The work between begin_recording and end_recording, in order.
  struct Recorded {
    Work work;
    std::fenv_t mode;
  };
  using Recording = std::vector<Recorded>;
  [[nodiscard]] std::shared_ptr<const Recording> end_recording();
  void launch(const std::shared_ptr<const Recording>& recording);
  void record(const std::shared_ptr<Event>& event);
  void wait_for(const std::shared_ptr<Event>& event);
  // Waits until there is no work; returns the first failure since the last call.
  [[nodiscard]] Failure wait();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Work work;
    bool always;  // also after a failure
    std::fenv_t mode;
    Clock::time_point since;
  };
  void add(Work work, bool always);
  void require_running(const char* what);
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  std::shared_ptr<Recording> recording_;  // null: it does not record
  Failure failure_;
  int waiting_ = 0;
  bool running_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace tenon::far
