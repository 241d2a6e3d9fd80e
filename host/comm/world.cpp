// SPDX-License-Identifier: Apache-2.0
#include "host/comm/world.h"

#include <algorithm>

#include "base/signals_blocked.h"
#include "core/error.h"
#include "host/threads/own_thread.h"
#include "host/threads/spin.h"

namespace tenon::host {

namespace {

constexpr int64_t kProgressUs = 50'000;                 // of one wait for events
constexpr auto kIdle = std::chrono::milliseconds(200);  // between two looks at the world without transfers
constexpr std::chrono::microseconds kEager{200};        // that a caller looks without sleeping
constexpr std::chrono::microseconds kPolling{1000};     // likewise the thread, for events that a caller waits for
constexpr uint64_t kFewBytes = 4096;                    // that a communicator takes without their receiver
// Bytes of a message at most. Others overtake what is long, and a communicator copies what is still in a cache.
constexpr uint64_t kPiece = uint64_t{256} << 10U;

}  // namespace

World::World(const CommType& type, const Values& attributes, const tn_services* services, const JoinOptions& options,
             const std::atomic<bool>* ending)
    : type_(type), epoch_(options.epoch), servers_(options.servers), ending_(ending) {
  {
    const base::SignalsBlocked blocked;
    thread_ = std::thread([this, &attributes, services, &options] { run(attributes, services, options); });
  }
  std::unique_lock lock(mutex_);
  while (!joined_ && error_ == nullptr) {
    ended_.wait_for(lock, kIdle);
    if (ending_ != nullptr && ending_->load(std::memory_order_relaxed)) cancel_ = 1;
  }
  if (error_ == nullptr) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(error_);
}

World::~World() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    call_thread();
  }
  thread_.join();
}

// ---- the thread of the communicator

void World::run(const Values& attributes, const tn_services* services, const JoinOptions& options) {
  mark_own_thread();
  std::exception_ptr failure;
  try {
    Communicator comm(type_, attributes, services, options, &cancel_);
    world_ = comm.world();
    present_ = std::vector<Presence>(static_cast<size_t>(world_.ranks));
    if (servers_ >= world_.ranks)
      fail(TN_INVALID, SubjectName{"servers"}, "servers is ", servers_, " of ", world_.ranks,
           world_.ranks == 1 ? " process" : " processes", "; at least one has to train");
    {
      const std::lock_guard lock(mutex_);
      comm_ = &comm;
      joined_ = true;
    }
    ended_.notify_all();
    try {
      serve(comm);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    comm_ = nullptr;
  } catch (...) {
    failure = std::current_exception();
  }
  // Only now: unfinished transfers have borrowed memory of the callers that wait, until the communicator is closed.
  if (failure != nullptr) fail_all(failure);
}

void World::fail_all(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (error_ == nullptr) error_ = error;
    posted_.clear();
    begun_.clear();
    unfinished_.clear();
    is_broken_ = true;
  }
  ended_.notify_all();
}

// Carries out what is posted until the team is left. Throws if a process is lost that it needs.
void World::serve(Communicator& comm) {
  while (!begun_.empty() || park()) {
    begin_posted(comm);
    for (const tn_comm_event& event : progress(comm)) take(event);
    if (begun_.empty()) refused_.store(comm.world().refused, std::memory_order_relaxed);
    if (ending_ != nullptr && ending_->load(std::memory_order_relaxed)) fail(TN_CANCELLED, "the host ends");
    const std::lock_guard lock(mutex_);
    if (abandoned_) fail(TN_IO, SubjectName{"team"}, "this process has left the others, since it failed");
  }
}

// Waits, without transfers, until there are some, or until it is time to look at the world. Returns false if the team
// is left.
bool World::park() {
  std::unique_lock lock(mutex_);
  activity_ = Activity::kParked;
  called_.wait_for(lock, kIdle, [this] { return leaving_ || abandoned_ || !posted_.empty(); });
  activity_ = Activity::kBusy;
  return !leaving_ || !posted_.empty();
}

