/* Imports a function of the host, which other hosts may lack. SPDX-License-Identifier: Apache-2.0 */
#define NAME "imports_host"
extern void tn_host_destroy(void*) __attribute__((weak));
#define PREPARE \
  if (tn_host_destroy == NULL) return TN_INTERNAL;
#include "layer.h"
