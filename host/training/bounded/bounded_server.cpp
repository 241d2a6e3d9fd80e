// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/bounded_server.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "host/machine/tables/table_owners.h"
#include "host/training/bounded/bounded_mode.h"
#include "host/training/bounded/updater_states.h"

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
    Trainer& trainer = *trainers_.emplace_back(std::make_shared<Trainer>());
    trainer.rank = rank;
    trainer.losses = trainer.returns = world_.returns(rank);
    if (rank > 0) expect(trainer);
  }
}

// Requests that nobody sends any more are not waited for.
BoundedServer::~BoundedServer() {
  for (const auto& trainer : trainers_)
    if (!trainer->incoming.are_done()) trainer->incoming.detach(trainer);
}

World::Transfers BoundedServer::receive(const Trainer& trainer, void* to, uint64_t bytes) {
  const World::Incoming incoming = {trainer.rank, to, bytes};
  return world_.begin_with(trainer.rank, trainer.returns, {}, {&incoming, 1}, kRequestChannel);
}

void BoundedServer::expect(Trainer& trainer) {
  trainer.incoming = receive(trainer, &trainer.request, sizeof trainer.request);
  trainer.is_idle = false;
}

void BoundedServer::expect_control() {
  const World::Incoming losses = {team_.rank_of(1), losses_.data(), losses_.size() * sizeof(uint64_t)};
  control_ = world_.begin({}, {&losses, 1}, kControlChannel);
}

void BoundedServer::send_control() {
  for (int64_t server = 2; server < team_.processes(); ++server) {
    const World::Outgoing losses = {team_.rank_of(server), losses_.data(), losses_.size() * sizeof(uint64_t)};
    world_.begin({&losses, 1}, {}, kControlChannel).wait();
  }
}

void BoundedServer::run(const Bounds& bounds) try {
  bounds_ = bounds;
  first_update_ = machine_.set()->updates();
  results_.clear();
  applied_.clear();
  lost_leases_.clear();
  if (is_first()) leases_.begin(bounds.first, bounds.end);
  if (trainers_.front()->is_idle) expect(*trainers_.front());
  if (is_first()) {
    const Trainer& first = *trainers_.front();
    serve_until([&] { return leases_.is_over() && first.is_idle; });
    if (!first_has_failed_) send(*trainers_.front(), BoundedTask::kRoundOver);
  } else {
    expect_control();
    serve_until([&] { return control_.are_done(); });
    // What a lost trainer has sent before is applied, so that it is known what is.
    for (const auto& trainer : trainers_)
      serve_until([&] { return trainer->losses >= losses_[static_cast<size_t>(trainer->rank)]; });
  }
  settle();
} catch (...) {
  world_.abandon();
  throw;
}

