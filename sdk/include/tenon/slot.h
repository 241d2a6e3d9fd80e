/* Tenon SDK: the slots of a reader's samples. SPDX-License-Identifier: MIT
 *
 * Plugins and applications that implement readers share these declarations, so this header includes only base.h. */
#ifndef TENON_SLOT_H
#define TENON_SLOT_H

#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `length` bytes of text, not NUL-terminated. */
typedef struct tn_text {
  const char* data;
  uint64_t length;
} tn_text;

/* What a reader finds in its data and a model keeps, so that other data has the same meaning: the names of a slot's
 * values, such as classes, categories or words, where texts[i] names value i; and the names of its columns. All names
 * of a list differ. Values from `count` on have no name, such as the number of a missing category. */
typedef struct tn_names {
  uint32_t size;
  uint32_t reserved;
  const char* slot; /* the slot of these values; ignored in a tn_slot */
  int64_t count;
  const tn_text* texts; /* [count]. Null, from the host only: not stored, because too many or not UTF-8 */
  const char* sha256;   /* from the host only: of all texts, each followed by a line end, in lower-case hex */
#if TN_TARGET_MINOR >= 4
  /* Since 0.4. The names of the elements of a sample along its last dimension (TN_RAGGED: of a row), in order, such as
   * those of the columns of a table that are one vector. 0: none, or unknown. */
  int64_t columns_count;
  const tn_text* columns;     /* [columns_count]. Null, from the host only: not stored, as above */
  const char* columns_sha256; /* from the host only: of the columns, as above */
  /* Since 0.4, from the host only: as in a tn_slot, with which the model was trained. */
  tn_dtype dtype; /* 0: unknown */
  int32_t rank;
  const int64_t* shape; /* [rank] */
  int64_t index_limit;
#endif
} tn_names;

/* One slot of a sample. Borrowed until close. One sample, by `storage`:
 *   TN_DENSE    one tensor of `shape`
 *   TN_RAGGED   a sequence of rows of `shape`, of any length, 0 included; with two levels a sequence of sequences
 *   TN_CSR      a sparse vector of shape[0] numbers, as entries {id, value}; dtype TN_F32, rank 1 */
typedef struct tn_slot {
  uint32_t size;
  tn_dtype dtype; /* as stored: bytes stay TN_U8 until the device converts them */
  const char* name;
  int32_t storage;
  int32_t rank;         /* of one sample; TN_RAGGED: of one row */
  const int64_t* shape; /* [rank] */
  int64_t index_limit;  /* integers are in [0, index_limit); -1 if unknown */
  uint32_t levels;      /* TN_RAGGED: 1 or 2; else 0 */
  uint32_t reserved;
  const tn_names* names; /* of the slot's integers and columns; null: no names, or unknown */
} tn_slot;

#ifdef __cplusplus
}
#endif
#endif
