// The minibatches of a pass that trainers compute at the same time. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace tenon::host {

// Hands out minibatches in their order. A minibatch is done when its gradients are applied; it begins only when all but
// the `staleness` ones before it are done, so its gradients lack the updates of no more. What a lost trainer had is
// handed out again before any later one. When a round is over, the minibatches before next() are done, and no others.
class Leases {
 public:
  // staleness: at least 1.
  explicit Leases(int64_t staleness) : staleness_(staleness) {}

  // A minibatch that a trainer has. serial: of all leases, from 0, each another one. is_again: it was given back.
  struct Lease {
    int64_t minibatch, serial;
    bool is_again = false;
  };

  // Begins a round with minibatch `first`, before minibatch `end` of the pass at the latest.
  void begin(int64_t first, int64_t end);
  // Returns the next minibatch for a trainer that has none; empty if it has to wait.
  [[nodiscard]] std::optional<Lease> lease(int64_t trainer);
  // The minibatch of the trainer is done.
  void finish(int64_t trainer) { leases_.erase(trainer); }
  // The minibatch of the trainer lies behind the last one of the pass.
  void end_pass(int64_t trainer);
  // The trainer will not compute what it has. Returns the lease; empty if it has none.
  std::optional<Lease> give_back(int64_t trainer);
  // Hands out no minibatches any more but those that were given back.
  void drain() { draining_ = true; }
  // Hands out none at all, whatever is given back.
  void stop() {
    draining_ = stopped_ = true;
    returned_.clear();
  }

  // Whether nothing is to be done any more in this round.
  [[nodiscard]] bool is_over() const { return leases_.empty() && returned_.empty() && !has_next(); }
  [[nodiscard]] int64_t next() const { return next_; }
  [[nodiscard]] bool pass_has_ended() const { return pass_has_ended_; }
  [[nodiscard]] const std::map<int64_t, Lease>& leases() const { return leases_; }  // by trainer

 private:
  [[nodiscard]] bool has_next() const { return !draining_ && next_ < end_; }
  [[nodiscard]] int64_t first_undone() const;

  int64_t staleness_;
  int64_t next_ = 0, end_ = 0, serial_ = 0;
  bool draining_ = false, stopped_ = false, pass_has_ended_ = false;
  std::map<int64_t, Lease> leases_;
  std::set<int64_t> returned_;  // minibatches
};

}  // namespace tenon::host
