/* Attributes in the manifest: their checks and their JSON. SPDX-License-Identifier: MIT */
#ifndef TENON_MANIFEST_ATTRIBUTES_H
#define TENON_MANIFEST_ATTRIBUTES_H

#include "text.h"

/* Writes "attributes": [...], or refuses. */
void write_attributes(text* t, const tn_attribute* const* attributes, uint32_t count, const char* const* of_host);

#endif
