/* Tenon SDK: the slots of a reader's samples. SPDX-License-Identifier: MIT
 *
 * Plugins and applications that write readers declare slots alike, so this header needs nothing but base.h. */
#ifndef TENON_SLOT_H
#define TENON_SLOT_H

#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of text; none behind them is meant. */
typedef struct tn_text {
  const char* data;
  uint64_t length;
} tn_text;

/* What the values of a slot stand for, such as classes, categories or words: value i is called texts[i]. All differ.
 * Values from `count` on have no name, such as the one of a category that is missing. */
typedef struct tn_names {
  uint32_t size;
  uint32_t reserved;
  const char* slot; /* whose values they are; ignored in a tn_slot */
  int64_t count;
  const tn_text* texts; /* [count]. Null, in what the host tells: they are too many, or no UTF-8, and were not kept */
  const char* sha256;   /* what the host tells: of all texts, each with a line end behind it, in lower-case hex */
} tn_names;

/* One slot of a sample. Borrowed until close. What one sample is depends on `storage`:
 *   TN_DENSE    one tensor of `shape`
 *   TN_RAGGED   a sequence of rows of `shape`, of any length, 0 included; with two levels a sequence of sequences
 *   TN_CSR      a vector of shape[0] numbers of which most are 0, as entries {id, value}; dtype TN_F32, rank 1 */
typedef struct tn_slot {
  uint32_t size;
  tn_dtype dtype; /* as stored: bytes stay TN_U8 until the device converts them */
  const char* name;
  int32_t storage;
  int32_t rank;         /* of one sample; TN_RAGGED: of one row */
  const int64_t* shape; /* [rank] */
  int64_t index_limit;  /* integers are in [0, index_limit); -1: not known */
  uint32_t levels;      /* TN_RAGGED: 1 or 2; else 0 */
  uint32_t reserved;
  const tn_names* names; /* of the slot's integers; null: they stand for nothing but themselves, or it is not known */
} tn_slot;

#ifdef __cplusplus
}
#endif
#endif
