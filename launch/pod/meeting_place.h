// Where the agents of other pods connect with the launcher. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/files.h"
#include "launch/pod/address.h"
#include "launch/pod/tunnel.h"

namespace tenon::launch {

// Listens at an address of this machine. Who has not the secret, and nodes that nobody expects, are sent
// away and counted.
class MeetingPlace : base::NotCopied {
 public:
  // Throws std::system_error.
  MeetingPlace(const Address& address, std::string secret);
  ~MeetingPlace();

  // Returns a socket which is connected with the agent of a node once it has come. One that was returned before for
  // this node, and has not been connected, is at its end.
  [[nodiscard]] base::Descriptor expect(const std::string& node);
  // Connections that were refused so far.
  [[nodiscard]] uint64_t refused() const { return refused_; }

 private:
  struct Guest {
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  void listen();
  void receive(base::Descriptor tcp, Guest& guest) noexcept;
  void serve(Tunnel& tunnel) noexcept;
  void remove_ended();

  const std::string secret_;
  base::Descriptor socket_;
  base::Descriptor wake_, woken_;  // a pipe, closed at the end
  std::atomic<uint64_t> refused_{0};
  std::atomic<int> strangers_{0};  // guests that have not proved themselves
  std::mutex mutex_;
  std::map<std::string, base::Descriptor> expected_;  // by node
  std::list<Guest> guests_;                           // of the thread alone
  std::thread thread_;
};

}  // namespace tenon::launch
