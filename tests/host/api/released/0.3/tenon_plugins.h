/* Tenon: which plugins a host may load, and signatures of plugins. SPDX-License-Identifier: Apache-2.0
 *
 * docs/plugin-sets.md describes the file of a set. The calls without a host read and write files alone, from any
 * thread; none of the calls here runs code of a plugin. */
#ifndef TENON_TENON_PLUGINS_H
#define TENON_TENON_PLUGINS_H

#include <tenon/tenon_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Restricts a host that lives to the set at `path`: from now on, what the set does not admit is refused, beside what
 * was refused before; nothing new is searched for. TN_REFUSED if the mode of the set is looser than that of the host's
 * present set, or if the set does not admit a plugin that is loaded already: in sets that name bytes, one whose bytes
 * were not checked when it was loaded. Otherwise as the member plugin_set of tn_host_options. */
TENON_API tn_status tn_host_use_plugin_set(tn_host* host, const char* path, tn_error* error);
/* Writes the text of a set of mode "locked": the plugins that this host has loaded, each with its file, SHA-256, and
 * libraries. Paths are relative to `folder`, an existing folder in which the set will lie. TN_REFUSED if a file has
 * changed since it was loaded. */
TENON_API tn_status tn_host_lock_plugins(tn_host* host, const char* folder, tn_write write, void* user,
                                         tn_error* error);
/* Checks every file that a set names. Writes a JSON array of {id, file, version, sha256, status: "ok" | "refused",
 * reason}; a refused file does not fail the call, a wrong set does. */
TENON_API tn_status tn_plugin_set_verify(const char* path, tn_write write, void* user, tn_error* error);

/* Makes a pair of Ed25519 keys and writes them to two new files; that of the secret key may be read by its owner alone.
 * TN_INVALID if a file exists. */
TENON_API tn_status tn_plugin_create_key(const char* secret_file, const char* public_file, tn_error* error);
/* Signs a plugin: writes the signature over its SHA-256 to the file of its name and ".sig". TN_REFUSED if others than
 * its owner may read the secret key; TN_BAD_CONFIG if it is not one. */
TENON_API tn_status tn_plugin_sign(const char* file, const char* secret_file, tn_error* error);
/* TN_OK if the file is signed with this key, TN_REFUSED with the reason if it is not. */
TENON_API tn_status tn_plugin_verify(const char* file, const char* public_file, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
