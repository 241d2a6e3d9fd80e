// SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/bounded_rounds.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "host/training/bounded/bounded_mode.h"
#include "host/training/bounded/updater_states.h"
#include "host/training/data/data_digest.h"
#include "host/training/team/agreement.h"

namespace tenon::host {

namespace {

constexpr int64_t kFirstServer = 1;  // in the team of process 0 and the servers

template <typename Value>
std::span<std::byte> bytes_of(Value& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

BoundedRounds::BoundedRounds(const LoopInputs& inputs, const UpdaterGroups& updater, Feeder& feeder,
                             BoundedTrainer::Observer& observer)
    : inputs_(inputs),
      updater_(updater),
      team_(*inputs.bounded->core()),
      values_(inputs.machine),
      results_(inputs.machine, inputs.registry) {
  if (inputs.bounded->is_server())
    server_.emplace(inputs, updater, inputs.bounded->staleness());
  else
    trainer_.emplace(inputs, updater, feeder, &observer);
}

const BoundedServer::Round& BoundedRounds::run(int64_t first, int64_t end) {
  const BoundedServer::Bounds bounds = {first, end, inputs_.reader.pass(), inputs_.reader.position()};
  take_part(bounds);
  share(bounds);
  return round_;
}

void BoundedRounds::take_part(const BoundedServer::Bounds& bounds) {
  if (server_) return server_->run(bounds);
  own_error_.reset();
  try {
    trainer_->run();
  } catch (const Error& error) {
    own_error_.emplace(error);  // which the servers know
  }
  static_cast<void>(BoundedServer::count_torn(team_, {}, {}));
}

// Gives all what the first server has.
void BoundedRounds::share(const BoundedServer::Bounds& bounds) {
  const bool is_source = team_.rank() == kFirstServer;
  if (is_source) round_ = server_->round();
  team_.broadcast(bytes_of(round_), kFirstServer);
  std::vector<double> results(values_.result_count());
  if (is_source) values_.write_results(server_->results().sums(), results.data());
  team_.broadcast(std::as_writable_bytes(std::span(results)), kFirstServer);
  results_.set(values_.read_results(results.data()));
  Message parameters(values_.value_bytes(false));
  if (is_source) values_.write_values(false, parameters.data());
  team_.broadcast(parameters, kFirstServer);
  {
    const SetWrite write(inputs_.gate);
    if (!is_source) values_.read_values(false, parameters.data());
    inputs_.machine.set()->set_updates(round_.updates);
  }
  int64_t failure[] = {TN_OK, 0};  // status, bytes of the message
  std::string text = is_source && server_->failure() ? server_->failure()->message() : "";
  if (is_source && server_->failure())
    failure[0] = server_->failure()->code(), failure[1] = static_cast<int64_t>(text.size());
  team_.broadcast(std::as_writable_bytes(std::span(failure)), kFirstServer);
  text.resize(static_cast<size_t>(failure[1]));
  team_.broadcast(std::as_writable_bytes(std::span(text)), kFirstServer);
  if (own_error_) throw Error(*own_error_);
  if (failure[0] != TN_OK) throw Error(static_cast<tn_status>(failure[0]), text, "", "team");
  Reader& reader = inputs_.reader;
  if (round_.pass_has_ended != 0)
    reader.seek(bounds.reader_pass + 1, 0);
  else
    reader.seek(bounds.reader_pass,
                std::min(bounds.position + (round_.next - bounds.first) * reader.batch(), reader.size()));
}

void BoundedRounds::share_states() {
  const bool is_source = team_.rank() == kFirstServer;
  Message states = states_of(updater_, inputs_.machine.set());
  team_.broadcast(states, kFirstServer);
  MessageReader reader(states, kFirstServer);
  if (!is_source) set_states(updater_, inputs_.machine.set(), reader);
}

void BoundedRounds::end(const Error* error) {
  has_ended_ = true;
  share_states();
  const auto trainers = static_cast<size_t>(inputs_.bounded->rows().rank_of(0));
  std::vector<int64_t> is_lost(trainers, 0);
  if (trainer_) trainer_->leave();
  if (server_) {
    server_->end(error);
    for (const int64_t rank : server_->lost()) is_lost[static_cast<size_t>(rank)] = 1;
  }
  team_.broadcast(std::as_writable_bytes(std::span(is_lost)), kFirstServer);
  std::vector<int64_t> lost;
  for (size_t rank = 0; rank < trainers; ++rank)
    if (is_lost[rank] != 0) lost.push_back(static_cast<int64_t>(rank));
  inputs_.bounded->all().leave_out(lost);
}

void prepare_bounded(const LoopInputs& inputs, const UpdaterGroups& updater, bool averages) {
  const auto refuse = [](const auto&... parts) {
    fail(TN_UNSUPPORTED, SubjectName{"staleness"}, "staleness: ", parts...,
         "; train in the exact mode, without staleness");
  };
  if (averages) refuse("averages of parameters need each step in its order");
  if (inputs.options.pass_batches > 0) refuse("pass_batches needs a pass of the training to be one of the reader");
  if (inputs.options.verify_every > 0) refuse("verify_every compares what all processes have after a step");
  if (updater.calls_application()) refuse("servers call no updater of the application");
  if (const std::string reason = inputs.reader.whole_reason(); !reason.empty())
    refuse("each trainer reads minibatches by their numbers, which this reader does not offer: ", reason);
  const Reader& reader = inputs.reader;
  BoundedMode& mode = *inputs.bounded;
  const std::string job = text(mode.staleness(), ' ', inputs.options.passes, ' ', inputs.machine.shards(), ' ',
                               updater.describe().dump(), inputs.machine.describe()["calls"].dump());
  mode.add_parts({{"job", digest_of(job)}, {"number of samples", text(reader.batch(), ' ', reader.size())}});
  if (mode.core() != nullptr) Agreement(mode.core()).require_equal_parts(mode.parts());
}

void train_bounded(const LoopInputs& inputs, const UpdaterGroups& updater) {
  Feeder feeder(inputs.machine, inputs.reader.slots(), inputs.slot_map);
  feeder.check_names(*inputs.machine.set());
  BoundedTrainer trainer(inputs, updater, feeder, nullptr);
  trainer.greet();
  try {
    trainer.run();
  } catch (const Error&) {
    inputs.bounded->all().leave_out(trainer.lost());
    throw;
  }
  inputs.bounded->all().leave_out(trainer.lost());
}

}  // namespace tenon::host
