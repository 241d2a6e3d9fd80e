// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/bounded_trainer.h"

#include <exception>
#include <new>

#include "core/error.h"
#include "host/training/bounded/bounded_mode.h"
#include "host/training/bounded/updater_states.h"

namespace tenon::host {

namespace {

// The error that follows a kFailed.
Error error_of(const BoundedTask& task, const Message& body) {
  return {static_cast<tn_status>(task.status), std::string(text_of(body)), "", "team"};
}

}  // namespace

BoundedTrainer::BoundedTrainer(const LoopInputs& inputs, const UpdaterGroups& updater, Feeder& feeder,
                               Observer* observer)
    : inputs_(inputs),
      updater_(updater),
      rows_(inputs.bounded->rows()),
      feeder_(feeder),
      observer_(observer),
      world_(inputs.bounded->all().world()),
      values_(inputs.machine),
      results_(inputs.machine, inputs.registry) {}

void BoundedTrainer::run() {
  Message body;
  for (;;) {
    const BoundedTask task = ask(body);
    if (task.kind == BoundedTask::kEnd) return end_training();
    if (task.kind == BoundedTask::kFailed) {
      end_training();
      throw error_of(task, body);
    }
    if (task.kind != BoundedTask::kMinibatch) return;
    const auto fail = [&](const Error& error) {
      report(task, error);
      if (observer_ == nullptr) await_end();
    };
    try {
      take_values(task, body);
      compute(task);
    } catch (const Error& error) {
      fail(error);
      throw;
    } catch (const std::bad_alloc&) {
      fail(Error(TN_OUT_OF_MEMORY, "out of memory"));
      throw;
    } catch (const std::exception& error) {
      fail(Error(TN_INTERNAL, error.what()));
      throw;
    }
  }
}

// After a failure of its own, which the servers tell all.
void BoundedTrainer::await_end() {
  Message body;
  while (ask(body).kind != BoundedTask::kFailed) continue;
  end_training();
}

// Takes what all have in the end.
void BoundedTrainer::end_training() {
  leave();
  Message body;
  const BoundedTask task = ask(body);
  MessageReader reader(body, rows_.rank_of(0));
  reader.read(lost_, static_cast<uint64_t>(task.lost));
  const SetWrite write(inputs_.gate);
  values_.read_values(true, reader.bytes(values_.value_bytes(true)));
  set_states(updater_, inputs_.machine.set(), reader);
  inputs_.machine.set()->set_updates(task.step);
  inputs_.reader.seek(task.reader_pass, task.position);
}

void BoundedTrainer::send(int64_t server, BoundedRequest request, const Message& body) {
  request.bytes = body.size();
  const int64_t rank = rows_.rank_of(server);
  const World::Outgoing outgoing[] = {{rank, &request, sizeof request}, {rank, body.data(), body.size()}};
  world_.begin(outgoing, {}, kRequestChannel).wait();
}

// Waits for the next minibatch or the end.
BoundedTask BoundedTrainer::ask(Message& body) {
  BoundedRequest request = {.kind = BoundedRequest::kLease, .wants_all = has_all_ ? 0 : 1};
  if (observer_ != nullptr) {
    request.drains = observer_->drains() ? 1 : 0;
    request.learning_rate = observer_->learning_rate();
  }
  send(0, request, {});
  return take_answer(body);
}

void BoundedTrainer::greet() {
  send(0, {.kind = BoundedRequest::kHello}, message_of(inputs_.bounded->description()));
  Message body;
  const BoundedTask task = take_answer(body);
  if (task.kind != BoundedTask::kFailed) return;
  leave();
  throw error_of(task, body);
}

// Receives a task, and what follows it.
BoundedTask BoundedTrainer::take_answer(Message& body) {
  BoundedTask task;
  const World::Incoming answer = {rows_.rank_of(0), &task, sizeof task};
  world_.begin({}, {&answer, 1}, kRequestChannel).wait();
  body.resize(task.bytes);
  const World::Incoming rest = {rows_.rank_of(0), body.data(), body.size()};
  world_.begin({}, {&rest, 1}, kRequestChannel).wait();
  return task;
}

void BoundedTrainer::take_values(const BoundedTask& task, const Message& body) {
  const SetWrite write(inputs_.gate);
  values_.read_values(!has_all_, body.data());
  has_all_ = true;
  inputs_.machine.set()->set_updates(task.step);
  if (inputs_.team != nullptr) inputs_.team->set_step(static_cast<int64_t>(task.step));
}

void BoundedTrainer::leave() {
  for (int64_t server = 1; server < rows_.servers(); ++server) send(server, {}, {});
}

int64_t BoundedTrainer::read(const BoundedTask& task) {
  Reader& reader = inputs_.reader;
  inputs_.minibatch.clear();
  inputs_.machine.drop_outputs();
  if (task.position >= reader.size()) return 0;
  if (reader.pass() != task.reader_pass || reader.position() != task.position)
    reader.seek(task.reader_pass, task.position);
  return reader.next(inputs_.minibatch, reader.batch());
}

void BoundedTrainer::compute(const BoundedTask& task) {
  rows_.set_serial(task.serial);
  if (read(task) == 0) return send(0, {.kind = BoundedRequest::kPush, .serial = task.serial}, {});
  if (observer_ != nullptr) observer_->begin(task);
  {
    const SetWrite write(inputs_.gate);
    inputs_.machine.forward_backward(feeder_.arrays(inputs_.minibatch), FeedMode::kLent);
    results_.clear();
    results_.add(inputs_.machine);
    inputs_.machine.step().commit(UsedNames());  // of the buffers
  }
  if (observer_ != nullptr) observer_->end(task);
  push(task);
}

// The first server gets the gradients last: what it has, all have.
void BoundedTrainer::push(const BoundedTask& task) {
  BoundedRequest request = {.kind = BoundedRequest::kPush, .serial = task.serial};
  if (observer_ != nullptr) request.learning_rate = observer_->learning_rate();
  std::vector<int64_t> acknowledgements(static_cast<size_t>(rows_.servers()));
  std::vector<World::Incoming> incoming;
  for (int64_t server = 1; server < rows_.servers(); ++server) {
    send(server, request, rows_.gradients_of(server, 0));
    incoming.push_back({rows_.rank_of(server), &acknowledgements[static_cast<size_t>(server)], sizeof(int64_t)});
  }
  world_.begin({}, incoming, kRequestChannel).wait();
  Message body = rows_.gradients_of(0, values_.step_bytes());
  values_.write_step(results_.sums(), body.data() + body.size() - values_.step_bytes());
  send(0, request, body);
}

void BoundedTrainer::report(const BoundedTask& task, const Error& error) {
  send(0, {.kind = BoundedRequest::kFailure, .serial = task.serial, .status = error.code()},
       message_of(error.message()));
}

}  // namespace tenon::host
