// SPDX-License-Identifier: Apache-2.0
#include "core/philox.h"

#include <tenon/philox.h>

namespace tenon::core {

namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

Philox::Block Philox::block(uint64_t index) const {
  Block words;
  tn_philox(seed_, stream_, index, words.data());
  return words;
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
