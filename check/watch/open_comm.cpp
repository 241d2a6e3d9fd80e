// SPDX-License-Identifier: Apache-2.0
#include "check/watch/open_comm.h"

#include <tenon/tenon.h>

#include <cstring>
#include <utility>

#include "check/cases/fault.h"
#include "check/watch/other_host.h"

namespace tenon::check {

namespace {

using Clock = std::chrono::steady_clock;

constexpr Millis kSlack{3000};  // of a busy machine

Millis since(Clock::time_point begin) { return std::chrono::duration_cast<Millis>(Clock::now() - begin); }

const tn_comm_type& comm_of(const tn_plugin& plugin, const std::string& type) {
  const uint32_t count = TN_HAS(&plugin, tn_plugin, comms) ? plugin.comms_count : 0;
  for (uint32_t i = 0; i < count; ++i)
    if (type == plugin.comms[i]->description->type) return *plugin.comms[i];
  throw Fault("its code has no communicator \"" + type + "\"");
}

const tn_plugin& descriptor_of(const Loaded& loaded, const std::string& type) {
  return *(Lending::is_on() ? plugin_in_other_host(*loaded.descriptor(), "comm", type) : loaded.descriptor());
}

}  // namespace

std::string rank_text(int32_t rank, int32_t ranks) {
  return "rank " + std::to_string(rank) + " of " + std::to_string(ranks);
}

// A call of a function, which may take so long.
class OpenComm::Call : base::NotCopied {
 public:
  Call(const OpenComm& comm, const char* function, Millis most) : comm_(comm), function_(function), most_(most) {
    if (comm_.call_ != nullptr) *comm_.call_ = function;
  }
  ~Call() {
    if (comm_.call_ != nullptr) *comm_.call_ = nullptr;
  }
  // Throws Fault if the call took too long.
  void check() const {
    if (const Millis took = since(begin_); took > most_ + kSlack)
      throw Fault(std::string(function_) + " took " + std::to_string(took.count()) + " ms; it may wait for " +
                  std::to_string(most_.count()) + " ms");
  }