// A caller that waits leaves its core to the thread, which then looks without pauses for a moment.
std::span<const tn_comm_event> World::progress(Communicator& comm) {
  if (is_called_.exchange(false)) at_ = std::chrono::steady_clock::now();
  const bool is_eager = awaited_ != nullptr && std::chrono::steady_clock::now() < at_ + kPolling;
  int64_t timeout_us = 0;
  if (!is_eager && !begun_.empty()) {
    const std::lock_guard lock(mutex_);
    if (posted_.empty() && !is_called_) activity_ = Activity::kInProgress, timeout_us = kProgressUs;
  }
  const std::span<const tn_comm_event> events = comm.progress(timeout_us);
  if (timeout_us > 0) {
    const std::lock_guard lock(mutex_);
    activity_ = Activity::kBusy;
  }
  if (!events.empty())
    at_ = std::chrono::steady_clock::now();
  else if (is_eager && !yield_briefly())
    at_ = {};
  return events;
}

void World::begin_posted(Communicator& comm) {
  while (true) {
    Place place;
    {
      const std::lock_guard lock(mutex_);
      if (posted_.empty()) return;
      place = posted_.front();
      posted_.pop_front();
    }
    const Piece& piece = *place;
    if (piece.group->may_be_lost && piece.group->returns != returns(piece.peer)) {
      finish(place, true);
      continue;
    }
    uint64_t request = 0;
    try {
      request = piece.is_send ? comm.send(piece.peer, piece.channel, piece.data, piece.bytes)
                              : comm.receive(piece.peer, piece.channel, piece.data, piece.bytes);
    } catch (const Error& error) {
      if (error.code() != TN_IO) throw;
      finish(place, true);
      continue;
    }
    if (!begun_.emplace(request, place).second)
      fail(TN_PLUGIN_FAULT, ComponentName{comm.who()}, "two unfinished requests have the number ", request);
  }
}

// A process that needs one that is lost fails, and is lost to others then: the first one is the cause, but for those
// that may be lost.
void World::fail_lost(int64_t peer) const {
  const std::lock_guard lock(mutex_);
  const auto cause = std::find_if(lost_.begin(), lost_.end(),
                                  [this](int32_t rank) { return rank < spare_first_ || rank >= spare_end_; });
  fail(TN_IO, SubjectName{"team"}, "process ", cause == lost_.end() ? peer : int64_t{*cause},
       " is lost: it has ended, or does not answer");
}

// A process that is lost does no harm as long as nothing is to be transferred: one that is done leaves before others.
void World::take(const tn_comm_event& event) {
  if (event.kind == TN_COMM_WOKEN) return;
  if (event.kind == TN_COMM_LOST || event.kind == TN_COMM_RETURNED) return take_presence(event);
  const auto begun = begun_.find(event.request);
  if (event.kind != TN_COMM_DONE || begun == begun_.end())
    fail(TN_PLUGIN_FAULT, ComponentName{"communicator \"" + comm() + "\""}, "an event of kind ", event.kind,
         " has the request ", event.request, ", which is not an unfinished one");
  const Place place = begun->second;
  begun_.erase(begun);
  if (event.status != TN_OK && event.status != TN_IO && !place->group->may_be_lost)
    fail(event.status, "the processes ", rank(), " and ", place->peer,
         " do not exchange the same bytes: they run different jobs");
  finish(place, event.status != TN_OK);
}

void World::take_presence(const tn_comm_event& event) {
  const int32_t peer = event.peer;
  if (peer < 0 || peer >= world_.ranks)
    fail(TN_PLUGIN_FAULT, ComponentName{"communicator \"" + comm() + "\""}, "an event has the peer ", peer);
  Presence& presence = present_[static_cast<size_t>(peer)];
  {
    const std::lock_guard lock(mutex_);
    if (event.kind == TN_COMM_LOST)
      lost_.push_back(peer);
    else
      std::erase(lost_, peer);
    ++(event.kind == TN_COMM_LOST ? presence.losses : presence.returns);
  }
  ended_.notify_all();
}

// A transfer has ended, or its peer is lost, which may break the world.
void World::finish(Place place, bool lost) {
  if (lost && !place->group->may_be_lost) fail_lost(place->peer);
  {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Group> group = std::move(place->group);
    if (lost) group->lost = true;
    unfinished_.erase(place);
    if (--group->unfinished > 0) return;
  }
  ended_.notify_all();
}

