// What the ranks of a world prove to each other. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "sockets.h"

namespace tenon_zmq {

using Nonce = std::array<uint8_t, 32>;
using Proof = std::array<uint8_t, crypto_generichash_BYTES>;

Nonce draw_nonce();

// One connection, as both of its ends see it.
struct Meeting {
  uint32_t epoch;
  int32_t ranks;
  int32_t from;  // the rank that connects
  int32_t to;    // the rank that listens
  Nonce from_nonce;
  Nonce to_nonce;
};

// Keys that follow from the secret of a training; without a secret they are known to everybody.
class Secret {
 public:
  explicit Secret(std::string_view secret);
  ~Secret();
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;

  bool is_set() const { return is_set_; }  // to the ranks alone
  // What only an end of the meeting that has the secret can compute, by the rank that listens, or by the one that
  // connects.
  Proof proof(const Meeting& meeting, bool listens) const;
  // Encrypts all that passes through a socket. Only who has the secret knows the public key of those that listen.
  void encrypt(Socket& socket, bool listens) const;

 private:
  struct Pair {
    uint8_t open[crypto_box_PUBLICKEYBYTES];
    uint8_t secret[crypto_box_SECRETKEYBYTES];
  };
  Pair pair(std::string_view name) const;

  bool is_set_;
  std::array<uint8_t, crypto_generichash_KEYBYTES> key_{};
};

}  // namespace tenon_zmq
