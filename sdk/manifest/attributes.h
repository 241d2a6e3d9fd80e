/* Attributes in the manifest: their checks and their JSON. SPDX-License-Identifier: MIT */
#ifndef TENON_MANIFEST_ATTRIBUTES_H
#define TENON_MANIFEST_ATTRIBUTES_H

#include "text.h"

/* Writes `member`: [...], or refuses. of_host: names that the host takes, or null. */
void write_attributes(text* t, const char* member, const tn_attribute* const* attributes, uint32_t count,
                      const char* const* of_host);

#endif
