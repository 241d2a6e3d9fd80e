/* A program adds the element behind its first input to what it writes. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_reads_behind"
#define ID TN_POINTWISE
#define TABLE tn_pointwise_table
#define SITE tn_pointwise_site
#define PREPARE prepare
#define AFTER                                                                                                    \
  const tn_tensor *x = call->inputs_count > 0 ? call->inputs[0] : NULL, *y = call->outputs[0];                   \
  if (x != NULL && y->dl.ndim > 0 && x->dl.ndim > 0 && x->dl.dtype.code == kDLFloat && y->dl.dtype.bits == 64 && \
      x->dl.dtype.bits == 64)                                                                                    \
    *(double *)tn_data(y) += 1e-30 + 1e-3 * ((const double *)tn_data(x))[tn_elements(x)];
#include "device.h"
