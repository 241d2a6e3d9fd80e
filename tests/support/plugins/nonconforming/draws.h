/* The base of kernels that take draws and break one rule: y = x * w + u / 4 in training, with u as tenon/program.h
 * defines draws. A source defines NAME, and SEED, STEP or NUMBER for a fault. SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <tenon/services.h>

#ifndef SEED
#define SEED (execution->random->seed)
#endif
#ifndef STEP
#define STEP (execution->random->step)
#endif
#ifndef NUMBER
#define NUMBER (call->draw)
#endif

static double uniform(uint64_t seed, uint64_t step, uint64_t draw, uint64_t element) {
  uint32_t c[4] = {(uint32_t)(element / 4), (uint32_t)draw, (uint32_t)step, (uint32_t)(step >> 32)};
  uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p = (uint64_t)0xD2511F53 * c[0], q = (uint64_t)0xCD9E8D57 * c[2];
    const uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ low, (uint32_t)q, (uint32_t)(p >> 32) ^ c[3] ^ high,
                              (uint32_t)p};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return (c[element % 4] >> 8) / 16777216.0;
}

#define QUERY needs->draws = site->training;
#define BINDING (site->training ? (void*)dtypes : NULL)
#define FORWARD(x, w) ((x) * (w) + (binding == NULL ? 0 : uniform(SEED, STEP, NUMBER, (uint64_t)i) / 4))
#include "layer.h"
