/* The base of kernels that take draws and break one rule: y = x * w + u / 4 in training, with u as tenon/program.h
 * defines draws. A source defines NAME, and SEED, STEP or NUMBER for a fault. SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <tenon/philox.h>
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

#define QUERY needs->draws = site->training;
#define BINDING (site->training ? (void*)dtypes : NULL)
#define FORWARD(x, w) ((x) * (w) + (binding == NULL ? 0 : tn_uniform(SEED, STEP, NUMBER, (uint64_t)i) / 4))
#include "layer.h"
