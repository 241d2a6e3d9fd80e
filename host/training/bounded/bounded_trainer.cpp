// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/bounded_trainer.h"

#include <new>

#include "core/error.h"
#include "host/training/bounded/bounded_mode.h"

namespace tenon::host {

BoundedTrainer::BoundedTrainer(const LoopInputs& inputs, RowClient& rows, Feeder& feeder, Observer* observer)
    : inputs_(inputs),
      rows_(rows),
      feeder_(feeder),
      observer_(observer),
      world_(inputs.bounded->all().world()),
      values_(inputs.machine),
      results_(inputs.machine, inputs.registry) {}

BoundedTask BoundedTrainer::run() {
  for (;;) {
    const BoundedTask task = ask();
    if (task.kind != BoundedTask::kMinibatch) return task;
    try {
      compute(task);
    } catch (const Error& error) {
      report(task, error);
      throw;
    } catch (const std::bad_alloc&) {
      report(task, Error(TN_OUT_OF_MEMORY, "out of memory"));
      throw;
    }
  }
}

void BoundedTrainer::send(int64_t server, BoundedRequest request, const Message& body) {
  request.bytes = body.size();
  const int64_t rank = rows_.rank_of(server);
  const World::Outgoing outgoing[] = {{rank, &request, sizeof request}, {rank, body.data(), body.size()}};
  world_.begin(outgoing, {}, kRequestChannel).wait();
}

// Waits for the next minibatch or the end, and takes what follows.
BoundedTask BoundedTrainer::ask() {
  BoundedRequest request = {.kind = BoundedRequest::kLease, .wants_all = has_all_ ? 0 : 1};
  if (observer_ != nullptr) {
    request.drains = observer_->drains() ? 1 : 0;
    request.learning_rate = observer_->learning_rate();
  }
  send(0, request, {});
  return take_answer();
}

void BoundedTrainer::greet() {
  const std::string text = inputs_.bounded->description();
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  send(0, {.kind = BoundedRequest::kHello}, Message(begin, begin + text.size()));
  static_cast<void>(take_answer());
}

// Receives a task, and takes what follows it.
BoundedTask BoundedTrainer::take_answer() {
  BoundedTask task;
  const World::Incoming answer = {rows_.rank_of(0), &task, sizeof task};
  world_.begin({}, {&answer, 1}, kRequestChannel).wait();
  Message body(task.bytes);
  const World::Incoming rest = {rows_.rank_of(0), body.data(), body.size()};
  world_.begin({}, {&rest, 1}, kRequestChannel).wait();
  if (task.kind == BoundedTask::kMinibatch) {
    const SetWrite write(inputs_.gate);
    values_.read_values(!has_all_, body.data());
    has_all_ = true;
    inputs_.machine.set()->set_updates(task.step);
    if (inputs_.team != nullptr) inputs_.team->set_step(static_cast<int64_t>(task.step));
  } else if (task.kind == BoundedTask::kEnd) {
    MessageReader(body, rows_.rank_of(0)).read(lost_, body.size() / sizeof(int64_t));
    leave();
  } else if (task.kind == BoundedTask::kFailed) {
    leave();
    throw Error(static_cast<tn_status>(task.status), {reinterpret_cast<const char*>(body.data()), body.size()}, "",
                "team");
  }
  return task;
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
  if (observer_ != nullptr && !observer_->begin(task)) return send(0, {.kind = BoundedRequest::kReturn}, {});
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
  const std::string& text = error.message();
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  send(0, {.kind = BoundedRequest::kFailure, .serial = task.serial, .status = error.code()},
       Message(begin, begin + text.size()));
  if (observer_ == nullptr) leave();
}

}  // namespace tenon::host
