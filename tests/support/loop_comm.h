// A communicator whose ranks are threads of one process, with a script of delays and faults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/comm.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon_tests {

// What happens to a rank at the moment at which it begins its message number `after_sends`, counted from 0 for the
// object that its open made. Each fault happens once in a world.
struct LoopFault {
  enum class Kind {
    kLose,  // LoopWorld::lose
    kStop,  // LoopWorld::stop
    kCut,   // LoopWorld::cut(side)
    kAbort  // the rank calls abort(200)
  };
  Kind kind = Kind::kLose;
  int32_t rank = 0;
  int64_t after_sends = 0;
  std::vector<int32_t> side;
};

struct LoopScript {
  uint64_t seed = 1;
  // Of each message, drawn from seed, pair, channel and number of the message. Messages of a pair on one channel keep
  // their order, all others overtake each other.
  int64_t least_delay_us = 0;
  int64_t most_delay_us = 0;
  // A send of more bytes ends when its message is received, a smaller one when it arrives. The values of a send are
  // read at that moment, and room of a receive is scribbled over when it is posted.
  uint64_t eager_bytes = 4096;
  uint64_t most_bytes = uint64_t{1} << 20;
  // One in so many calls of progress returns at once, without an event; 0: none.
  uint32_t idle_one_in = 0;
  // Without TN_COMM_SURVIVES the loss of a rank ends all ranks, as under mpiexec. TN_COMM_AUTHENTICATED is added where
  // there is a secret.
  uint32_t traits = TN_COMM_SURVIVES;
  std::vector<LoopFault> faults;
};

// Connects threads that open its type with ranks 0 .. ranks - 1, one epoch and one secret. It outlives what they open.
// A rank that closes is lost to the others once they have received all of its messages that had arrived.
class LoopWorld {
 public:
  explicit LoopWorld(int32_t ranks, LoopScript script = {});
  ~LoopWorld();
  LoopWorld(const LoopWorld&) = delete;
  LoopWorld& operator=(const LoopWorld&) = delete;

  const tn_comm_type* type() const;

  // A kill: each later call of the rank returns TN_IO, and the others notice at once. The rank may open again with
  // another epoch, or with the same one if it is not 0 and all others have noticed.
  void lose(int32_t rank);
  // Calls of the rank block until resume, as in a stopped process; the others lose it after their silence_ms, and it
  // then loses them.
  void stop(int32_t rank);
  void resume(int32_t rank);
  // Nothing passes between these ranks and the others until heal, so that they lose each other after their silence_ms.
  void cut(const std::vector<int32_t>& side);
  void heal();

  // What callers did against the contract: a wrong thread, a wrong peer, ...; each such call was refused by TN_MISUSE.
  std::vector<std::string> misuses() const;
  std::optional<int32_t> abort_code() const;  // of the last abort
  // Messages of all ranks on a channel so far.
  uint64_t sent(uint32_t channel) const;
  class State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tenon_tests
