// SPDX-License-Identifier: Apache-2.0
#include "host/comm/communicator.h"

#include "host/plugins/loader.h"

namespace tenon::host {

namespace {

constexpr int64_t kLeavingUs = 2'000'000;  // that a communicator may take to leave
constexpr uint64_t kLeastMessage = uint64_t{1} << 20U;

const char* text_or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

Communicator::Communicator(const CommType& type, const Values& attributes, const tn_services* services,
                           const JoinOptions& options, const volatile int32_t* cancel)
    : type_(type), who_("communicator \"" + type.description.type + "\""), sink_(who_, type.tags) {
  std::vector<Value> values;
  try {
    values = resolve(type.description.attributes, attributes);
  } catch (const Error& error) {
    throw error.with_component(who_);
  }
  const AttributesView view(type.description.attributes, values);
  tn_comm_open open = {};
  open.size = sizeof open;
  open.rank = static_cast<int32_t>(options.rank);
  open.ranks = static_cast<int32_t>(options.ranks);
  open.epoch = options.epoch;
  open.services = services;
  open.errors = sink_.get();
  open.attributes = view.get();
  open.address = text_or_null(options.address);
  open.listen = text_or_null(options.listen);
  open.secret = options.secret.empty() ? nullptr : options.secret.data();
  open.secret_bytes = static_cast<uint32_t>(options.secret.size());
  open.deadline_ms = options.deadline_ms;
  open.silence_ms = options.silence_ms;
  open.cancel = cancel;
  open.user = type.table.user;
  const tn_status status = call_plugin(type_, who_, {Tag::kComm, "open"}, type_.table.open, &open, &comm_);
  if (status != TN_OK) comm_ = nullptr;
  sink_.check(status);
  if (comm_ == nullptr) fail(TN_PLUGIN_FAULT, ComponentName{who_}, "open returned TN_OK and no object");
}

Communicator::~Communicator() {
  if (comm_ != nullptr) free_by_plugin(type_, who_, {Tag::kComm, "close", comm_}, type_.table.close, comm_, kLeavingUs);
}

tn_comm_world Communicator::world() {
  tn_comm_world world = {};
  world.size = sizeof world;
  sink_.check(call_plugin(type_, who_, {Tag::kComm, "world", comm_}, type_.table.world, comm_, &world));
  if (world.ranks < 1 || world.rank < 0 || world.rank >= world.ranks || world.most_bytes < kLeastMessage)
    fail(TN_PLUGIN_FAULT, ComponentName{who_}, "world is rank ", world.rank, " of ", world.ranks, " with messages of ",
         world.most_bytes, " bytes; expected a rank below the ranks, and at least ", kLeastMessage, " bytes");
  return world;
}

uint64_t Communicator::begin(const char* name, Transfer function, const tn_comm_message& message) {
  uint64_t request = 0;
  sink_.check(call_plugin(type_, who_, {Tag::kComm, name, comm_}, function, comm_, &message, &request));
  if (request == 0) fail(TN_PLUGIN_FAULT, ComponentName{who_}, name, " returned TN_OK and no request");
  return request;
}

uint64_t Communicator::send(int32_t peer, uint32_t channel, const void* data, uint64_t bytes) {
  return begin("send", type_.table.send,
               {sizeof(tn_comm_message), peer, channel, 0, const_cast<void*>(data), bytes});  // a send only reads it
}

uint64_t Communicator::receive(int32_t peer, uint32_t channel, void* data, uint64_t bytes) {
  return begin("receive", type_.table.receive, {sizeof(tn_comm_message), peer, channel, 0, data, bytes});
}

std::span<const tn_comm_event> Communicator::progress(int64_t timeout_us) {
  constexpr uint32_t kCapacity = sizeof events_ / sizeof events_[0];
  uint32_t count = 0;
  sink_.check(call_plugin(type_, who_, {Tag::kComm, "progress", comm_}, type_.table.progress, comm_, timeout_us,
                          events_, kCapacity, &count));
  if (count > kCapacity)
    fail(TN_PLUGIN_FAULT, ComponentName{who_}, "progress gave ", count, " events; expected at most ", kCapacity);
  return {events_, count};
}

void Communicator::wake() noexcept {
  if (comm_ != nullptr) type_.table.wake(comm_);
}

}  // namespace tenon::host
