/* Memory is not aligned to 64 bytes. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_alignment"
#define SHIFT 16
#include "device.h"
