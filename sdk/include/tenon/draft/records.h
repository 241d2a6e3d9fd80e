/* Tenon SDK, a draft: the records of a reader's data. SPDX-License-Identifier: MIT
 *
 * A sample is a record of its data, such as a line of a file; a reader may leave records out, such as empty lines. With
 * this table the host names the record of a sample in messages, and reads texts that no slot has. */
#ifndef TENON_DRAFT_RECORDS_H
#define TENON_DRAFT_RECORDS_H

#include <tenon/reader.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the declarations of this header (docs/interface-1.0.md, drafts). */
#define TN_RECORDS_DRAFT 0x2c6291d4u

/* "tenon.records/1": an extension of a reader type. Immutable; lives as long as the plugin is mapped. Hosts before 0.4
 * do not ask for it. */
#define TN_RECORDS "tenon.records/1"
typedef struct tn_records {
  uint32_t size;
  uint32_t draft; /* TN_RECORDS_DRAFT */
  /* [any] The number of records of the data, of all shards, with those that are left out, such as empty lines. Not
   * asked of readers that do not know how many samples they have. */
  int64_t (*count)(void* instance);
  /* [any] The number, from 0, of the record that sample `index` of this shard is, as read_at counts samples. It rises
   * with the index. The host asks for samples that exist. */
  int64_t (*record)(void* instance, int64_t index);
  /* [io] The text of a column of the record of sample `index`; the columns are those of the data, whether slots have
   * them or not. UTF-8 or as the data has it; borrowed until the next [io] call of the instance. TN_NOT_FOUND without
   * such a column. */
  tn_status (*text)(void* instance, int64_t index, const char* column, tn_text* text);
} tn_records;

#ifdef __cplusplus
}
#endif
#endif
