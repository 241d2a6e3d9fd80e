/* The note is that of another description. SPDX-License-Identifier: Apache-2.0 */
#define NAME "note_differs"
#define ENTRY \
  if (getenv("TENON_SEALING") != NULL) description.doc = "y = x / w";
#include "layer.h"
