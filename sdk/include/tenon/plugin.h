/* Tenon SDK: the one exported symbol and the descriptor behind it. SPDX-License-Identifier: MIT
 *
 * A plugin is one shared object with one exported symbol and an ELF note that repeats the descriptor as JSON, written
 * by tenon_add_plugin or by `tenon plugins seal`. The host reads the note without running code, and compares it when it
 * loads the code. */
#ifndef TENON_PLUGIN_H
#define TENON_PLUGIN_H

#include <tenon/device_images.h>
#include <tenon/fusion.h>
#include <tenon/kernel.h>
#include <tenon/layer.h>
#include <tenon/migrate.h>
#include <tenon/reader.h>
#include <tenon/step.h>
#include <tenon/updater.h>

#ifdef __cplusplus
extern "C" {
#endif

#if TN_TARGET_MINOR >= 4
struct tn_comm_type;
#endif

/* A shared library that the plugin needs beyond libc, with a hint for users who lack it. */
typedef struct tn_library {
  uint32_t size;
  uint32_t reserved;
  const char* name; /* "libcuda.so.1" */
  const char* hint; /* "install the NVIDIA driver" */
} tn_library;

#if TN_TARGET_MINOR >= 4
/* What one component needs beyond tn_abi.required. Since 0.4. */
typedef struct tn_requirement {
  uint32_t size;
  uint32_t minor;        /* the oldest minor version of a host that can use the component, at least 4 */
  const void* component; /* its table: an entry of layers, updaters, readers, kernels or comms */
} tn_requirement;
#endif

/* Immutable; valid while the plugin is mapped. Lists are arrays of pointers. */
typedef struct tn_plugin {
  uint32_t size;
  uint32_t reserved;
  tn_abi abi;
  const char* id;      /* reverse domain or "tenon.<name>"; one per plugin */
  const char* version; /* of the plugin: "1.2.3" */
  const char* doc;     /* one line */
  const char* license; /* SPDX expression */
  const char* isa;     /* CPU features that must be present, comma separated, or "" */
  uint32_t layers_count;
  uint32_t kernels_count;
  const tn_layer_type* const* layers; /* metrics and costs included */
  const tn_kernel* const* kernels;
  uint32_t updaters_count;
  uint32_t readers_count;
  const tn_updater_type* const* updaters;
  const tn_reader_type* const* readers;
  uint32_t devices_count;
  uint32_t libraries_count;
  const tn_device_type* const* devices;
  const tn_library* const* libraries;
  uint32_t providers_count;
  uint32_t reserved2;
  const tn_provider* const* providers;
#if TN_TARGET_MINOR >= 3
  /* Since 0.3. What the deployer of a host may set, in the entry of its plugin set: TN_ATTR_BOOL, INT, FLOAT or STRING.
   * Checked before the file is loaded, as attributes are; read by tn_options_of. They may change the speed, the memory
   * and the limits of a plugin, never what a layer computes. */
  uint32_t options_count;
  uint32_t reserved3;
  const tn_attribute* const* options;
#endif
#if TN_TARGET_MINOR >= 4
  /* Since 0.4. The components that need a newer host than the others. An older one, of 0.4 or later, refuses these
   * alone and uses the others; so abi.required is 4 at least. */
  uint32_t requirements_count;
  uint32_t reserved4;
  const tn_requirement* const* requirements;
  /* Since 0.4, a draft: communicators, tables of tenon/draft/comm.h. */
  uint32_t comms_count;
  /* Since 0.4, a draft. TN_ARITHMETIC_NATIVE: its providers are for hosts of native arithmetic alone; others do not ask
   * them. Else 0. */
  uint32_t arithmetic;
  const struct tn_comm_type* const* comms;
#endif
} tn_plugin;

/* [load] The exported symbol. Returns the descriptor; the host refuses null. Does nothing else: it allocates nothing,
 * starts no threads and uses no device. */
#define TN_ENTRY tenon_plugin
#define TN_ENTRY_NAME "tenon_plugin"
typedef const tn_plugin* (*tn_entry)(void);

#if defined(__GNUC__)
#define TN_EXPORT __attribute__((visibility("default")))
#else
#define TN_EXPORT
#endif

TN_EXPORT const tn_plugin* tenon_plugin(void);

/* The note: name of its section, name of its owner, type, and the most bytes of its JSON. */
#define TN_NOTE_SECTION ".note.tenon"
#define TN_NOTE_OWNER "Tenon"
#define TN_NOTE_TYPE 1
#define TN_NOTE_LIMIT 1048576
#define TN_NOTE_RESERVED 2 /* the type of a note without text, which `tenon plugins seal` fills in */

/* Reserves room for a manifest of at most `bytes` bytes, at file scope in one source of a plugin that is built without
 * tenon_add_plugin: TN_RESERVE_NOTE(4096); `tenon plugins seal FILE.so` fills it in. Other languages put the same bytes
 * into the section: the little-endian uint32 values 6, `bytes` and TN_NOTE_RESERVED, the text "Tenon" with three NULs,
 * then `bytes` zeros, a multiple of 4; all aligned to 4. */
#define TN_RESERVE_NOTE(bytes)                                                                    \
  TN_NOTE_PLAIN __attribute__((section(TN_NOTE_SECTION), used, aligned(4))) static const struct { \
    uint32_t owner_bytes, text_bytes, type;                                                       \
    char owner[8];                                                                                \
    char text[((bytes) + 3) / 4 * 4];                                                             \
  } tn_reserved_note = {sizeof TN_NOTE_OWNER, ((bytes) + 3) / 4 * 4, TN_NOTE_RESERVED, TN_NOTE_OWNER, {0}}
#if defined(__clang__)
#define TN_NOTE_PLAIN __attribute__((no_sanitize("address"))) /* no red zones between notes; GCC puts none there */
#else
#define TN_NOTE_PLAIN
#endif

#ifdef __cplusplus
}
#endif
#endif
