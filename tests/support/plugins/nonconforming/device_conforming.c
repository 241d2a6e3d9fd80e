/* Keeps all rules: the base of the others. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_conforming"
#include "device.h"
