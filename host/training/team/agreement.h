// What the processes of a team agree on in a training. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/parameter_set.h"
#include "host/comm/team.h"

namespace tenon::host {

using namespace core;

// What a process has read of a minibatch.
struct MinibatchReport {
  int64_t samples = 0;         // of the minibatch; 0: the end of a pass
  int64_t count = 0;           // of those that the process has
  std::vector<int64_t> sizes;  // of these, by symbol; as many in each process
  std::optional<Error> error;  // why it has none; empty: it has
};

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
  // Throws TN_INVALID naming the first process, and the part, such as a plugin, that is not that of process 0. parts:
  // those of this process, by name; a part that only one of two processes has is no difference.
  void require_equal_parts(const std::map<std::string, std::string>& parts) const;
  // Throws TN_INTERNAL naming the first parameter or buffer, and the first process, whose values are not those of
  // process 0, which they must be.
  void require_equal_values(const ParameterSet& set) const;
  // Whether all processes say so.
  [[nodiscard]] bool all(bool own) const;
  // Calls `step` in each process, which must not be collective. Throws the error of the first one that has an error, in
  // all of them; its message then begins with the process.
  template <typename Step>
  void together(const Step& step) const {
    if (team_ == nullptr) return step();
    std::optional<Error> error;
    try {
      step();
    } catch (const Error& failure) {
      error = failure;
    } catch (const std::bad_alloc&) {
      error = Error(TN_OUT_OF_MEMORY, "out of memory");
    }
    require_success(error);
  }
  // Returns the texts of all processes, which are as long as this one, in their order.
  [[nodiscard]] std::vector<std::string> texts_of_all(const std::string& own) const;
  // Returns the reports of all processes of a team, in their order. Throws the error of the first one that has an
  // error, whose message then begins with the process, or TN_INVALID if the minibatches have different numbers of
  // samples.
  [[nodiscard]] std::vector<MinibatchReport> reports_of_all(const MinibatchReport& own) const;

 private:
  // Returns the digests of all processes, of as many digits each, in their order.
  [[nodiscard]] std::string gathered(const std::string& digests) const;
  // What the processes tell of an error: a status and the length of a text.
  struct Failure {
    int64_t status = TN_OK, length = 0;
  };
  void require_success(const std::optional<Error>& own) const;
  [[noreturn]] void throw_failure(int64_t process, const Failure& failure, const std::optional<Error>& own) const;

  Team* team_;
};

}  // namespace tenon::host
