// What the processes of a team agree on in a training. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <type_traits>

#include "core/parameter_set.h"
#include "host/comm/team.h"

namespace tenon::host {

using namespace core;

// Process 0 decides what depends on clocks, handlers and signals; the others follow. All functions but leads() are
// collective, and do nothing if this process trains alone.
class Agreement {
 public:
  // team: borrowed; null: this process trains alone.
  explicit Agreement(Team* team) : team_(team) {}

  [[nodiscard]] bool is_alone() const { return team_ == nullptr; }
  // Whether this process decides, calls handlers and writes files.
  [[nodiscard]] bool leads() const { return is_alone() || team_->rank() == 0; }
  // Returns the value of process 0.
  template <typename Value>
  [[nodiscard]] Value of_leader(Value value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    if (team_ != nullptr) team_->broadcast(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  // Throws TN_INVALID naming the first process whose text is not that of process 0. what: the processes "have other
  // <what>".
  void require_equal(const std::string& text, const char* what) const;
  // Throws TN_INTERNAL naming the first parameter or buffer, and the first process, whose values are not those of
  // process 0, which they must be.
  void require_equal_values(const ParameterSet& set) const;

 private:
  // Returns the digests of all processes, of as many digits each, in their order.
  [[nodiscard]] std::string gathered(const std::string& digests) const;

  Team* team_;
};

}  // namespace tenon::host
