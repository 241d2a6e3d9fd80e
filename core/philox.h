// Streams of random numbers by tenon/philox.h. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace tenon::core {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  // `stream` separates uses of one seed (a hash of a parameter's name, a pass number).
  explicit Philox(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  // Four 32-bit numbers for counter `index` of this stream.
  [[nodiscard]] Block block(uint64_t index) const;

 private:
  uint64_t seed_;
  uint64_t stream_;
};

// Returns a number in [0, 1) with 53 bits from two words.
[[nodiscard]] double unit_interval(uint32_t high, uint32_t low);
// Returns a whole number in [0, bound) without bias (Lemire, "Fast random integer generation in an interval", 2019),
// drawn from `philox` from counter *index on, which it advances.
[[nodiscard]] uint64_t below(const Philox& philox, uint64_t* index, uint64_t bound);

}  // namespace tenon::core
