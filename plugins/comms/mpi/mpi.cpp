// SPDX-License-Identifier: Apache-2.0
#include "mpi.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <set>
#include <string>
#include <tenon/plugin.hpp>
#include <thread>
#include <utility>

#include "hooks.h"
#include "launch.h"

namespace tenon_mpi {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Tags above those of the channels.
constexpr int kBeatTag = 1024;
constexpr int kJoinTag = 1025;
constexpr int64_t kFarFuture = int64_t{1} << 40;  // microseconds

Time after(int64_t timeout_us) {
  return steady_clock::now() + microseconds(std::clamp<int64_t>(timeout_us, 0, kFarFuture));
}

constexpr uint32_t kMagic = 0x746e6d70;
struct Greeting {
  uint32_t magic;
  uint32_t epoch;
};

// The byte of a beat.
constexpr char kLives = 0;
constexpr char kLeaves = 1;

}  // namespace

void Mpi::describe(tn::CommDescription& description) {
  description.type(TENON_MPI_NAME, "messages over MPI between processes of " TENON_MPI_LAUNCHER);
  description.traits(TN_COMM_ONE_PER_PROCESS);
  description.attribute(tn::string_attribute("library", TENON_MPI_LIBRARY)
                            .doc("file of the MPI library, with the ABI of that of the build"));
}

Mpi::Mpi(const tn::CommOpen& open, tn::CommEvents& events) : events_(events) {
  if (!open.address().empty())
    throw tn::Failure(TN_UNSUPPORTED, "address",
                      "expected none, got \"" + open.address() + "\": " TENON_MPI_LAUNCHER " connects the ranks");
  if (const std::optional<Place> place = launched_place())
    check_place(*place, open.rank(), open.ranks());
  else if (started_processes() > 1)
    check_place({0, 1}, open.rank(), open.ranks());
  const Time deadline = after(int64_t{1000} * open.deadline_ms());
  {
    const Hooks hooks;
    mpi_ = std::make_shared<const Library>(open.attributes().text("library"));
    life_ = std::make_unique<Life>(mpi_, deadline, [&] { open.check_cancelled(); });
  }
  open_world(open);
  join(open, deadline);
  duplicate(open, deadline);
  const Time now = steady_clock::now();
  silence_ = milliseconds(open.silence_ms());
  last_beat_ = now;
  beats_ = std::make_shared<std::vector<char>>(2 * peers_.size() + 1, kLives);
  for (Peer& peer : peers_) peer.heard = now;
  if (silence_.count() > 0) listen();
}

void Mpi::open_world(const tn::CommOpen& open) {
  mpi_->comm_set_errhandler(mpi_->world, mpi_->errors_return);
  int rank = 0;
  int ranks = 0;
  mpi_->comm_rank(mpi_->world, &rank);
  mpi_->comm_size(mpi_->world, &ranks);
  check_place({rank, ranks}, open.rank(), open.ranks());
  rank_ = rank;
  ranks_ = ranks;
  peers_.resize(static_cast<size_t>(ranks));
}

// Exchanges epochs with all ranks.
void Mpi::join(const tn::CommOpen& open, Time deadline) {
  // Freed at the end alone: behind a failure MPI may still use them.
  auto* const greetings = new std::vector<Greeting>(peers_.size());
  Greeting& mine = (*greetings)[static_cast<size_t>(rank_)];
  mine = {kMagic, open.epoch()};
  for (int32_t peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    start(Kind::kReceive, peer, 0, &(*greetings)[static_cast<size_t>(peer)], sizeof mine, kJoinTag, mpi_->world);
    start(Kind::kSend, peer, 0, &mine, sizeof mine, kJoinTag, mpi_->world);
  }
  for (uint32_t rounds = 0; !transfers_.empty() && !lost_; ++rounds) {
    poll();
    open.check_cancelled();
    if (steady_clock::now() >= deadline) throw missing(open.deadline_ms());
    wait(deadline, rounds);
  }
  if (lost_) throw tn::Failure(TN_IO, "", "a rank was lost while the ranks connected");
  for (int32_t peer = 0; peer < ranks_; ++peer) {
    const Greeting& greeting = (*greetings)[static_cast<size_t>(peer)];
    if (greeting.magic != mine.magic || greeting.epoch != mine.epoch)
      throw tn::Failure(TN_INVALID, "epoch",
                        "rank " + std::to_string(peer) + " has epoch " + std::to_string(greeting.epoch) +
                            ", this process " + std::to_string(mine.epoch));
  }
  delete greetings;
}

