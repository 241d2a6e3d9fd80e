/* The program after a convolution is wrong in its first element. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_conv_epilogue"
#define ID TN_CONV_EPILOGUE
#define TABLE tn_conv_epilogue_table
#define SITE tn_conv_epilogue
#define PREPARE prepare
#define AFTER spoil(call->outputs[1]);
#include "device.h"
