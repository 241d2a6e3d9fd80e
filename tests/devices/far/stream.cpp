// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace tenon::far {

namespace {

constexpr std::chrono::milliseconds kLate{50};

}  // namespace

uint64_t Event::record() {
  const std::lock_guard lock(mutex_);
  return ++recorded_;
}

uint64_t Event::recorded() const {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

void Event::reach(uint64_t moment) {
  const std::lock_guard lock(mutex_);
  reached_ = moment;
  reached_changed_.notify_all();
}

void Event::await(uint64_t moment) {
  std::unique_lock lock(mutex_);
  reached_changed_.wait(lock, [&] { return reached_ >= moment; });
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::add(Work work, bool always) {
  Entry entry{std::move(work), always, {}, Clock::now()};
  std::fegetenv(&entry.mode);
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  changed_.notify_all();
}

namespace {

// Recordings fail at one of "begin", "enqueue", "end" and "launch" if a test wants that.
void refuse_if_wanted(const char* at) {
  const char* const wanted = std::getenv("TENON_FAR_REFUSES");
  if (wanted != nullptr && std::strcmp(wanted, at) == 0) throw std::runtime_error("a recording that fails");
}

}  // namespace

void Stream::enqueue(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (recording_ != nullptr) {
      refuse_if_wanted("enqueue");
      Recorded& made = recording_->emplace_back(Recorded{std::move(work), {}});
      std::fegetenv(&made.mode);
      return;
    }
  }
  add(std::move(work), false);
}

void Stream::require_running(const char* what) {
  const std::lock_guard lock(mutex_);
  if (recording_ != nullptr) throw std::logic_error(std::string(what) + " while the stream records");
}

void Stream::begin_recording() {
  require_running("a recording");
  refuse_if_wanted("begin");
  const std::lock_guard lock(mutex_);
  recording_ = std::make_shared<Recording>();
}

bool Stream::records() {
  const std::lock_guard lock(mutex_);
  return recording_ != nullptr;
}

std::shared_ptr<const Stream::Recording> Stream::end_recording() {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<const Recording> recording = std::exchange(recording_, nullptr);
  refuse_if_wanted("end");
  return recording;
}

void Stream::launch(const std::shared_ptr<const Recording>& recording) {
  require_running("a launch");
  refuse_if_wanted("launch");
  for (const Recorded& each : *recording)
    add(
        [recording, &each] {
          std::fesetenv(&each.mode);
          return each.work();
        },
        false);
}

void Stream::record(const std::shared_ptr<Event>& event) {
  require_running("an event");
  add(
      [event, moment = event->record()] {
        event->reach(moment);
        return Failure();
      },
      true);
}

void Stream::wait_for(const std::shared_ptr<Event>& event) {
  require_running("an event");
  add(
      [event, moment = event->recorded()] {
        event->await(moment);
        return Failure();
      },
      true);
}

Failure Stream::wait() {
  require_running("a wait");
  std::unique_lock lock(mutex_);
  ++waiting_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return entries_.empty() && !running_; });
  --waiting_;
  return std::exchange(failure_, {});
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !entries_.empty(); });
    if (entries_.empty()) return;
    const auto due = entries_.front().since + kLate;
    changed_.wait_until(lock, due, [&] { return ends_ || waiting_ > 0; });
    const Entry entry = std::move(entries_.front());
    entries_.pop_front();
    if (failure_.status == TN_OK || entry.always) {
      running_ = true;
      lock.unlock();
      std::fesetenv(&entry.mode);
      Failure failure = entry.work();
      lock.lock();
      running_ = false;
      if (failure_.status == TN_OK) failure_ = std::move(failure);
    }
    if (entries_.empty()) changed_.notify_all();
  }
}

}  // namespace tenon::far
