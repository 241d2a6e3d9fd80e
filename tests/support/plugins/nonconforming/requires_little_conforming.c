/* A plugin for all hosts that sets a newer trait where the host knows it. SPDX-License-Identifier: Apache-2.0 */
#define NAME "requires_little_conforming"
#define REQUIRED 2
#define PREPARE prepared->traits = tn_any_alignment(site->services);
#include "layer.h"
