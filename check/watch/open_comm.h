// A communicator that the kit opens itself, by the table of its plugin, without a host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/comm.h>
#include <tenon/plugin.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/not_copied.h"
#include "check/watch/kit_services.h"
#include "check/watch/loaded.h"

namespace tenon::check {

// Milliseconds.
using Millis = std::chrono::milliseconds;

// Where an object takes its place: the arguments of open.
struct CommPlace {
  int32_t rank = 0;
  int32_t ranks = 1;
  uint32_t epoch = 1;
  std::string address;  // empty: none
  std::string secret;   // empty: none
  int32_t deadline_ms = 10'000;
  int32_t silence_ms = 0;
  const volatile int32_t* cancel = nullptr;
};

// The values of a communicator's attributes, in the order of the declaration; kind 0: absent.
using CommValues = std::vector<tn_value>;

// One object, used on one thread; wake on any. As another host would call it while one lends (other_host.h). Its
// functions throw Fault with the communicator's report if a call fails, if a call takes 3 s longer than it may, and for
// events that the contract excludes.
class OpenComm : base::NotCopied {
 public:
  // The longest that one waits for another rank.
  static constexpr Millis kPatience{8000};

  // call: receives the name of the function that is being called, null between two calls.
  OpenComm(const std::string& file, const std::string& type, CommValues values,
           std::atomic<const char*>* call = nullptr);
  ~OpenComm();  // closes

  // Returns the status. Throws Fault if it fails without a report, or writes *comm then.
  [[nodiscard]] tn_status try_open(const CommPlace& place);
  void open(const CommPlace& place);
  [[nodiscard]] const std::string& reported() const { return lent_.reported(); }
  [[nodiscard]] tn_comm_world world();

  // A number of a request. `data` stays until its end.
  [[nodiscard]] uint64_t send(int32_t peer, uint32_t channel, const void* data, uint64_t bytes);
  [[nodiscard]] uint64_t receive(int32_t peer, uint32_t channel, void* data, uint64_t bytes);
  // Calls progress once, with room for so many events. Returns their number.
  uint32_t progress(Millis timeout, uint32_t capacity = 8);
  // Calls progress until the request has ended, and returns its status.
  [[nodiscard]] tn_status ended(uint64_t request);
  [[nodiscard]] bool has_ended(uint64_t request) const { return ended_.count(request) != 0; }
  // Calls progress until the rank is lost.
  void await_loss(int32_t peer);
  [[nodiscard]] bool has_lost(int32_t peer) const { return lost_.count(peer) != 0; }
  [[nodiscard]] int woken() const { return woken_; }

  void wake();
  void abort(int32_t exit_code);
  void close(Millis timeout);

 private:
  class Call;

  [[nodiscard]] uint64_t begin(bool sends, int32_t peer, uint32_t channel, void* data, uint64_t bytes);
  void take(const tn_comm_event& event);
  [[noreturn]] void fail(const std::string& function, tn_status status) const;

  const Loaded loaded_;
  const tn_comm_type& type_;
  const CommValues values_;
  std::atomic<const char*>* const call_;
  KitServices lent_;
  CommPlace place_;
  void* instance_ = nullptr;
  std::map<uint64_t, int32_t> pending_;  // the peer of each request that has not ended
  std::map<uint64_t, tn_status> ended_;  // those that have ended; a number that is used again leaves it
  std::set<int32_t> lost_;
  std::atomic<int> wakes_{0};
  int woken_ = 0;
};

// Returns "rank 1 of 3".
[[nodiscard]] std::string rank_text(int32_t rank, int32_t ranks);

}  // namespace tenon::check
