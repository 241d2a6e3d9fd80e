// A connection over TCP that only processes with one secret can have, and that nobody else can read or change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/not_copied.h"
#include "launch/events.h"

namespace tenon::launch {

constexpr size_t kTunnelSecret = 32;  // bytes at least of a secret

// Copies between a socket of TCP and a local one until one of them ends, on two threads; then it ends both. Over TCP
// each side sends 8 bytes that name the protocol and 32 random ones, from which and the secret follow the keys of the
// two directions (keyed BLAKE2b); then frames of secretstream (XChaCha20-Poly1305, libsodium): 4 bytes that say how
// many follow, the highest first, and so many. The first frame of each side proves that it has the secret; that of the
// side which connected is the name of a node.
class Tunnel : base::NotCopied {
 public:
  enum class Side { kConnects, kListens };

  // Does the handshake, within a few seconds. node: the name that the connecting side sends; what it has sent on the
  // other. Throws std::runtime_error: the other side has no secret, or another one, or speaks otherwise.
  Tunnel(base::Descriptor tcp, Side side, const std::string& secret, const std::string& node);
  // Ends both connections.
  ~Tunnel();

  [[nodiscard]] const std::string& node() const { return node_; }
  // Begins to copy.
  void open(base::Descriptor local);
  [[nodiscard]] bool has_ended() const { return ended_ == 2; }

 private:
  static constexpr size_t kStateBytes = 64;  // room for crypto_secretstream_xchacha20poly1305_state

  void agree(Side side, const std::string& secret);
  void send_frame(const std::string& bytes);
  [[nodiscard]] std::string receive_frame();
  void receive_all(void* to, size_t bytes);
  template <typename Copy>
  void run(const Copy& copy) noexcept;

  base::Descriptor tcp_, local_;
  std::string node_;
  std::optional<Clock::time_point> until_;  // of the handshake
  alignas(16) std::array<std::byte, kStateBytes> sealing_, opening_;
  std::atomic<int> ended_{0};  // of the two directions
  std::thread outward_, inward_;
};

}  // namespace tenon::launch
