// SPDX-License-Identifier: Apache-2.0
#include "tests/support/loop_comm.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include "tests/support/loop_network.h"

namespace tenon_tests {

namespace {

constexpr int32_t kExitLost = 200;

constexpr tn_comm_description kDescription = {
    sizeof(tn_comm_description), 0, "loop", "Threads of one process, for tests.", nullptr, 0, 0};

std::string list(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

}  // namespace

class LoopWorld::State {
 public:
  using Key = std::pair<uint32_t, std::vector<uint8_t>>;  // epoch, secret

  State(int32_t count, LoopScript faults)
      : ranks(count),
        script(std::move(faults)),
        reach{std::vector<bool>(static_cast<size_t>(count)), std::vector<bool>(static_cast<size_t>(count))} {}

  std::shared_ptr<LoopNetwork> network(const tn_comm_open& open);
  void count_strangers(LoopNetwork& network, int32_t rank);
  void each(const std::function<void(LoopNetwork&)>& work);
  void lose(int32_t rank);
  void cut(const std::vector<int32_t>& side);
  void changed();  // after a change of `reach`
  void run_script(LoopNetwork& network, int32_t rank);

  mutable std::mutex mutex;
  const int32_t ranks;
  LoopScript script;
  LoopReach reach;
  std::map<Key, std::weak_ptr<LoopNetwork>> networks;
  std::vector<std::string> misuses;
  std::optional<int32_t> abort_code;
  tn_comm_type type{};
};

void LoopWorld::State::each(const std::function<void(LoopNetwork&)>& work) {
  for (auto& [key, network] : networks)
    if (const std::shared_ptr<LoopNetwork> living = network.lock()) work(*living);
}

std::shared_ptr<LoopNetwork> LoopWorld::State::network(const tn_comm_open& open) {
  const uint8_t* secret = open.secret;
  std::weak_ptr<LoopNetwork>& place =
      networks[Key{open.epoch, secret == nullptr ? std::vector<uint8_t>{}
                                                 : std::vector<uint8_t>(secret, secret + open.secret_bytes)}];
  std::shared_ptr<LoopNetwork> network = place.lock();
  if (network == nullptr) place = network = std::make_shared<LoopNetwork>(ranks, script, reach);
  return network;
}

// Ranks of other epochs and secrets find rank 0 and are refused by it.
void LoopWorld::State::count_strangers(LoopNetwork& network, int32_t rank) {
  each([&](LoopNetwork& other) {
    if (&other == &network) return;
    if (rank != 0 && other.end(0).state == LoopEnd::State::kOpen) ++other.end(0).refused;
    if (rank == 0 && !other.joined())
      for (int32_t stranger = 1; stranger < ranks; ++stranger)
        if (other.end(stranger).state == LoopEnd::State::kOpen) ++network.end(0).refused;
  });
}

void LoopWorld::State::changed() {
  each([](LoopNetwork& network) { network.move(std::chrono::steady_clock::now()); });
  each([](LoopNetwork& network) {
    for (int32_t rank = 0; rank < network.ranks(); ++rank) network.end(rank).changed.notify_all();
  });
}

void LoopWorld::State::lose(int32_t lost) {
  each([&](LoopNetwork& network) {
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const bool ends = rank == lost || (script.traits & TN_COMM_SURVIVES) == 0;
      if (ends && network.end(rank).state == LoopEnd::State::kOpen) network.kill(rank);
    }
  });
  changed();
}

void LoopWorld::State::cut(const std::vector<int32_t>& side) {
  reach.side.assign(static_cast<size_t>(ranks), false);
  for (const int32_t rank : side) reach.side.at(static_cast<size_t>(rank)) = true;
  changed();
}

void LoopWorld::State::run_script(LoopNetwork& network, int32_t rank) {
  for (size_t i = 0; i < script.faults.size(); ++i) {
    if (script.faults[i].rank != rank || script.faults[i].after_sends != network.end(rank).sends) continue;
    const LoopFault fault = script.faults[i];
    script.faults.erase(script.faults.begin() + static_cast<std::ptrdiff_t>(i--));
    switch (fault.kind) {
      case LoopFault::Kind::kAbort:
        abort_code = kExitLost;
        lose(rank);
        break;
      case LoopFault::Kind::kLose:
        lose(rank);
        break;
      case LoopFault::Kind::kStop:
        reach.stopped.at(static_cast<size_t>(rank)) = true;
        changed();
        break;
      case LoopFault::Kind::kCut:
        cut(fault.side);
        break;
    }
  }
}

namespace {

using State = LoopWorld::State;
using Lock = std::unique_lock<std::mutex>;

// What open makes.
struct LoopComm {
  State& state;
  std::shared_ptr<LoopNetwork> network;
  int32_t rank;
  const tn_errors* errors;

