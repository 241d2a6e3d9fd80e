/* Tenon SDK: counter-based random numbers, and the draws of a program as one of them. SPDX-License-Identifier: MIT
 *
 * Philox4x32-10 (Salmon, Moraes, Dror and Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011): four words that
 * depend on key and counter alone, on every machine, in any order of calls. Since 0.4; it calls nothing of the host, so
 * that a plugin with it needs no newer host. */
#ifndef TENON_PHILOX_H
#define TENON_PHILOX_H

#include <stdint.h>

/* Gives four words for the key `seed` and the counter {index, stream}, the low word of each number first. Streams
 * separate the uses of one seed: a pass, the hash of a name. */
static inline void tn_philox(uint64_t seed, uint64_t stream, uint64_t index, uint32_t words[4]) {
  uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
  int round;
  words[0] = (uint32_t)index;
  words[1] = (uint32_t)(index >> 32);
  words[2] = (uint32_t)stream;
  words[3] = (uint32_t)(stream >> 32);
  for (round = 0; round < 10; ++round) {
    const uint64_t first = (uint64_t)0xD2511F53u * words[0], second = (uint64_t)0xCD9E8D57u * words[2];
    words[0] = (uint32_t)(second >> 32) ^ words[1] ^ low;
    words[1] = (uint32_t)second;
    words[2] = (uint32_t)(first >> 32) ^ words[3] ^ high;
    words[3] = (uint32_t)first;
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
}

/* Returns element `element`, counted row by row, of a draw, as TN_OP_UNIFORM of tenon/program.h has it: a multiple of
 * 2^-24 in [0, 1). seed, step: of tn_random. */
static inline float tn_uniform(uint64_t seed, uint64_t step, uint64_t draw, uint64_t element) {
  uint32_t words[4];
  tn_philox(seed, step, draw << 32 | (uint32_t)(element / 4), words);
  return (float)(words[element % 4] >> 8) / 16777216.0f;
}

#endif
