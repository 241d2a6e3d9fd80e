// The bits of tenon/elementary.h over drawn arguments. Every source that includes this has functions of its own, as
// its options compile them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/elementary.h>
#include <tenon/philox.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fnv.h"

namespace tenon::tests {

constexpr size_t kElementaryFunctions = 11;
using ElementaryHashes = std::array<uint64_t, kElementaryFunctions>;

}  // namespace tenon::tests

namespace {

// Argument i: of all bits, of -32 to 32, of sizes from 2^-32 to 2^32, or close to 1.
double drawn_argument(uint64_t stream, uint64_t i) {
  uint32_t words[4];
  tn_philox(0x656c656d, stream, i, words);
  const uint64_t bits = static_cast<uint64_t>(words[0]) << 32 | words[1];
  const double unit = static_cast<double>(bits >> 11) * 0x1p-53, sign = (words[2] & 1U) != 0 ? -1 : 1;
  const auto exponent = static_cast<int>(words[3] % 64) - 32;
  switch (i % 4) {
    case 0:
      return tn_of_bits(bits);
    case 1:
      return 64 * unit - 32;  // exact products: no compiler can contract them to other bits
    case 2:
      return sign * (1 + unit) * tn_power_of_2(exponent);
    default:
      return 1 + sign * unit * tn_power_of_2(exponent - 33);
  }
}

template <typename Result>
uint64_t hash_of(Result&& result) {
  constexpr uint64_t kArguments = 10'000;
  std::string bytes;
  for (uint64_t i = 0; i < kArguments; ++i) {
    const uint64_t bits = tn_bits_of(result(i));
    for (unsigned byte = 0; byte < 8; ++byte) bytes += static_cast<char>(bits >> (8 * byte) & 0xffU);
  }
  return tenon::base::fnv1a<uint64_t>(bytes);
}

// In the order of names in elementary_test.cpp.
tenon::tests::ElementaryHashes elementary_hashes() {
  constexpr double (*kFunctions[])(double) = {tn_math_exp,   tn_math_exp2, tn_math_expm1, tn_math_log, tn_math_log2,
                                              tn_math_log1p, tn_math_tanh, tn_math_erf,   tn_math_sin, tn_math_cos};
  tenon::tests::ElementaryHashes hashes{};
  for (size_t f = 0; f < std::size(kFunctions); ++f)
    hashes[f] = hash_of([&](uint64_t i) { return kFunctions[f](drawn_argument(f, i)); });
  hashes.back() = hash_of([](uint64_t i) {
    // From 1 on only the sizes of half of the bases, whose powers would be NaN.
    const double base = drawn_argument(10, i);
    return tn_math_pow(i % 8 < 4 ? base : tn_size_of(base), drawn_argument(11, i / 4 * 3));
  });
  return hashes;
}

}  // namespace