  LoopEnd& end() { return network->end(rank); }
};

LoopComm& comm_of(void* comm) { return *static_cast<LoopComm*>(comm); }

tn_status misuse(LoopComm& comm, const std::string& message) {
  comm.state.misuses.push_back("rank " + std::to_string(comm.rank) + ": " + message);
  return tn_fail(comm.errors, TN_MISUSE, nullptr, message.c_str());
}

// Waits while the rank is stopped; TN_IO if it was killed.
tn_status enter(LoopComm& comm, Lock& lock) {
  if (comm.end().thread != std::this_thread::get_id())
    return misuse(comm, "a call on another thread than that of open");
  const auto running = [&] {
    return !comm.state.reach.stopped[static_cast<size_t>(comm.rank)] || comm.end().state != LoopEnd::State::kOpen;
  };
  comm.end().changed.wait(lock, running);
  if (comm.end().state == LoopEnd::State::kOpen) return TN_OK;
  return tn_fail(comm.errors, TN_IO, nullptr,
                 ("rank " + std::to_string(comm.rank) + " was ended by the script").c_str());
}

tn_status check_open(const tn_comm_open& open, int32_t ranks) {
  const auto invalid = [&](const char* port, const std::string& message) {
    return tn_fail(open.errors, TN_INVALID, port, message.c_str());
  };
  if (open.ranks != -1 && open.ranks != ranks)
    return invalid("ranks", "the world has " + std::to_string(ranks) + " ranks, not " + std::to_string(open.ranks));
  if (open.rank == -1) return invalid("rank", "a rank is needed: a loop has no launcher");
  if (open.rank < 0 || open.rank >= ranks)
    return invalid("rank", "rank " + std::to_string(open.rank) + " of a world of " + std::to_string(ranks));
  return TN_OK;
}

// Waits until all ranks have joined.
tn_status wait_for_all(const tn_comm_open& open, LoopNetwork& network, Lock& lock) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(open.deadline_ms);
  while (!network.joined()) {
    const bool cancelled = open.cancel != nullptr && *open.cancel != 0;
    if (!cancelled && std::chrono::steady_clock::now() < deadline) {
      network.end(open.rank).changed.wait_for(lock, std::chrono::milliseconds(2));
      continue;
    }
    const std::vector<int32_t> missing = network.missing();
    network.withdraw(open.rank);
    if (cancelled) return tn_fail(open.errors, TN_CANCELLED, nullptr, "cancelled");
    const std::string limit = std::to_string(open.deadline_ms) + " ms";
    return tn_fail(open.errors, TN_IO, nullptr, (list(missing) + " did not connect within " + limit).c_str());
  }
  return TN_OK;
}

tn_status loop_open(const tn_comm_open* open, void** comm) {
  State& state = *static_cast<State*>(open->user);
  Lock lock(state.mutex);
  if (const tn_status status = check_open(*open, state.ranks); status != TN_OK) return status;
  std::shared_ptr<LoopNetwork> network = state.network(*open);
  if (network->may_return(open->rank)) {
    network->return_rank(open->rank, open->silence_ms);
    *comm = new LoopComm{state, std::move(network), open->rank, open->errors};
    return TN_OK;
  }
  if (network->end(open->rank).state != LoopEnd::State::kAbsent) {
    const std::string message = "rank " + std::to_string(open->rank) + " has joined already";
    return tn_fail(open->errors, TN_INVALID, "rank", message.c_str());
  }
  state.count_strangers(*network, open->rank);
  network->join(open->rank, open->silence_ms);
  if (const tn_status status = wait_for_all(*open, *network, lock); status != TN_OK) return status;
  *comm = new LoopComm{state, std::move(network), open->rank, open->errors};
  return TN_OK;
}

tn_status loop_world(void* self, tn_comm_world* world) {
  LoopComm& comm = comm_of(self);
  Lock lock(comm.state.mutex);
  if (const tn_status status = enter(comm, lock); status != TN_OK) return status;
  if (world->size < sizeof *world) return misuse(comm, "the size of a tn_comm_world is missing");
  world->rank = comm.rank;
  world->ranks = comm.state.ranks;
  world->traits = comm.state.script.traits;
  for (const auto& [key, network] : comm.state.networks)
    if (network.lock() == comm.network && !key.second.empty()) world->traits |= TN_COMM_AUTHENTICATED;
  world->most_bytes = comm.state.script.most_bytes;
  world->refused = comm.end().refused;
  return TN_OK;
}

tn_status transfer(void* self, const tn_comm_message* message, uint64_t* request, bool send) {
  LoopComm& comm = comm_of(self);
  Lock lock(comm.state.mutex);
  if (const tn_status status = enter(comm, lock); status != TN_OK) return status;
  if (message->size < sizeof *message) return misuse(comm, "the size of a tn_comm_message is missing");
  if (message->peer < 0 || message->peer >= comm.state.ranks || message->peer == comm.rank)
    return misuse(comm, "peer " + std::to_string(message->peer) + " is not another rank");
  if (message->channel > 1023) return misuse(comm, "channel " + std::to_string(message->channel) + " is above 1023");
  if (message->data == nullptr) return misuse(comm, "the data of a message are null");
  if (message->bytes > comm.state.script.most_bytes)
    return misuse(comm, std::to_string(message->bytes) + " bytes are more than most_bytes");
  if (send) {
    comm.state.run_script(*comm.network, comm.rank);
    if (const tn_status status = enter(comm, lock); status != TN_OK) return status;
  }
  *request = send ? comm.network->send(comm.rank, *message) : comm.network->receive(comm.rank, *message);
  return TN_OK;
}

tn_status loop_send(void* self, const tn_comm_message* message, uint64_t* request) {
  return transfer(self, message, request, true);
}

tn_status loop_receive(void* self, const tn_comm_message* message, uint64_t* request) {
  return transfer(self, message, request, false);
}

uint32_t take_events(LoopEnd& end, tn_comm_event* events, uint32_t capacity) {
  uint32_t count = 0;
  if (std::exchange(end.woken, false)) events[count++] = {TN_COMM_WOKEN, 0, 0, TN_OK, 0};
  for (; count < capacity && !end.events.empty(); end.events.pop_front()) events[count++] = end.events.front();
  return count;
}

tn_status loop_progress(void* self, int64_t timeout_us, tn_comm_event* events, uint32_t capacity, uint32_t* count) {
  LoopComm& comm = comm_of(self);
  Lock lock(comm.state.mutex);
  if (const tn_status status = enter(comm, lock); status != TN_OK) return status;
  if (capacity == 0) return misuse(comm, "progress without room for an event");
  *count = 0;
  const uint32_t idle = comm.state.script.idle_one_in;
  if (idle != 0 && ++comm.end().calls % idle == 0) return TN_OK;
  const LoopTime deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(timeout_us);
  for (;;) {
    const LoopTime now = std::chrono::steady_clock::now();
    comm.network->move(now);
    *count = take_events(comm.end(), events, capacity);
    if (*count != 0 || now >= deadline) return TN_OK;
    comm.end().changed.wait_until(lock, std::min(deadline, comm.network->next(comm.rank)));
    if (const tn_status status = enter(comm, lock); status != TN_OK) return status;
  }
}

void loop_wake(void* self) {
  LoopComm& comm = comm_of(self);
  const Lock lock(comm.state.mutex);
  comm.end().woken = true;
  comm.end().changed.notify_all();
}

void leave(LoopComm& comm, bool clean) {
  const Lock lock(comm.state.mutex);
  if (comm.end().thread != std::this_thread::get_id()) misuse(comm, "a call on another thread than that of open");
  if (clean)
    comm.network->leave(comm.rank);
  else
    comm.state.lose(comm.rank);
  comm.network->move(std::chrono::steady_clock::now());
  comm.network.reset();
}

void loop_abort(void* self, int32_t exit_code) {
  const std::unique_ptr<LoopComm> comm(&comm_of(self));
  {
    const Lock lock(comm->state.mutex);
    comm->state.abort_code = exit_code;
  }
  leave(*comm, false);
}

void loop_close(void* self, int64_t /*timeout_us*/) {
  const std::unique_ptr<LoopComm> comm(&comm_of(self));
  leave(*comm, true);
}

}  // namespace

