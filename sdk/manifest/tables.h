/* The tables that components offer by id. For the manifest and for hosts. SPDX-License-Identifier: MIT */
#ifndef TENON_MANIFEST_TABLES_H
#define TENON_MANIFEST_TABLES_H

#include <tenon/device_host.h>
#include <tenon/device_images.h>
#include <tenon/draft/comm.h>
#include <tenon/draft/numbers.h>
#include <tenon/draft/records.h>
#include <tenon/migrate.h>
#include <tenon/step.h>

/* A table of these headers. A later version adds functions behind those that it has here, and does not change this. */
typedef struct tn_known_table {
  const char* id;
  uint16_t bytes;  /* of the version that brought it */
  uint16_t owner;  /* TN_OF_*: whose extension answers its id; TN_IS_COMM: it is the table of a communicator itself */
  uint32_t second; /* what its second member, of 4 bytes, must be: the digest of a draft, TN_SECOND_FREE, or 0 */
  /* The first ones, without which a host does not use it. Without any: a host uses it for each function that it has. */
  const char* functions[4];
} tn_known_table;

enum { TN_OF_DEVICES = 0, TN_OF_LAYERS = 1, TN_OF_READERS = 2, TN_IS_COMM = 3 };

#define TN_COMM "tenon.comm/1" /* the draft of tn_comm_type in a note; no extension answers it */

#define TN_SECOND_FREE UINT32_MAX /* a number with a meaning of its own, such as an opset */

static const tn_known_table tn_known_tables[] = {
    {TN_GEMM, 16, TN_OF_DEVICES, 0, {"prepare"}},
    {TN_GEMM_EPILOGUE, 24, TN_OF_DEVICES, TN_SECOND_FREE, {"supports", "prepare"}},
    {TN_PACKED_GEMM, 40, TN_OF_DEVICES, 0, {"packed_bytes", "prepare_pack", "prepare_multiply"}},
    {TN_POINTWISE, 16, TN_OF_DEVICES, TN_SECOND_FREE, {"prepare"}},
    {TN_GATHER, 16, TN_OF_DEVICES, 0, {"prepare"}},
    {TN_GATHER_GEMM, 24, TN_OF_DEVICES, 0, {"supports", "prepare"}},
    {TN_MOVE, 16, TN_OF_DEVICES, 0, {"prepare"}},
    {TN_SEGMENT, 16, TN_OF_DEVICES, 0, {"prepare"}},
    {TN_ARGSORT, 16, TN_OF_DEVICES, 0, {"prepare"}},
    {TN_PREFIX_SUM, 16, TN_OF_DEVICES, 0, {"prepare"}},
    {TN_ROW_SPARSE_TABLE, 24, TN_OF_DEVICES, TN_SECOND_FREE, {NULL}}, /* each of its two calls may be absent */
    {TN_COALESCE_PRODUCTS, 24, TN_OF_DEVICES, 0, {"supports", "prepare"}},
    {TN_CONV, 16, TN_OF_DEVICES, 0, {"prepare"}},
    {TN_CONV_EPILOGUE, 24, TN_OF_DEVICES, TN_SECOND_FREE, {"supports", "prepare"}},
    {TN_POOL, 16, TN_OF_DEVICES, 0, {"prepare"}},
    {TN_RESIZE, 16, TN_OF_DEVICES, 0, {"prepare"}},
    {TN_NATIVE, 16, TN_OF_DEVICES, 0, {"stream"}},
    {TN_HOST_MEMORY, 24, TN_OF_DEVICES, 0, {"allocate", "release"}},
    {TN_CAPTURE, 40, TN_OF_DEVICES, 0, {"begin", "end", "launch", "destroy"}},
    {TN_STEP, 16, TN_OF_LAYERS, 0, {"step"}},
    {TN_MIGRATE, 16, TN_OF_LAYERS, TN_SECOND_FREE, {"migrate"}},
    {TN_LAYER_NUMBERS, 16, TN_OF_LAYERS, TN_NUMBERS_DRAFT, {"declare"}},
    {TN_PASS, 16, TN_OF_READERS, 0, {"begin"}},
    {TN_PARALLEL_READ, 16, TN_OF_READERS, 0, {"read_at"}},
    {TN_RECORDS, 32, TN_OF_READERS, TN_RECORDS_DRAFT, {"count", "record", "text"}},
    {TN_COMM, 96, TN_IS_COMM, TN_COMM_DRAFT, {NULL}},
};

#define TN_TABLE_FIRST 8u    /* where the first function lies: behind the size and another number */
#define TN_TABLE_MOST 65536u /* bytes */

/* Null for an id of a later version or of a vendor. */
static inline const tn_known_table* tn_find_table(const char* id) {
  for (size_t i = 0; i < sizeof tn_known_tables / sizeof tn_known_tables[0]; ++i)
    if (strcmp(tn_known_tables[i].id, id) == 0) return &tn_known_tables[i];
  return NULL;
}

/* Whether a table of these headers is a draft. */
static inline int tn_is_draft(const tn_known_table* entry) {
  return entry->second != 0 && entry->second != TN_SECOND_FREE;
}

/* The second member of a table, with its meaning. */
static inline uint32_t tn_second_member(const void* table) {
  uint32_t number = 0;
  memcpy(&number, (const char*)table + sizeof number, sizeof number);
  return number;
}

/* The fewest bytes that a table of this id may state: those of the version that brought it; of unknown ones two
 * members. */
static inline uint32_t tn_least_bytes(const tn_known_table* entry) {
  return entry == NULL ? TN_TABLE_FIRST : entry->bytes;
}
/* Whether it may state this size, in whole pointers. */
static inline int tn_is_table_size(const tn_known_table* entry, uint32_t bytes) {
  return bytes >= tn_least_bytes(entry) && bytes <= TN_TABLE_MOST && bytes % sizeof(void*) == 0;
}

#endif
