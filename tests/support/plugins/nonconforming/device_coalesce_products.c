/* The first element of the rows of a gradient that are products is wrong. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_coalesce_products"
#define ID TN_COALESCE_PRODUCTS
#define TABLE tn_coalesce_products_table
#define SITE tn_coalesce_products
#define PREPARE prepare
#include "device.h"
