// The begin and the end of MPI in a process. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "library.h"

namespace tenon_mpi {

using Time = std::chrono::steady_clock::time_point;

// Calls MPI_Init_thread and MPI_Finalize on a thread of its own, since each may wait for other ranks without bound. If
// one does, that thread stays behind, with what `kept` owns. All other calls are the caller's, one at a time
// (MPI_THREAD_SERIALIZED).
class Life {
 public:
  // Initialises MPI. Throws tn::Failure: TN_IO at the deadline, what `check` throws, TN_MISUSE if this process had MPI
  // before, TN_UNSUPPORTED without MPI_THREAD_SERIALIZED.
  Life(std::shared_ptr<const Library> library, Time deadline, const std::function<void()>& check);
  // Leaves MPI as it is, unless finalize was called.
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  // Returns whether MPI_Finalize returned by the deadline.
  bool finalize(Time deadline, std::shared_ptr<void> kept);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tenon_mpi
