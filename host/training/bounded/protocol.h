// What trainers and servers of the bounded mode tell each other. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "host/machine/tables/messages.h"

namespace tenon::host {

// Of trainers to a server, a header and then so many bytes. The server answers kLease and kHello by a task, kRows by
// values, kPush by an acknowledgement of eight bytes, but not the first server.
struct BoundedRequest {
  enum Kind : int64_t {
    kLease,    // the trainer has no minibatch. It asks the first server for one, and nothing more of another one
    kRows,     // ids of each table; the answer has the values of their rows
    kPush,     // the gradients of a minibatch (StepValues); without bytes at the first server: it lies behind the pass
    kFailure,  // of the first server: why the training has to end, as a text
    kHello     // of the first server: what must be equal to its own, as BoundedMode::description()
  };
  int64_t kind = kLease;
  int64_t serial = -1;        // of the lease
  int64_t status = 0;         // of kFailure
  int64_t drains = 0;         // of kLease by process 0: the round is to end soon
  int64_t wants_all = 0;      // of kLease: the values of all parameters, not of those alone that are trained
  double learning_rate = -1;  // of kLease and kPush by process 0: from now on; else -1
  uint64_t bytes = 0;         // that follow
};

// The answer of the first server to kLease and kHello. A trainer gets it when there is something for it to do.
struct BoundedTask {
  enum Kind : int64_t {
    kMinibatch,  // the values of parameters and buffers follow
    kRoundOver,  // for process 0: it has to come to the others of its team. After kHello: the trainer may go on
    kEnd,        // for the other trainers: the training has ended; the next answer is kPresent
    kFailed,     // likewise: it has failed. The error follows, as a text
    kPresent     // the ranks of lost trainers follow, int64 each, then parameters and states of updaters
  };
  int64_t kind = kMinibatch;
  int64_t serial = 0, minibatch = 0;
  int64_t reader_pass = 0, position = 0;  // of its first sample; of kPresent where the reader of process 0 stands
  uint64_t step = 0;                      // updates of the set before it, in the order of the minibatches
  double scheduled_rate = 0;
  int64_t status = 0;  // of kFailed
  int64_t lost = 0;    // of kPresent: how many ranks follow
  uint64_t bytes = 0;  // that follow
};

constexpr uint32_t kRequestChannel = 1000;  // and answers
constexpr uint32_t kControlChannel = 1001;  // of the first server to the others: a round is over

// Texts as bytes that follow a header.
inline Message message_of(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}
// Borrows the message.
inline std::string_view text_of(const Message& message) {
  return {reinterpret_cast<const char*>(message.data()), message.size()};
}

}  // namespace tenon::host