// ---- other threads

int64_t World::waits_for() const {
  const std::lock_guard lock(mutex_);
  const Group* const awaited = awaited_;
  const auto piece = std::find_if(unfinished_.begin(), unfinished_.end(),
                                  [=](const Piece& each) { return each.group.get() == awaited; });
  return awaited == nullptr || piece == unfinished_.end() ? awaited_rank_.load() : piece->peer;
}

// Lets the thread see what has changed. The caller holds the mutex.
void World::call_thread() {
  is_called_ = true;
  if (activity_ == Activity::kParked) called_.notify_one();
  if (activity_ == Activity::kInProgress && comm_ != nullptr) comm_->wake();
}

void World::throw_if_broken() {
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void World::post(const std::shared_ptr<Group>& group, std::span<const Outgoing> outgoing,
                 std::span<const Incoming> incoming, uint32_t channel) {
  const uint64_t most = std::min(kPiece, world_.most_bytes);
  std::list<Piece> pieces;
  const auto cut = [&](bool is_send, int64_t peer, void* data, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += most)
      pieces.push_back({is_send, static_cast<int32_t>(peer), channel, static_cast<std::byte*>(data) + at,
                        std::min(most, bytes - at), group});
  };
  for (const Incoming& each : incoming) cut(false, each.from, each.data, each.bytes);
  for (const Outgoing& each : outgoing) cut(true, each.to, const_cast<void*>(each.data), each.bytes);
  group->unfinished = pieces.size();
  const std::lock_guard lock(mutex_);
  if (error_ != nullptr) {
    group->unfinished = 0;
    std::rethrow_exception(error_);
  }
  if (pieces.empty()) return;
  for (auto piece = pieces.begin(); piece != pieces.end(); ++piece) posted_.push_back(piece);
  unfinished_.splice(unfinished_.end(), pieces);
  call_thread();
}

World::Transfers World::begin_with(int64_t rank, uint64_t returns, std::span<const Outgoing> outgoing,
                                   std::span<const Incoming> incoming, uint32_t channel) {
  auto group = std::make_shared<Group>();
  group->may_be_lost = rank >= spare_first_ && rank < spare_end_;
  group->returns = returns;
  post(group, outgoing, incoming, channel);
  return {*this, std::move(group)};
}

void World::set_spare(int64_t first, int64_t end) {
  spare_first_ = first;
  spare_end_ = end;
}

World::Transfers World::begin(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming,
                              uint32_t channel) {
  auto group = std::make_shared<Group>();
  post(group, outgoing, incoming, channel);
  return {*this, std::move(group)};
}

// Returns when the transfers have ended, or when the communicator is closed.
void World::wait(const Group& group) {
  awaited_ = &group;
  {
    const std::lock_guard lock(mutex_);
    call_thread();
  }
  if (!yield_until([&] { return is_over(group); }, kEager)) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return is_over(group); });
  }
  awaited_ = nullptr;
}

void World::send_copy(std::span<const std::byte> bytes, std::span<const int64_t> to) {
  auto group = std::make_shared<Group>();
  group->own.assign(bytes.begin(), bytes.end());
  std::vector<Outgoing> outgoing;
  for (const int64_t other : to) outgoing.push_back({other, group->own.data(), bytes.size()});
  post(group, outgoing, {}, 0);
  if (bytes.size() > kFewBytes) Transfers(*this, std::move(group)).wait();
}

void World::wait_until(const std::function<bool()>& holds, int64_t rank) {
  awaited_rank_ = rank;
  {
    const std::lock_guard lock(mutex_);
    call_thread();
  }
  const auto is_over = [&] { return is_broken_ || holds(); };
  if (!yield_until(is_over, kEager)) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, is_over);
  }
  awaited_rank_ = -1;
  if (is_broken_) throw_if_broken();
}

void World::abandon() noexcept {
  std::unique_lock lock(mutex_);
  if (error_ != nullptr) return;
  abandoned_ = true;
  call_thread();
  ended_.wait(lock, [this] { return is_broken_.load(); });
}

}  // namespace tenon::host
