/* Tenon: errors, handles and arrays of the public API. Include <tenon/tenon.h>. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_BASE_H
#define TENON_TENON_BASE_H

#include <tenon/attribute.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_VERSION "0.1.0"
/* The minor version of the API that these headers declare; tn_api_minor() is that of the library. An application runs
 * with every library of this or a later minor version (docs/api-stability.md). Since 0.4. */
#define TENON_API_MINOR 4

#if defined(__GNUC__)
#define TENON_API __attribute__((visibility("default")))
#else
#define TENON_API
#endif

/* At the end of a header, for a function that has a better name: if TENON_WARN_DEPRECATED is defined before the first
 * header, the compiler warns of its use. The function stays and works through all of major 1. Since 0.4. */
#if defined(TENON_WARN_DEPRECATED) && defined(__GNUC__)
#define TENON_DEPRECATED(name, text) extern __typeof__(name) name __attribute__((deprecated(text)));
#else
#define TENON_DEPRECATED(name, text)
#endif

/* The caller's buffer for a failure. Set size before the call. A failure fills the members that lie within size. All
 * texts are NUL-terminated, and cut at the end if longer. */
typedef struct tn_error {
  uint32_t size;
  tn_status code;
  char message[4088]; /* complete by itself: it also names component and subject, if known */
  /* Who failed: `layer "hidden" (fc)`, `reader "csv"`, `updater "adam"`, `layer type "fcc"`, `device "cpu"`, a wrapper
   * such as `bucket`, or `parameters`. "" if unknown, as where the call itself is wrong. */
  char component[256];
  /* What the failure is about: the name of an attribute, port, parameter, slot, data layer or argument, or the path of
   * a file. "" if unknown. */
  char subject[1024];
} tn_error;

/* Receives text (JSON where so stated) in one or more pieces. */
typedef void (*tn_write)(void* user, const char* text, size_t length);

typedef struct tn_host tn_host;
struct tn_plugin;

typedef struct tn_layer {
  uint32_t index, generation;
} tn_layer; /* one output of a layer */
typedef struct tn_parameters {
  uint32_t index, generation;
} tn_parameters; /* a ParameterSet */
typedef struct tn_machine {
  uint32_t index, generation;
} tn_machine; /* a gradient machine */
typedef struct tn_updater {
  uint32_t index, generation;
} tn_updater;
typedef struct tn_reader {
  uint32_t index, generation;
} tn_reader;
typedef struct tn_team {
  uint32_t index, generation;
} tn_team; /* the processes of a training; since 0.4, a draft */

/* A named attribute. */
typedef struct tn_named_value {
  const char* name;
  tn_value value;
} tn_named_value;

/* An array in host memory, of elements of whole bytes, by storage:
 *   TN_DENSE    data of `shape`; shape[0] is the number of samples where the array holds samples
 *   TN_RAGGED   concatenated sequences: data of `shape`, shape[0] rows in all; sample i has rows [offsets[0][i],
 *               offsets[0][i + 1]). With two levels offsets[0] counts inner sequences instead, and inner sequence j
 *               has rows [offsets[1][j], offsets[1][j + 1]). offsets[0][0] and offsets[1][0] are 0.
 *   TN_CSR      shape is {samples, width}; sample i has the entries from offsets[0][i] to offsets[0][i + 1], each a
 *               column in `ids` and a float in `data`; data null: all are 1
 * Arrays from the host are row-major: `strides` is null. Arrays for the host may have strides, which may be 0 or
 * negative; the host copies their elements. `offsets` and `ids` are always contiguous. */
typedef struct tn_array {
  tn_dtype dtype; /* TN_CSR: TN_F32 */
  int32_t rank;
  int64_t shape[8];
  void* data;                /* not written through when it is an input */
  int32_t storage;           /* TN_DENSE (0), TN_RAGGED, TN_CSR */
  uint32_t levels;           /* TN_RAGGED: 1 or 2; else 0 */
  const int64_t* offsets[2]; /* [samples + 1], [inner sequences + 1]; null if unused */
  const int64_t* ids;        /* TN_CSR; else null */
  int64_t samples;           /* TN_RAGGED: samples; else ignored */
  int32_t device_type;       /* as in DLPack: 1, also 0: host memory. Others are refused with TN_UNSUPPORTED */
  int32_t device_id;         /* 0 */
  const int64_t* strides;    /* [rank] in elements; `data` is that of the indices 0. Null: row-major, as with TN_CSR */
  void* reserved[2];         /* null */
} tn_array;

/* The order of the dimensions of a fed image. TN_CHANNELS_LAST: [height, width, channels], as layers read it.
 * TN_CHANNELS_FIRST: [channels, height, width]. The same with one or three spatial dimensions. */
enum { TN_CHANNELS_LAST = 0, TN_CHANNELS_FIRST = 1 };

#ifdef __cplusplus
}
#endif
#endif
