/* A plugin's manifest: its descriptor, checked, as the JSON that goes into the note. A library in C99 for the build
 * step of tenon_add_plugin and for `tenon plugins seal`. SPDX-License-Identifier: MIT */
#ifndef TENON_MANIFEST_H
#define TENON_MANIFEST_H

#include <tenon/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* About 1 MiB: static, or on the heap. */
typedef struct tn_manifest {
  size_t length;            /* bytes of `text`; 0: refused */
  char error[1024];         /* why, one line: plugin "a.b", layer type "c": the function "plan" is missing */
  char text[TN_NOTE_LIMIT]; /* JSON, without a NUL at its end */
} tn_manifest;

/* Writes the manifest of a descriptor, as tenon_plugin() returned it. Returns 1; or 0 if it refuses the descriptor,
 * with the reason in manifest->error: a plugin for which no host, or not the host of these headers, would accept it. */
int tn_manifest_write(tn_manifest* manifest, const tn_plugin* plugin);

/* Returns the layer type of another plugin for which kernel number `i` of the descriptor, which was not refused, states
 * no version; null if there is none. Tenon's types have versions from 1, and a host passes over a kernel for another.
 */
const char* tn_manifest_unversioned(const tn_plugin* plugin, uint32_t i);

#ifdef __cplusplus
}
#endif
#endif