// Ends a round at all servers.
void BoundedServer::settle() {
  if (is_first()) {
    for (const auto& trainer : trainers_) losses_[static_cast<size_t>(trainer->rank)] = trainer->losses;
    send_control();
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
  const auto has_request = [](const Trainer& trainer) {
    return !trainer.lost && !trainer.is_idle && trainer.incoming.are_done();
  };
  const auto has_work = [&](const auto& trainer) { return has_request(*trainer) || has_changed(*trainer); };
  const auto is_awaited = [](const auto& trainer) { return !trainer->lost && !trainer->is_idle; };
  for (;;) {
    if (is_first()) hand_out();
    if (is_over()) return;
    const auto awaited = std::find_if(trainers_.begin(), trainers_.end(), is_awaited);
    world_.wait_until([&] { return is_over() || std::any_of(trainers_.begin(), trainers_.end(), has_work); },
                      awaited == trainers_.end() ? -1 : (*awaited)->rank);
    for (const auto& trainer : trainers_) {
      if (has_request(*trainer)) serve(*trainer);  // before its loss is noticed: it is done
      if (has_changed(*trainer)) notice_change(*trainer);
    }
  }
}

bool BoundedServer::has_changed(const Trainer& trainer) const {
  const uint64_t losses = world_.losses(trainer.rank), returns = world_.returns(trainer.rank);
  return losses > trainer.losses || (trainer.lost && !is_ending_ && returns == losses && returns > trainer.returns);
}

// In the end nobody may return, since the others have agreed on who is there.
void BoundedServer::notice_change(Trainer& trainer) {
  const uint64_t returns = world_.returns(trainer.rank), losses = world_.losses(trainer.rank);
  if (losses > trainer.losses) {
    if (trainer.rank == 0) world_.fail_lost(0);
    lose(trainer);
    trainer.losses = losses;
  }
  if (is_ending_ || returns != losses || returns == trainer.returns) return;
  trainer.returns = returns;
  trainer.lost = trainer.is_refused = false;
  expect(trainer);
}

// Carries out a request that has arrived.
void BoundedServer::serve(Trainer& trainer) {
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
    for (const int64_t row : rows[table]) require_owned(set, tables[table], row, trainer.rank, "asks for");
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
    for (const int64_t row : gradient.ids)
      require_owned(*machine_.set(), tables[table], row, trainer.rank, "has a gradient of");
    const uint64_t bytes = gradient.ids.size() * static_cast<size_t>(tables[table].width) * sizeof(float);
    gradient.values = {reader.bytes(bytes), bytes};
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

// A trainer has failed, which ends the training. Process 0 sends nothing more, others wait for the end.
void BoundedServer::end_by(Trainer& trainer, const Message& body) {
  if (!failure_)
    failure_.emplace(Error(static_cast<tn_status>(trainer.request.status), std::string(text_of(body)), "", "team")
                         .with_context(core::text("process ", trainer.rank)));
  leases_.give_back(trainer.rank);
  leases_.stop();
  trainer.is_idle = true;
  first_has_failed_ = first_has_failed_ || trainer.rank == 0;
  if (trainer.rank > 0) expect(trainer);
}

// Refuses a trainer that trains otherwise.
void BoundedServer::greet(Trainer& trainer, const Message& body) {
  const std::string name = inputs_.bounded->difference(std::string(text_of(body)));
  trainer.answer.clear();
  if (name.empty()) {
    send(trainer, BoundedTask::kRoundOver);
    return expect(trainer);
  }
  trainer.answer = message_of(
      text("process ", trainer.rank, " has another ", name, " than process 0, which may compute other values"));
  trainer.task.status = TN_INVALID;
  send(trainer, BoundedTask::kFailed);
  trainer.is_refused = trainer.is_idle = true;
}

void BoundedServer::lose(Trainer& trainer) {
  trainer.lost = true;
  if (const std::optional<Leases::Lease> lease = leases_.give_back(trainer.rank)) lost_leases_.push_back(lease->serial);
}

// Gives minibatches to trainers that wait.
void BoundedServer::hand_out() {
  for (const auto& each : trainers_) {
    Trainer& trainer = *each;
    if (!trainer.is_idle || !is_there(trainer) || is_ending_ || has_changed(trainer)) continue;
    const std::optional<Leases::Lease> lease = leases_.lease(trainer.rank);
    if (!lease) return;
    if (lease->is_again) ++round_.repeated;
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
  trainer.outgoing = world_.begin_with(trainer.rank, trainer.returns, answer, {}, kRequestChannel);
}

void BoundedServer::send(Trainer& trainer, const void* bytes, uint64_t count) {
  const World::Outgoing answer = {trainer.rank, bytes, count};
  trainer.outgoing = world_.begin_with(trainer.rank, trainer.returns, {&answer, 1}, {}, kRequestChannel);
}

std::vector<int64_t> BoundedServer::lost() const {
  std::vector<int64_t> ranks;
  for (const auto& trainer : trainers_)
    if (trainer->lost) ranks.push_back(trainer->rank);
  return ranks;
}

// Process 0 says to servers but the first that it sends nothing more, and to that one it does not.
bool BoundedServer::are_all_idle() const {
  return std::all_of(trainers_.begin(), trainers_.end(), [&](const auto& trainer) {
    const bool is_lost = !is_first() && losses_[static_cast<size_t>(trainer->rank)] != 0;
    return is_lost || !is_there(*trainer) || trainer->is_idle || (trainer->rank == 0 && is_first());
  });
}

void BoundedServer::await_idle() {
  serve_until([this] { return are_all_idle(); });
}

void BoundedServer::tell_all(int64_t kind, const Message& answer) {
  for (const auto& trainer : trainers_) {
    if (trainer->rank == 0 || !is_there(*trainer)) continue;
    trainer->outgoing.wait();
    trainer->answer = answer;
    send(*trainer, kind);
  }
}

void BoundedServer::end(const Error* error) {
  is_ending_ = true;
  if (!is_first()) {
    expect_control();
    serve_until([this] { return control_.are_done() && are_all_idle(); });
    return;
  }
  await_idle();
  const Message answer = error == nullptr ? Message() : message_of(error->message());
  for (const auto& trainer : trainers_) trainer->task.status = error == nullptr ? TN_OK : error->code();
  tell_all(error == nullptr ? BoundedTask::kEnd : BoundedTask::kFailed, answer);
  for (const auto& trainer : trainers_)
    if (trainer->rank > 0 && is_there(*trainer)) expect(*trainer);
  await_idle();  // those that ask again are there
  for (const auto& trainer : trainers_) losses_[static_cast<size_t>(trainer->rank)] = trainer->lost ? 1 : 0;
  send_control();
  tell_present();
}

// Gives all trainers that are there what they have in the end.
void BoundedServer::tell_present() {
  const std::vector<int64_t> ranks = lost();
  const auto* const begin = reinterpret_cast<const std::byte*>(ranks.data());
  Message answer(begin, begin + ranks.size() * sizeof(int64_t));
  const uint64_t values = answer.size();
  answer.resize(values + values_.value_bytes(true));
  values_.write_values(true, answer.data() + values);
  const Message states = states_of(updater_, machine_.set());
  answer.insert(answer.end(), states.begin(), states.end());
  for (const auto& trainer : trainers_) {
    trainer->task.lost = static_cast<int64_t>(ranks.size());
    trainer->task.step = machine_.set()->updates();
    trainer->task.reader_pass = inputs_.reader.pass();
    trainer->task.position = inputs_.reader.position();
  }
  tell_all(BoundedTask::kPresent, answer);
  for (const auto& trainer : trainers_) trainer->outgoing.wait();
}

}  // namespace tenon::host
