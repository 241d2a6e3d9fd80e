// SPDX-License-Identifier: Apache-2.0
#include "secret.h"

#include <cstring>
#include <tenon/base.hpp>

namespace tenon_zmq {

namespace {

const uint8_t* bytes_of(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }

}  // namespace

Nonce draw_nonce() {
  Nonce nonce{};
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Secret::Secret(std::string_view secret) : is_set_(!secret.empty()) {
  if (sodium_init() < 0) throw tn::Failure(TN_UNSUPPORTED, "", "libsodium cannot be used on this machine");
  constexpr std::string_view kName = "tenon.zmq/1 key";
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, key_.size());
  crypto_generichash_update(&state, bytes_of(kName), kName.size());
  crypto_generichash_update(&state, bytes_of(secret), secret.size());
  crypto_generichash_final(&state, key_.data(), key_.size());
}

Secret::~Secret() { sodium_memzero(key_.data(), key_.size()); }

Proof Secret::proof(const Meeting& meeting, bool listens) const {
  std::string text = listens ? "tenon.zmq/1 listens" : "tenon.zmq/1 connects";
  for (const uint32_t number : {meeting.epoch, static_cast<uint32_t>(meeting.ranks),
                                static_cast<uint32_t>(meeting.from), static_cast<uint32_t>(meeting.to)})
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
  for (const Nonce* nonce : {&meeting.from_nonce, &meeting.to_nonce})
    text.append(reinterpret_cast<const char*>(nonce->data()), nonce->size());
  Proof proof{};
  crypto_generichash(proof.data(), proof.size(), bytes_of(text), text.size(), key_.data(), key_.size());
  return proof;
}

Secret::Pair Secret::pair(std::string_view name) const {
  uint8_t seed[crypto_box_SEEDBYTES];
  crypto_generichash(seed, sizeof seed, bytes_of(name), name.size(), key_.data(), key_.size());
  Pair pair{};
  crypto_box_seed_keypair(pair.open, pair.secret, seed);
  sodium_memzero(seed, sizeof seed);
  return pair;
}

void Secret::encrypt(Socket& socket, bool listens) const {
  Pair server = pair("tenon.zmq/1 curve listens");
  Pair client = pair("tenon.zmq/1 curve connects");
  if (listens) {
    socket.set(ZMQ_CURVE_SERVER, 1);
    socket.set(ZMQ_CURVE_SECRETKEY, server.secret, sizeof server.secret);
  } else {
    socket.set(ZMQ_CURVE_SERVERKEY, server.open, sizeof server.open);
    socket.set(ZMQ_CURVE_PUBLICKEY, client.open, sizeof client.open);
    socket.set(ZMQ_CURVE_SECRETKEY, client.secret, sizeof client.secret);
  }
  sodium_memzero(&server, sizeof server);
  sodium_memzero(&client, sizeof client);
}

}  // namespace tenon_zmq