tn::Failure Mpi::missing(int32_t deadline_ms) const {
  std::set<int32_t> ranks;
  for (const Transfer& transfer : transfers_) ranks.insert(transfer.peer);
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (const int32_t rank : ranks) text += (rank == *ranks.begin() ? " " : ", ") + std::to_string(rank);
  return {TN_IO, "", text + " did not connect within " + std::to_string(deadline_ms) + " ms"};
}

// A communicator of this object's own, so that no message of others in the process is taken for one of it.
void Mpi::duplicate(const tn::CommOpen& open, Time deadline) {
  auto* const duplicate = new MPI_Comm;  // as the greetings
  MPI_Request request{};
  int count = 0;
  int index = 0;
  MPI_Status status{};
  int error = mpi_->comm_idup(mpi_->world, duplicate, &request);
  for (uint32_t rounds = 0; error == MPI_SUCCESS && count == 0; ++rounds) {
    error = mpi_->testsome(1, &request, &count, &index, &status);
    open.check_cancelled();
    if (count == 0 && steady_clock::now() >= deadline)
      throw tn::Failure(TN_IO, "",
                        "the ranks did not all connect within " + std::to_string(open.deadline_ms()) + " ms");
    if (count == 0) wait(deadline, rounds);
  }
  if (error != MPI_SUCCESS) throw tn::Failure(TN_IO, "", "MPI_Comm_idup failed with the code " + std::to_string(error));
  comm_ = *duplicate;
  delete duplicate;
  mpi_->comm_set_errhandler(comm_, mpi_->errors_return);
}

void Mpi::world(tn_comm_world& world) const {
  world.rank = rank_;
  world.ranks = ranks_;
  world.most_bytes = INT_MAX;
  world.refused = 0;
}

uint64_t Mpi::send(const tn_comm_message& message) { return begin(message, Kind::kSend); }
uint64_t Mpi::receive(const tn_comm_message& message) { return begin(message, Kind::kReceive); }

uint64_t Mpi::begin(const tn_comm_message& message, Kind kind) {
  if (message.peer < 0 || message.peer >= ranks_ || message.peer == rank_ || message.channel >= kBeatTag)
    throw tn::Failure(TN_MISUSE, "",
                      "peer " + std::to_string(message.peer) + ", channel " + std::to_string(message.channel) +
                          ": expected another of " + std::to_string(ranks_) + " ranks, and at most 1023");
  if (message.bytes > INT_MAX)
    throw tn::Failure(TN_MISUSE, "",
                      std::to_string(message.bytes) + " bytes: expected at most " + std::to_string(INT_MAX));
  const uint64_t number = ++last_number_;
  if (lost_)
    events_.done(number, message.peer, TN_IO);
  else
    start(kind, message.peer, number, message.data, message.bytes, static_cast<int>(message.channel), comm_);
  return number;
}

void Mpi::start(Kind kind, int32_t peer, uint64_t number, void* data, uint64_t bytes, int tag, MPI_Comm comm) {
  const bool sends = kind == Kind::kSend || kind == Kind::kBeatSent;
  transfers_.push_back({kind, peer, number, bytes});  // first, so that an exception leaves no request of MPI
  requests_.emplace_back();
  const auto call =
      sends ? [](const Library& mpi, void* from, int count, int other, int label, MPI_Comm world,
                 MPI_Request* request) { return mpi.isend(from, count, mpi.byte, other, label, world, request); }
            : [](const Library& mpi, void* to, int count, int other, int label, MPI_Comm world, MPI_Request* request) {
                return mpi.irecv(to, count, mpi.byte, other, label, world, request);
              };
  const int error = call(*mpi_, data, static_cast<int>(bytes), peer, tag, comm, &requests_.back());
  if (error == MPI_SUCCESS) return;
  requests_.pop_back();
  transfers_.pop_back();
  throw tn::Failure(TN_IO, "",
                    "a message with rank " + std::to_string(peer) + " failed with the code " + std::to_string(error));
}

