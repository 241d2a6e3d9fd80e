/* Lower records another body at each call. SPDX-License-Identifier: Apache-2.0 */
#define NAME "body_changes"
#define WITHOUT_KERNEL
static int bodies;
#define BODY                                                                             \
  if (++bodies % 2 == 0) {                                                               \
    static const tn_instruction other[] = {{TN_OP_INPUT, TN_FLOAT, 0, 0, -1, -1, 0},     \
                                           {TN_OP_INPUT, TN_FLOAT, 0, 1, -1, -1, 0},     \
                                           {TN_OP_ADD, TN_FLOAT, 0, 0, 1, -1, 0}};       \
    static const tn_program changed = {sizeof changed, 3, other, 2, 1, inputs, outputs}; \
    call.program = &changed;                                                             \
  }
#include "layer.h"
