// An open communicator: the calls to its plugin. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/draft/comm.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/attribute.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/registry.h"

namespace tenon::host {

using namespace core;

// How a process joins the others, as tn_comm_open states it. Empty texts: null.
struct JoinOptions {
  int64_t rank = -1;    // -1: as the launcher says
  int64_t ranks = -1;   // likewise
  int64_t servers = 0;  // the last ranks, which own rows of tables and compute no shards
  uint32_t epoch = 0;
  std::string address;
  std::string listen;
  std::vector<uint8_t> secret;
  int32_t deadline_ms = 30000;
  int32_t silence_ms = 1500;
};

// Joins in the constructor, leaves in the destructor. Thread rule: one thread alone makes, uses and destroys it; wake
// is for any. Checks what the plugin returns; throws TN_PLUGIN_FAULT.
class Communicator : base::NotCopied {
 public:
  // services: of the plugin. cancel: not 0 ends the joining with TN_CANCELLED; it must outlive the communicator.
  Communicator(const CommType& type, const Values& attributes, const tn_services* services, const JoinOptions& options,
               const volatile int32_t* cancel);
  ~Communicator();

  // "communicator \"mpich\"", for messages.
  [[nodiscard]] const std::string& who() const { return who_; }
  [[nodiscard]] tn_comm_world world();

  // Begin the transfer of a message of at most most_bytes. Return the number of the request, whose end is an event.
  [[nodiscard]] uint64_t send(int32_t peer, uint32_t channel, const void* data, uint64_t bytes);
  [[nodiscard]] uint64_t receive(int32_t peer, uint32_t channel, void* data, uint64_t bytes);
  // Waits at most timeout_us for events, which are borrowed until the next call.
  [[nodiscard]] std::span<const tn_comm_event> progress(int64_t timeout_us);
  void wake() noexcept;

 private:
  using Transfer = tn_status (*)(void* comm, const tn_comm_message* message, uint64_t* request);
  [[nodiscard]] uint64_t begin(const char* name, Transfer function, const tn_comm_message& message);

  const CommType& type_;
  const std::string who_;
  ErrorSink sink_;
  void* comm_ = nullptr;
  tn_comm_event events_[64];
};

}  // namespace tenon::host
