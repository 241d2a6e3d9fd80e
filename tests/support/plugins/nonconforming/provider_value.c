/* A thousandth is added to each product. SPDX-License-Identifier: Apache-2.0 */
#define NAME "provider_value"
#define ELEMENT(sum) ((sum)*1.001)
#include "provider.h"
