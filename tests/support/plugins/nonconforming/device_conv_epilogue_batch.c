/* The program after a convolution depends on the number of samples. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_conv_epilogue_batch"
#define ID TN_CONV_EPILOGUE
#define TABLE tn_conv_epilogue_table
#define SITE tn_conv_epilogue
#define PREPARE prepare
#define AFTER                                           \
  if (execution->symbols[TN_SYMBOL_SAMPLES] % 2 == 0) { \
    spoil(call->outputs[1]);                            \
  }
#include "device.h"
