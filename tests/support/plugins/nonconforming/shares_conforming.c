/* Shares memory in both directions, as it declares. SPDX-License-Identifier: Apache-2.0 */
#define NAME "shares_conforming"
#define QUERY             \
  needs->in_place[0] = 0; \
  needs->backward_in_place[0] = 0;
#include "layer.h"