// Takes the transfers that have ended.
void Mpi::poll() {
  const auto count = static_cast<int>(requests_.size());
  if (count == 0) {  // lets messages move all the same
    int flag = 0;
    mpi_->iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi_->world, &flag, MPI_STATUS_IGNORE);
    return;
  }
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int ended = 0;
  const int error = mpi_->testsome(count, requests_.data(), &ended, indices_.data(), statuses_.data());
  int kind = MPI_SUCCESS;
  if (error != MPI_SUCCESS) mpi_->error_class(error, &kind);
  if (error != MPI_SUCCESS && kind != MPI_ERR_IN_STATUS) return lose(transfers_.front().peer);
  for (int i = 0; i < ended && !lost_; ++i)
    finish(transfers_[static_cast<size_t>(indices_[static_cast<size_t>(i)])], statuses_[static_cast<size_t>(i)],
           kind == MPI_ERR_IN_STATUS ? statuses_[static_cast<size_t>(i)].MPI_ERROR : MPI_SUCCESS);
  if (lost_ || ended == MPI_UNDEFINED) return;
  std::sort(indices_.begin(), indices_.begin() + ended, std::greater<>());
  for (int i = 0; i < ended; ++i) {
    const auto place = static_cast<size_t>(indices_[static_cast<size_t>(i)]);
    requests_[place] = requests_.back();
    transfers_[place] = transfers_.back();
    requests_.pop_back();
    transfers_.pop_back();
  }
}

void Mpi::finish(const Transfer& transfer, const MPI_Status& status, int error) {
  Peer& peer = peers_[static_cast<size_t>(transfer.peer)];
  const bool receives = transfer.kind == Kind::kReceive || transfer.kind == Kind::kBeatReceived;
  int kind = MPI_SUCCESS;
  if (error != MPI_SUCCESS) mpi_->error_class(error, &kind);
  if (kind != MPI_SUCCESS && (kind != MPI_ERR_TRUNCATE || !receives)) return lose(transfer.peer);
  if (receives) peer.heard = steady_clock::now();
  if (transfer.kind == Kind::kBeatSent) peer.beating = false;
  if (transfer.kind == Kind::kBeatReceived)
    peer.left = (*beats_)[static_cast<size_t>(ranks_) + static_cast<size_t>(transfer.peer)] == kLeaves;
  if (transfer.number == 0) return;
  int bytes = 0;
  if (receives && kind == MPI_SUCCESS) mpi_->get_count(&status, mpi_->byte, &bytes);
  const bool fits = !receives || (kind == MPI_SUCCESS && static_cast<uint64_t>(bytes) == transfer.bytes);
  events_.done(transfer.number, transfer.peer, fits ? TN_OK : TN_BAD_DATA);
}

// Waits for beats of the ranks that have not left.
void Mpi::listen() {
  std::vector<bool> listening(peers_.size());
  for (const Transfer& transfer : transfers_)
    if (transfer.kind == Kind::kBeatReceived) listening[static_cast<size_t>(transfer.peer)] = true;
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    const auto place = static_cast<size_t>(rank);
    if (rank == rank_ || peers_[place].left || listening[place]) continue;
    start(Kind::kBeatReceived, rank, 0, &(*beats_)[static_cast<size_t>(ranks_) + place], 1, kBeatTag, comm_);
  }
}

// Sends beats, and finds silent ranks.
void Mpi::beat(Time now) {
  if (silence_.count() == 0 || now - last_beat_ < silence_ / 16) return;
  // A rank that did not run does not know whether others were silent.
  const bool paused = now - last_beat_ > silence_ / 2;
  last_beat_ = now;
  listen();
  for (int32_t rank = 0; rank < ranks_; ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (rank == rank_ || peer.left) continue;
    if (paused) peer.heard = now;
    if (now - peer.heard > silence_) return lose(rank);
    if (peer.beating || now - peer.beat < silence_ / 4) continue;
    start(Kind::kBeatSent, rank, 0, &(*beats_)[static_cast<size_t>(rank)], 1, kBeatTag, comm_);
    peer.beating = true;
    peer.beat = now;
  }
}