LoopWorld::LoopWorld(int32_t ranks, LoopScript script) : state_(std::make_unique<State>(ranks, std::move(script))) {
  state_->type = {sizeof(tn_comm_type), TN_COMM_DRAFT, &kDescription, loop_open,  loop_world, loop_send,   loop_receive,
                  loop_progress,        loop_wake,     loop_abort,    loop_close, nullptr,    state_.get()};
}

LoopWorld::~LoopWorld() = default;

const tn_comm_type* LoopWorld::type() const { return &state_->type; }

void LoopWorld::lose(int32_t rank) {
  const Lock lock(state_->mutex);
  state_->lose(rank);
}

void LoopWorld::stop(int32_t rank) {
  const Lock lock(state_->mutex);
  state_->reach.stopped.at(static_cast<size_t>(rank)) = true;
  state_->changed();
}

void LoopWorld::resume(int32_t rank) {
  const Lock lock(state_->mutex);
  state_->reach.stopped.at(static_cast<size_t>(rank)) = false;
  state_->changed();
}

void LoopWorld::cut(const std::vector<int32_t>& side) {
  const Lock lock(state_->mutex);
  state_->cut(side);
}

void LoopWorld::heal() { cut({}); }

std::vector<std::string> LoopWorld::misuses() const {
  const Lock lock(state_->mutex);
  return state_->misuses;
}

uint64_t LoopWorld::sent(uint32_t channel) const {
  const Lock lock(state_->mutex);
  uint64_t messages = 0;
  state_->each([&](const LoopNetwork& network) { messages += network.sent(channel); });
  return messages;
}

std::optional<int32_t> LoopWorld::abort_code() const {
  const Lock lock(state_->mutex);
  return state_->abort_code;
}

}  // namespace tenon_tests
