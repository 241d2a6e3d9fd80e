/* Communicators in the manifest. SPDX-License-Identifier: MIT */
#ifndef TENON_MANIFEST_COMMS_H
#define TENON_MANIFEST_COMMS_H

#include "text.h"

/* Checks and writes "comms" of the plugin, if it has any. The owner is the plugin afterwards. */
void write_comms(text* t, const tn_plugin* plugin);

#endif