// Ends everything, the silent rank first.
void Mpi::lose(int32_t peer) {
  lost_ = true;
  for (const Transfer& transfer : transfers_)
    if (transfer.number != 0) events_.done(transfer.number, transfer.peer, TN_IO);
  events_.lost(peer);
  for (int32_t other = 0; other < ranks_; ++other)
    if (other != peer && other != rank_) events_.lost(other);
}

bool Mpi::take_wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(woken_, false);
}

void Mpi::progress(int64_t timeout_us) {
  const Time deadline = after(timeout_us);
  for (uint32_t rounds = 0;; ++rounds) {
    if (take_wake()) events_.woken();
    if (!lost_) poll();
    if (!lost_) beat(steady_clock::now());
    if (!events_.empty() || steady_clock::now() >= deadline) return;
    wait(deadline, rounds);
  }
}

// MPI has no call that waits for a message or for a time. Yields at first, then sleeps: on cores that ranks share, this
// is faster than the waits of MPI.
void Mpi::wait(Time deadline, uint32_t rounds) {
  constexpr uint32_t kYields = 20;
  if (rounds < kYields) {
    std::this_thread::yield();
    return;
  }
  // Open MPI moves a long message in parts, one or a few at a time for each call.
  const auto longest = transfers_.size() < peers_.size() ? microseconds(640) : microseconds(160);
  const auto pause = std::min<microseconds>(microseconds(20U << std::min((rounds - kYields) / 16, 5U)), longest);
  const Time moment = std::min(deadline, steady_clock::now() + pause);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_until(lock, moment, [&] { return woken_; });
}

void Mpi::wake() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

void Mpi::abort(int32_t exit_code) noexcept {
  constexpr auto kPatience = std::chrono::seconds(2);
  try {  // MPI_Abort may wait for a launcher that is gone
    std::thread([exit_code, kPatience] {
      std::this_thread::sleep_for(kPatience);
      _exit(exit_code);
    }).detach();
  } catch (const std::system_error&) {  // without a thread MPI_Abort has all the time
  }
  mpi_->abort(mpi_->world, exit_code);
}

// Drops what was to be received, and waits for what is sent, since MPI_Finalize would read from memory that is not lent
// any more; with beats also until all others leave.
bool Mpi::end_transfers(Time deadline) {
  char* const leaves = &(*beats_)[2 * static_cast<size_t>(ranks_)];
  *leaves = kLeaves;
  for (size_t i = 0; i < transfers_.size(); ++i)
    if (transfers_[i].kind == Kind::kReceive) mpi_->cancel(&requests_[i]);
  for (int32_t rank = 0; rank < ranks_ && silence_.count() > 0; ++rank)
    if (rank != rank_) start(Kind::kBeatSent, rank, 0, leaves, 1, kBeatTag, comm_);
  for (uint32_t rounds = 0; !lost_; ++rounds) {
    poll();
    if (silence_.count() > 0 && !lost_) listen();
    if (transfers_.empty() || steady_clock::now() >= deadline) break;
    wait(deadline, rounds);
  }
  return transfers_.empty() && !lost_;
}

void Mpi::close(int64_t timeout_us) noexcept {
  const Time deadline = after(timeout_us);
  try {
    if (!lost_ && end_transfers(deadline)) life_->finalize(deadline, beats_);
  } catch (...) {  // out of memory: the world is left as it is
  }
  if (lost_ || !transfers_.empty())
    static_cast<void>(new (std::nothrow) std::shared_ptr<void>(beats_));  // MPI may still use them
}

}  // namespace tenon_mpi

namespace {

void describe(tn::Plugin& plugin) {
  plugin.about("tenon." TENON_MPI_NAME, "1.0.0", "Messages between the processes of a training over " TENON_MPI_NAME,
               "Apache-2.0");
  plugin.comm(tn::comm_type<tenon_mpi::Mpi>());
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
