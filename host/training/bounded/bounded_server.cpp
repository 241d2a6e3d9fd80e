// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/bounded_server.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "host/training/bounded/bounded_mode.h"

namespace tenon::host {

BoundedServer::BoundedServer(const LoopInputs& inputs, const UpdaterGroups& updater, int64_t staleness)
    : inputs_(inputs),
      updater_(updater),
      team_(*inputs.bounded->core()),
      world_(team_.world()),
      machine_(inputs.machine),
      values_(inputs.machine),
      results_(inputs.machine, inputs.registry),
      step_results_(inputs.machine, inputs.registry),
      leases_(staleness) {
  const int64_t trainers = world_.ranks() - world_.servers();
  losses_.resize(static_cast<size_t>(trainers));
  if (!is_first()) machine_.step().set_rows_alone();
  for (int64_t rank = 0; rank < trainers; ++rank) {
    trainers_.emplace_back().rank = rank;
    if (rank > 0) expect(trainers_.back());
  }
}

// Requests that nobody sends any more would be waited for.
BoundedServer::~BoundedServer() {
  const auto is_awaited = [](const Trainer& trainer) { return !trainer.incoming.are_done(); };
  if (std::any_of(trainers_.begin(), trainers_.end(), is_awaited)) world_.abandon();
}

World::Transfers BoundedServer::receive(const Trainer& trainer, void* to, uint64_t bytes) {
  const World::Incoming incoming = {trainer.rank, to, bytes};
  return world_.begin({}, {&incoming, 1}, kRequestChannel, loss_of(trainer));
}

void BoundedServer::expect(Trainer& trainer) {
  trainer.incoming = receive(trainer, &trainer.request, sizeof trainer.request);
  trainer.is_idle = false;
}

void BoundedServer::run(const Bounds& bounds) try {
  bounds_ = bounds;
  first_update_ = machine_.set()->updates();
  results_.clear();
  applied_.clear();
  lost_leases_.clear();
  if (is_first()) leases_.begin(bounds.first, bounds.end);
  if (trainers_.front().is_idle) expect(trainers_.front());
  if (is_first()) {
    const Trainer& first = trainers_.front();
    serve_until([&] { return leases_.is_over() && first.is_idle; });
    if (!first.lost) send(trainers_.front(), BoundedTask::kRoundOver);
  } else {
    const World::Incoming end = {team_.rank_of(1), losses_.data(), losses_.size() * sizeof(uint64_t)};
    control_ = world_.begin({}, {&end, 1}, kControlChannel);
    serve_until([&] { return control_.are_done(); });
    // What a lost trainer has sent before is applied, so that it is known what is.
    for (const Trainer& trainer : trainers_)
      serve_until([&] { return trainer.losses >= losses_[static_cast<size_t>(trainer.rank)]; });
  }
  settle();
} catch (...) {
  world_.abandon();
  throw;
}

// Ends a round at all servers.
void BoundedServer::settle() {
  if (is_first()) {
    for (const Trainer& trainer : trainers_) losses_[static_cast<size_t>(trainer.rank)] = trainer.losses;
    for (int64_t server = 2; server < team_.processes(); ++server) {
      const World::Outgoing end = {team_.rank_of(server), losses_.data(), losses_.size() * sizeof(uint64_t)};
      world_.begin({&end, 1}, {}, kControlChannel).wait();
    }
  }
  round_.torn += count_torn(team_, lost_leases_, applied_);
  round_.next = leases_.next();
  round_.pass_has_ended = leases_.pass_has_ended() ? 1 : 0;
  round_.updates = machine_.set()->updates();
}

int64_t BoundedServer::count_torn(Team& team, std::vector<int64_t> lost, const std::set<int64_t>& applied) {
  constexpr int64_t kFirst = 1;  // server
  auto count = static_cast<uint64_t>(lost.size());
  team.broadcast(std::as_writable_bytes(std::span(&count, 1)), kFirst);
  lost.resize(count);
  team.broadcast(std::as_writable_bytes(std::span(lost)), kFirst);
  std::vector<char> has(count * static_cast<size_t>(team.processes()));
  for (size_t i = 0; i < count; ++i)
    has[static_cast<size_t>(team.rank()) * count + i] = applied.contains(lost[i]) ? 1 : 0;
  team.gather(std::as_writable_bytes(std::span(has)));
  int64_t torn = 0;
  for (size_t i = 0; i < count; ++i) {
    bool is_torn = false;
    for (size_t at = i; at < has.size(); at += count) is_torn = is_torn || has[at] != 0;
    if (is_torn) ++torn;
  }
  return torn;
}

void BoundedServer::serve_until(const std::function<bool()>& is_over) {
  const auto has_work = [this](const Trainer& trainer) {
    return has_returned(trainer) || (!trainer.lost && !trainer.is_idle && trainer.incoming.are_done());
  };
  for (;;) {
    if (is_first()) hand_out();
    if (is_over()) return;
    const bool has_control = !is_first();
    const auto awaited = std::find_if(trainers_.begin(), trainers_.end(),
                                      [](const Trainer& trainer) { return !trainer.lost && !trainer.is_idle; });
    world_.wait_until(
        [&] {
          return (has_control && control_.are_done() && is_over()) ||
                 std::any_of(trainers_.begin(), trainers_.end(), has_work);
        },
        awaited == trainers_.end() ? -1 : awaited->rank);
    for (Trainer& trainer : trainers_)
      if (has_work(trainer)) serve(trainer);
  }
}

// Carries out a request that has arrived.
void BoundedServer::serve(Trainer& trainer) {
  if (has_returned(trainer)) {
    if (!trainer.lost) lose(trainer);
    trainer.returns = world_.returns(trainer.rank);
    trainer.lost = false;
    return expect(trainer);
  }
  Message body;
  if (trainer.incoming.are_lost() || !take(trainer, body)) return lose(trainer);
  trainer.outgoing.wait();  // it has the answer before, so this is short
  const BoundedRequest& request = trainer.request;
  if (request.learning_rate >= 0 && request.learning_rate != updater_.learning_rate())
    updater_.set_learning_rate(request.learning_rate);
  switch (request.kind) {
    case BoundedRequest::kLease:
      trainer.is_idle = true;
      trainer.wants_all = request.wants_all != 0;
      if (request.drains != 0) leases_.drain();
      return;
    case BoundedRequest::kRows:
      answer_rows(trainer, body);
      break;
    case BoundedRequest::kPush:
      push(trainer, body);
      break;
    case BoundedRequest::kReturn:
      leases_.give_back(trainer.rank);
      break;
    case BoundedRequest::kFailure:
      return end_by(trainer, body);
    case BoundedRequest::kHello:
      return greet(trainer, body);
    default:
      fail(TN_BAD_DATA, "process ", trainer.rank, " sends a request of kind ", request.kind);
  }
  expect(trainer);
}

// Receives what follows a request. Returns false if the trainer is lost meanwhile.
bool BoundedServer::take(Trainer& trainer, Message& body) {
  constexpr uint64_t kMost = uint64_t{1} << 40U;
  if (trainer.request.bytes > kMost)
    fail(TN_BAD_DATA, "process ", trainer.rank, " announces ", trainer.request.bytes, " bytes");
  body.resize(trainer.request.bytes);
  World::Transfers transfers = receive(trainer, body.data(), body.size());
  transfers.wait();
  return !transfers.are_lost();
}

void BoundedServer::answer_rows(Trainer& trainer, const Message& ids) {
  const ParameterSet& set = *machine_.set();
  const TableBlocks& blocks = *set.tables().blocks;
  const std::vector<MachineTable>& tables = machine_.model().tables;
  MessageReader reader(ids, trainer.rank);
  std::vector<std::vector<int64_t>> rows(tables.size());
  uint64_t bytes = 0;
  for (size_t table = 0; table < tables.size(); ++table) {
    reader.read(rows[table], reader.length(blocks.rows(tables[table].height)));
    for (const int64_t row : rows[table]) require_own(trainer, tables[table], row);
    bytes += rows[table].size() * static_cast<size_t>(tables[table].width) * sizeof(float);
  }
  const SetRead read(inputs_.gate);
  MessageWriter writer(trainer.answer, bytes);
  for (size_t table = 0; table < tables.size(); ++table)
    for (const int64_t row : rows[table])
      writer.write(std::span(set.owned()->row(tables[table].owned, blocks.place(row)),
                             static_cast<size_t>(tables[table].width)));
  send(trainer, trainer.answer.data(), bytes);
}

void BoundedServer::require_own(const Trainer& trainer, const MachineTable& table, int64_t row) const {
  if (row >= 0 && row < table.height && machine_.set()->tables().blocks->contains(row)) return;
  fail(TN_BAD_DATA, "process ", trainer.rank, " names row ", row, " of table \"",
       machine_.set()->owned()->entries()[table.owned].name, "\" of ", table.height,
       " rows, which this process does not own");
}

void BoundedServer::push(Trainer& trainer, const Message& body) {
  const bool is_behind = is_first() && body.empty();  // the last minibatch of the pass
  if (!is_behind) apply(trainer, body);
  if (is_behind) {
    leases_.end_pass(trainer.rank);
  } else if (is_first()) {
    leases_.finish(trainer.rank);
  } else {
    trainer.task.serial = trainer.request.serial;
    send(trainer, &trainer.task.serial, sizeof trainer.task.serial);
  }
}

void BoundedServer::apply(Trainer& trainer, const Message& body) {
  const std::vector<MachineTable>& tables = machine_.model().tables;
  MessageReader reader(body, trainer.rank);
  const SetWrite write(inputs_.gate);
  for (const size_t table : values_.tables()) {
    RowTerms gradient;
    reader.read(gradient.ids, reader.length(machine_.set()->tables().blocks->rows(tables[table].height)));
    for (const int64_t row : gradient.ids) require_own(trainer, tables[table], row);
    const uint64_t bytes = gradient.ids.size() * static_cast<size_t>(tables[table].width) * sizeof(float);
    const std::byte* const values = reader.bytes(bytes);
    gradient.values.assign(values, values + bytes);
    machine_.set_row_gradient(table, gradient);
  }
  if (is_first()) values_.read_gradients(reader);
  updater_.update(machine_.step());
  machine_.step().commit(UsedNames());
  applied_.insert(trainer.request.serial);
  if (!is_first()) return;
  step_results_.set(values_.read_buffers(reader));
  results_.add(step_results_);
}

// A trainer has failed, which ends the training.
void BoundedServer::end_by(Trainer& trainer, const Message& body) {
  const std::string text(reinterpret_cast<const char*>(body.data()), body.size());
  if (!failure_)
    failure_.emplace(Error(static_cast<tn_status>(trainer.request.status), text, "", "team")
                         .with_context(core::text("process ", trainer.rank)));
  leases_.give_back(trainer.rank);
  leases_.stop();
  trainer.lost = trainer.is_idle = true;
}

// Refuses a trainer that trains otherwise.
void BoundedServer::greet(Trainer& trainer, const Message& body) {
  const std::string name = inputs_.bounded->difference({reinterpret_cast<const char*>(body.data()), body.size()});
  trainer.answer.clear();
  if (name.empty()) {
    send(trainer, BoundedTask::kRoundOver);
    return expect(trainer);
  }
  const std::string why =
      text("process ", trainer.rank, " has another ", name, " than process 0, which may compute other values");
  const auto* const begin = reinterpret_cast<const std::byte*>(why.data());
  trainer.answer.assign(begin, begin + why.size());
  trainer.task.status = TN_INVALID;
  send(trainer, BoundedTask::kFailed);
  trainer.lost = trainer.is_idle = true;
}

void BoundedServer::lose(Trainer& trainer) {
  trainer.lost = true;
  ++trainer.losses;
  const std::optional<Leases::Lease> lease = leases_.give_back(trainer.rank);
  if (!lease) return;
  lost_leases_.push_back(lease->serial);
  ++round_.repeated;
}

// Gives minibatches to trainers that wait.
void BoundedServer::hand_out() {
  for (Trainer& trainer : trainers_) {
    if (!trainer.is_idle || trainer.lost || is_ending_) continue;
    const std::optional<Leases::Lease> lease = leases_.lease(trainer.rank);
    if (!lease) return;
    const int64_t before = lease->minibatch - bounds_.first;
    trainer.task = {};
    trainer.task.serial = lease->serial;
    trainer.task.minibatch = lease->minibatch;
    trainer.task.reader_pass = bounds_.reader_pass;
    trainer.task.position = bounds_.position + before * inputs_.reader.batch();
    trainer.task.step = first_update_ + static_cast<uint64_t>(before);
    trainer.task.scheduled_rate = updater_.scheduled_rate(machine_.set());
    trainer.answer.resize(values_.value_bytes(trainer.wants_all));
    {
      const SetRead read(inputs_.gate);
      values_.write_values(trainer.wants_all, trainer.answer.data());
    }
    send(trainer, BoundedTask::kMinibatch);
    expect(trainer);
  }
}

// Sends a task with the bytes of the answer.
void BoundedServer::send(Trainer& trainer, int64_t kind) {
  if (kind == BoundedTask::kRoundOver) trainer.answer.clear();
  trainer.task.kind = kind;
  trainer.task.bytes = trainer.answer.size();
  const World::Outgoing answer[] = {{trainer.rank, &trainer.task, sizeof trainer.task},
                                    {trainer.rank, trainer.answer.data(), trainer.answer.size()}};
  trainer.outgoing = world_.begin(answer, {}, kRequestChannel, loss_of(trainer));
}

void BoundedServer::send(Trainer& trainer, const void* bytes, uint64_t count) {
  const World::Outgoing answer = {trainer.rank, bytes, count};
  trainer.outgoing = world_.begin({&answer, 1}, {}, kRequestChannel, loss_of(trainer));
}

std::vector<int64_t> BoundedServer::lost() const {
  std::vector<int64_t> ranks;
  for (const Trainer& trainer : trainers_)
    if (trainer.lost) ranks.push_back(trainer.rank);
  return ranks;
}

void BoundedServer::end(const Error* error) {
  is_ending_ = true;
  const auto is_there = [](const Trainer& trainer) { return trainer.rank > 0 && !trainer.lost; };
  serve_until([&] {
    return std::all_of(trainers_.begin(), trainers_.end(),
                       [&](const Trainer& trainer) { return !is_there(trainer) || trainer.is_idle; });
  });
  const std::vector<int64_t> ranks = lost();
  for (Trainer& trainer : trainers_) {
    if (!is_there(trainer) || !is_first()) continue;
    trainer.task.status = error == nullptr ? TN_OK : error->code();
    const auto* const begin = error == nullptr ? reinterpret_cast<const std::byte*>(ranks.data())
                                               : reinterpret_cast<const std::byte*>(error->message().data());
    trainer.answer.assign(begin, begin + (error == nullptr ? ranks.size() * sizeof(int64_t) : error->message().size()));
    send(trainer, error == nullptr ? BoundedTask::kEnd : BoundedTask::kFailed);
  }
  for (Trainer& trainer : trainers_) trainer.outgoing.wait();
}

}  // namespace tenon::host
