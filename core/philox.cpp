// SPDX-License-Identifier: Apache-2.0
#include "core/philox.h"

namespace tenon::core {

namespace {

__extension__ using Wide = unsigned __int128;

uint32_t low_half(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high_half(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

}  // namespace

// The counter is {index, stream}, the key the seed, each 64-bit number with its low word first.
Philox::Block Philox::block(uint64_t index) const {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  Block counter = {low_half(index), high_half(index), low_half(stream_), high_half(stream_)};
  uint32_t key0 = low_half(seed_), key1 = high_half(seed_);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0], product1 = kMultiplier1 * counter[2];
    counter = {high_half(product1) ^ counter[1] ^ key0, low_half(product1), high_half(product0) ^ counter[3] ^ key1,
               low_half(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

double unit_interval(uint32_t high, uint32_t low) {
  const uint64_t bits = (uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

uint64_t below(const Philox& philox, uint64_t* index, uint64_t bound) {
  const auto draw = [&] {
    const Philox::Block block = philox.block((*index)++);
    return Wide{uint64_t{block[0]} << 32 | block[1]} * bound;
  };
  Wide product = draw();
  if (static_cast<uint64_t>(product) < bound) {
    const uint64_t surplus = (uint64_t{0} - bound) % bound;  // 2^64 mod bound: low parts below it would bias the result
    while (static_cast<uint64_t>(product) < surplus) product = draw();
  }
  return static_cast<uint64_t>(product >> 64);
}

}  // namespace tenon::core
