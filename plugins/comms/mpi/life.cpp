// SPDX-License-Identifier: Apache-2.0
#include "life.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <tenon/base.hpp>
#include <thread>
#include <utility>

namespace tenon_mpi {

namespace {

// Whether a thread of this process has begun to initialise MPI, which is a global of the process: it can be initialised
// once, and MPI_Initialized says no while an initialisation waits.
std::atomic<bool> process_has_begun{false};

}  // namespace

struct Life::State {
  enum class Phase { kInitialising, kRunning, kEnding, kFinalising, kFinalised };

  std::shared_ptr<const Library> library;
  std::mutex mutex;
  std::condition_variable changed;
  Phase phase = Phase::kInitialising;
  int result = MPI_SUCCESS;
  int level = 0;
  std::shared_ptr<void> kept;

  void enter(Phase next) {
    const std::lock_guard<std::mutex> lock(mutex);
    phase = next;
    changed.notify_all();
  }
  void run() {
    result = library->init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    enter(Phase::kRunning);
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return phase != Phase::kRunning; });
      if (phase == Phase::kEnding) return;
    }
    library->finalize();
    enter(Phase::kFinalised);
  }
};

Life::Life(std::shared_ptr<const Library> library, Time deadline, const std::function<void()>& check)
    : state_(std::make_shared<State>()) {
  int initialised = 0;
  library->initialized(&initialised);
  if (process_has_begun.exchange(true) || initialised != 0)
    throw tn::Failure(TN_MISUSE, "", "MPI was initialised in this process before, which it can be once");
  state_->library = std::move(library);
  std::thread([state = state_] { state->run(); }).detach();
  std::unique_lock<std::mutex> lock(state_->mutex);
  while (state_->phase == State::Phase::kInitialising) {
    if (std::chrono::steady_clock::now() >= deadline)
      throw tn::Failure(TN_IO, "", "MPI_Init did not return by the deadline: a rank did not begin, or has stopped");
    check();
    state_->changed.wait_for(lock, std::chrono::milliseconds(5));
  }
  if (state_->result != MPI_SUCCESS)
    throw tn::Failure(TN_IO, "", "MPI_Init failed with the code " + std::to_string(state_->result));
  if (state_->level < MPI_THREAD_SERIALIZED)
    throw tn::Failure(TN_UNSUPPORTED, "library", "the library lacks MPI_THREAD_SERIALIZED");
}

Life::~Life() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->phase == State::Phase::kRunning) {
    state_->phase = State::Phase::kEnding;
    state_->changed.notify_all();
  }
}

bool Life::finalize(Time deadline, std::shared_ptr<void> kept) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->kept = std::move(kept);
  state_->phase = State::Phase::kFinalising;
  state_->changed.notify_all();
  return state_->changed.wait_until(lock, deadline, [&] { return state_->phase == State::Phase::kFinalised; });
}

}  // namespace tenon_mpi
