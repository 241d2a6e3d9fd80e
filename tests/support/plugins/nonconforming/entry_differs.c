/* tenon_plugin returns another descriptor at each call. SPDX-License-Identifier: Apache-2.0 */
#define NAME "entry_differs"
#define ENTRY                 \
  static tn_plugin copies[2]; \
  static int number;          \
  number = 1 - number;        \
  copies[number] = plugin;    \
  return &copies[number];
#include "layer.h"
