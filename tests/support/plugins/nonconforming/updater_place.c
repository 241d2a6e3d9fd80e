/* The step depends on the place of an element in the grid, which a program for elements must not read.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "updater_place"
#define MORE                                                                           \
  {TN_OP_COLUMN, TN_INT, 0, -1, -1, -1, 0}, {TN_OP_CAST, TN_FLOAT, 0, 8, -1, -1, 0}, { \
    TN_OP_MUL, TN_FLOAT, 0, 7, 9, -1, 0                                                \
  }
#define PRODUCT 10
#include "updater.h"
