/* A kernel that supports nothing. SPDX-License-Identifier: Apache-2.0 */
#define NAME "never_chosen"
#define BODY
#define SUPPORTS return TN_UNSUPPORTED;
#include "layer.h"