 private:
  const OpenComm& comm_;
  const char* function_;
  const Millis most_;
  const Clock::time_point begin_ = Clock::now();
};

OpenComm::OpenComm(const std::string& file, const std::string& type, CommValues values, std::atomic<const char*>* call)
    : loaded_(file), type_(comm_of(descriptor_of(loaded_, type), type)), values_(std::move(values)), call_(call) {}

OpenComm::~OpenComm() {
  if (instance_ != nullptr) type_.close(std::exchange(instance_, nullptr), 100'000);
}

tn_status OpenComm::try_open(const CommPlace& place) {
  const tn_comm_description& described = *type_.description;
  const tn_attributes attributes = {sizeof attributes, described.attributes_count, described.attributes,
                                    values_.data()};
  place_ = place;
  tn_comm_open open = {};
  open.size = sizeof open;
  open.rank = place_.rank;
  open.ranks = place_.ranks;
  open.epoch = place_.epoch;
  open.services = lent_.services();
  open.errors = lent_.errors();
  open.attributes = &attributes;
  open.address = place_.address.empty() ? nullptr : place_.address.c_str();
  open.secret = place_.secret.empty() ? nullptr : reinterpret_cast<const uint8_t*>(place_.secret.data());
  open.secret_bytes = static_cast<uint32_t>(place_.secret.size());
  open.deadline_ms = place_.deadline_ms;
  open.silence_ms = place_.silence_ms;
  open.cancel = place_.cancel;
  open.user = type_.user;
  lent_.forget();
  void* comm = this;  // a mark
  tn_status status = TN_OK;
  {
    const Call call(*this, "open", Millis(place_.deadline_ms));
    status = type_.open(&open, &comm);
    call.check();
  }
  if (status != TN_OK && comm != this) throw Fault("open fails, and writes *comm");
  if (status != TN_OK && lent_.reported().empty())
    throw Fault(std::string("open fails without a report: ") + tn_status_text(status));
  if (status == TN_OK) instance_ = comm;
  return status;
}

void OpenComm::open(const CommPlace& place) {
  if (const tn_status status = try_open(place); status != TN_OK) fail("open", status);
}

void OpenComm::fail(const std::string& function, tn_status status) const {
  throw Fault(function + " fails: " + tn_status_text(status) + lent_.reason());
}

tn_comm_world OpenComm::world() {
  tn_comm_world world = {};
  world.size = sizeof world;
  const Call call(*this, "world", Millis(0));
  if (const tn_status status = type_.world(instance_, &world); status != TN_OK) fail("world", status);
  call.check();
  return world;
}

uint64_t OpenComm::begin(bool sends, int32_t peer, uint32_t channel, void* data, uint64_t bytes) {
  const tn_comm_message message = {sizeof message, peer, channel, 0, data, bytes};
  const char* const function = sends ? "send" : "receive";
  uint64_t request = 0;
  const Call call(*this, function, Millis(0));
  if (const tn_status status = (sends ? type_.send : type_.receive)(instance_, &message, &request); status != TN_OK)
    fail(function, status);
  call.check();
  if (request == 0 || !pending_.emplace(request, peer).second)
    throw Fault(std::string(function) + " gives the request number " + std::to_string(request) +
                (request == 0 ? "" : ", which an unfinished request has"));
  ended_.erase(request);
  return request;
}
uint64_t OpenComm::send(int32_t peer, uint32_t channel, const void* data, uint64_t bytes) {
  return begin(true, peer, channel, const_cast<void*>(data), bytes);
}
uint64_t OpenComm::receive(int32_t peer, uint32_t channel, void* data, uint64_t bytes) {
  return begin(false, peer, channel, data, bytes);
}

void OpenComm::take(const tn_comm_event& event) {
  if (event.kind == TN_COMM_DONE) {
    const auto at = pending_.find(event.request);
    if (at == pending_.end())
      throw Fault("an event ends the request " + std::to_string(event.request) + ", which is not unfinished");
    if (at->second != event.peer)
      throw Fault("the event of a request with rank " + std::to_string(at->second) + " has the peer " +
                  std::to_string(event.peer));
    if (event.status != TN_OK && event.status != TN_IO && event.status != TN_BAD_DATA)
      throw Fault(std::string("a request ends with \"") + tn_status_text(event.status) + "\"");
    ended_[event.request] = event.status;
    pending_.erase(at);
  } else if (event.kind == TN_COMM_LOST) {
    if (event.peer < 0 || event.peer >= place_.ranks || event.peer == place_.rank)
      throw Fault("an event says that rank " + std::to_string(event.peer) + " is lost, which is not another rank");
    if (!lost_.insert(event.peer).second)
      throw Fault("rank " + std::to_string(event.peer) + " is lost for the second time");
  } else if (event.kind == TN_COMM_RETURNED) {
    if (lost_.erase(event.peer) == 0)
      throw Fault("an event says that rank " + std::to_string(event.peer) + " has returned, which was not lost");
  } else if (event.kind == TN_COMM_WOKEN) {
    if (++woken_ > wakes_) throw Fault("an event says that wake was called, which it was not");
  } else {
    throw Fault("an event has the kind " + std::to_string(event.kind));
  }
}

uint32_t OpenComm::progress(Millis timeout, uint32_t capacity) {
  const tn_comm_event mark = {-1, -1, 0, -1, -1};
  std::vector<tn_comm_event> events(capacity + 1, mark);
  uint32_t count = capacity + 1;
  {
    const Call call(*this, "progress", timeout);
    const tn_status status =
        type_.progress(instance_, std::chrono::microseconds(timeout).count(), events.data(), capacity, &count);
    if (status != TN_OK) fail("progress", status);
    call.check();
  }
  if (count > capacity || std::memcmp(&events.back(), &mark, sizeof mark) != 0)
    throw Fault("progress gives " + std::to_string(count) + " events in the room for " + std::to_string(capacity));
  for (uint32_t i = 0; i < count; ++i) take(events[i]);
  return count;
}

tn_status OpenComm::ended(uint64_t request) {
  const Clock::time_point begin = Clock::now();
  while (!has_ended(request)) {
    const auto entry = pending_.find(request);
    if (since(begin) > kPatience)
      throw Fault("a request with rank " + std::to_string(entry == pending_.end() ? -1 : entry->second) +
                  " does not end within " + std::to_string(kPatience.count()) + " ms");
    (void)progress(Millis(100));
  }
  return ended_.at(request);
}

void OpenComm::await_loss(int32_t peer) {
  const Clock::time_point begin = Clock::now();
  while (!has_lost(peer)) {
    if (since(begin) > kPatience)
      throw Fault("no event says within " + std::to_string(kPatience.count()) + " ms that rank " +
                  std::to_string(peer) + " is lost");
    (void)progress(Millis(100));
  }
}

void OpenComm::wake() {
  ++wakes_;
  type_.wake(instance_);
}

void OpenComm::abort(int32_t exit_code) {
  const Call call(*this, "abort", Millis(0));
  type_.abort(std::exchange(instance_, nullptr), exit_code);
  call.check();
}

void OpenComm::close(Millis timeout) {
  const Call call(*this, "close", timeout);
  type_.close(std::exchange(instance_, nullptr), std::chrono::microseconds(timeout).count());
  call.check();
}

}  // namespace tenon::check
