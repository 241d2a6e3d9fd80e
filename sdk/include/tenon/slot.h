/* Tenon SDK: the slots of a reader's samples. SPDX-License-Identifier: MIT
 *
 * Plugins and applications that write readers declare slots alike, so this header needs nothing but base.h. */
#ifndef TENON_SLOT_H
#define TENON_SLOT_H

#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

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
} tn_slot;

#ifdef __cplusplus
}
#endif
#endif
