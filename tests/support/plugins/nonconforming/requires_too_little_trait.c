/* Prepare sets a trait that the oldest host which the plugin requires does not know.
 * SPDX-License-Identifier: Apache-2.0 */
#define NAME "requires_too_little_trait"
#define REQUIRED 2
#define PREPARE prepared->traits = TN_TRAIT_BATCH_VARIANT;
#include "layer.h"
