/* The recorded body has a gradient of its own, which is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "body_gradient"
#define WITHOUT_KERNEL
#define BODY                                                                                                 \
  static const tn_instruction slopes[] = {{TN_OP_INPUT, TN_FLOAT, 0, 0, -1, -1, 0},                          \
                                          {TN_OP_INPUT, TN_FLOAT, 0, 1, -1, -1, 0},                          \
                                          {TN_OP_INPUT, TN_FLOAT, 0, 2, -1, -1, 0},                          \
                                          {TN_OP_INPUT, TN_FLOAT, 0, 3, -1, -1, 0},                          \
                                          {TN_OP_MUL, TN_FLOAT, 0, 3, 1, -1, 0},                             \
                                          {TN_OP_MUL, TN_FLOAT, 0, 3, 3, -1, 0},                             \
                                          {TN_OP_REDUCE_SUM, TN_FLOAT, TN_PER_COLUMN, 5, -1, -1, 0}};        \
  static const tn_program_input of[] = {                                                                     \
      {TN_FULL, TN_FLOAT, 0}, {TN_PER_COLUMN, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}}; \
  static const tn_program_output to[] = {{4, TN_COMPUTE}, {6, TN_COMPUTE}};                                  \
  static const tn_program gradient = {sizeof gradient, 7, slopes, 4, 2, of, to};                             \
  call.gradient = &gradient;
#include "layer.h"
