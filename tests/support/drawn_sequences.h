// Draws the lengths of sequences: random ones, or one of two extremes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <tenon/tenon.hpp>
#include <vector>

namespace tenon_tests {

using namespace tenon;

enum class Lengths {
  kDrawn,
  kManyShort,  // every sequence has one row
  kOneLong     // the first sample has 10,000 rows, with two levels in one inner sequence; the others are empty
};

struct DrawnSequences {
  static constexpr int64_t kLong = 10000;
  std::vector<std::vector<int64_t>> offsets;  // per level, from the samples inwards

  // Draws the lengths. With kDrawn about a quarter of the sequences are empty, and the last one always; a single
  // sequence has length 5.
  static DrawnSequences draw(uint32_t levels, int64_t samples, Lengths lengths, std::mt19937_64& random) {
    DrawnSequences drawn;
    int64_t count = samples;
    for (uint32_t level = 0; level < levels; ++level) {
      std::vector<int64_t> ends{0};
      for (int64_t i = 0; i < count; ++i) {
        const bool innermost = level + 1 == levels;
        int64_t length = 1;
        if (lengths == Lengths::kDrawn)
          length = count == 1 ? 5 : i + 1 == count ? 0 : drawn_length(random);
        else if (lengths == Lengths::kOneLong)
          length = i > 0 ? 0 : innermost ? kLong : 1;
        ends.push_back(ends.back() + length);
      }
      count = ends.back();
      drawn.offsets.push_back(std::move(ends));
    }
    return drawn;
  }

  // The number of rows of the first `samples` samples; with fewer levels than were drawn, of their inner sequences.
  [[nodiscard]] int64_t rows(int64_t samples, uint32_t levels) const {
    int64_t count = samples;
    for (uint32_t level = 0; level < levels; ++level) count = offsets[level][static_cast<size_t>(count)];
    return count;
  }

 private:
  static int64_t drawn_length(std::mt19937_64& random) {
    constexpr int64_t kLengths[] = {0, 0, 1, 1, 2, 3, 4, 7};
    return kLengths[std::uniform_int_distribution<size_t>(0, std::size(kLengths) - 1)(random)];
  }
};

}  // namespace tenon_tests
