/* Tenon SDK: readers of data. SPDX-License-Identifier: MIT
 *
 * A reader writes samples of named slots into the host's memory. Shuffling, batching and prefetching are wrappers of
 * the host. Call order for one instance: open (schema | samples | read_at | next | position | seek)* close
 */
#ifndef TENON_READER_H
#define TENON_READER_H

#include <tenon/attribute.h>
#include <tenon/services.h>
#include <tenon/slot.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_reader_schema {
  uint32_t size;
  uint32_t slots_count;
  const tn_slot* const* slots;
} tn_reader_schema;

/* Flags of tn_reader_open. */
enum { TN_OPEN_SCHEMA = 1 /* only schema and samples are called: the reader may leave out what they do not need */ };

typedef struct tn_reader_open {
  uint32_t size;
  uint32_t shard;  /* this instance yields the samples i with i % shards == shard */
  uint32_t shards; /* at least 1 */
  uint32_t flags;  /* TN_OPEN_*; those of later versions may be ignored */
  const tn_services* services;
  const tn_errors* errors; /* valid until close; also used by the later calls */
  const tn_attributes* attributes;
  /* Paths among the attributes are absolute or relative to this directory. */
  const char* directory;
  /* The host sets it to non-zero to ask a long call to return TN_CANCELLED soon. Valid until close. */
  const volatile int32_t* cancel;
  /* What a model was trained with, by slot. A reader that numbers the names it finds uses the numbers of the list, puts
   * the list into its schema, and refuses other names. Since 0.4: a reader that finds the order of columns, their
   * number or their type in its data uses those of the list, and refuses data without one of the columns; a list
   * without names of values has the count 0. Lists for slots that it lacks are ignored. */
  const tn_names* const* names;
  uint32_t names_count;
  uint32_t names_reserved;
  uint64_t seed; /* for random choices such as augmentation: equal seeds give equal samples */
  void* user;    /* of the reader type's table */
#if TN_TARGET_MINOR >= 4
  /* Since 0.4. The slots whose values are used; null: all. A reader may leave the others out of its schema, and then
   * neither reads nor checks what they are made of, such as a label that new data does not have. Names of slots that it
   * lacks are ignored; if it has none of these slots, it offers at least one all the same. */
  const char* const* needed;
  uint32_t needed_count;
  uint32_t needed_reserved;
#endif
} tn_reader_open;

/* The buffer of a TN_RAGGED or TN_CSR slot: the concatenated rows (entries) and their number for each sample. Owned by
 * the host; the reader writes only through the pointers and to the `needed` members. */
typedef struct tn_sequence_room {
  uint32_t size;
  uint32_t reserved;
  int64_t rows_capacity;  /* rows, or entries, that fit */
  int64_t inner_capacity; /* two levels: inner sequences that fit */
  void* rows;             /* [rows_capacity, shape...]; TN_CSR: the values, float [rows_capacity] */
  int64_t* ids;           /* TN_CSR: the column of each entry, rising within a sample; else null */
  int64_t* lengths;       /* [capacity] of each sample: number of rows or entries; two levels: of inner sequences */
  int64_t* inner_lengths; /* [inner_capacity] two levels: rows of each inner sequence; else null */
  int64_t rows_needed;    /* set with TN_NEED_CAPACITY: a sufficient rows_capacity */
  int64_t inner_needed;   /* set with TN_NEED_CAPACITY: a sufficient inner_capacity */
} tn_sequence_room;

/* Buffers for samples, one per slot in schema order, each for `capacity` samples: for a TN_DENSE slot data[slot] is
 * memory for the concatenated samples; for other slots it is a tn_sequence_room. */
typedef struct tn_reader_buffers {
  uint32_t size;
  uint32_t slots_count;
  int64_t capacity;
  void* const* data;
} tn_reader_buffers;

typedef struct tn_reader_description {
  uint32_t size;
  uint32_t attributes_count;
  const char* type;
  const char* doc;
  const tn_attribute* const* attributes;
  uint32_t traits;
  uint32_t reserved;
} tn_reader_description;

typedef struct tn_reader_type {
  uint32_t size;
  uint32_t reserved;
  const tn_reader_description* description;
  /* [io] Opens the data and checks all of it if that is cheap. On failure reports file and reason and does not write
   * *instance. */
  tn_status (*open)(const tn_reader_open* open, void** instance);
  /* [io] Frees the instance. */
  void (*close)(void* instance);
  /* [any] Slots; borrowed until close. */
  const tn_reader_schema* (*schema)(void* instance);
  /* [any] Samples in this shard, or -1 if unknown (an online reader). */
  int64_t (*samples)(void* instance);
  /* [io] Optional: samples by index within the shard, in the order given. Indices are in [0, samples).
   * TN_NEED_CAPACITY if they do not all fit; nothing is read then. */
  tn_status (*read_at)(void* instance, const int64_t* indices, int64_t count, const tn_reader_buffers* buffers);
  /* [io] Reads the next samples in order, at most buffers->capacity, and sets *count. TN_END with *count 0 after the
   * last one; the call after that starts the next pass. Reads fewer samples if not all fit; TN_NEED_CAPACITY if not
   * even one fits, which consumes nothing. TN_BAD_DATA for a damaged record, with file and record named. */
  tn_status (*next)(void* instance, const tn_reader_buffers* buffers, int64_t* count);
  /* [io] Samples consumed by next in this pass. */
  int64_t (*position)(void* instance);
  /* [io] Makes `position`, from 0 to samples, the next sample of a pass. The function may be null (a stream): a pass
   * then begins where the one before ended, and a training resumes within a pass by reading the samples again. */
  tn_status (*seek)(void* instance, int64_t position);
  /* [any] Returns an optional table by id, or null. The function may be null. */
  const void* (*extension)(void* user, const char* id);
  void* user; /* given back as tn_reader_open.user */
} tn_reader_type;

/* "tenon.pass/1", an extension for readers whose samples differ from pass to pass, such as randomly cropped images.
 * Without a call of begin the number of the pass is the number of times that `next` returned TN_END. */
#define TN_PASS "tenon.pass/1"
typedef struct tn_pass {
  uint32_t size;
  uint32_t reserved;
  /* [io] Samples read after this call, by read_at or next, belong to pass number `pass`, from 0. */
  tn_status (*begin)(void* instance, int64_t pass);
} tn_pass;

/* "tenon.parallel_read/1", an extension for readers of dense slots whose samples take long to make, such as images that
 * are decoded. The host then reads every sample by it, on several of its threads at the same time. The reader has
 * read_at, too, for other hosts. */
#define TN_PARALLEL_READ "tenon.parallel_read/1"
typedef struct tn_parallel_read {
  uint32_t size;
  uint32_t reserved;
  /* [io] As read_at of the type. Calls run at the same time on several threads, each with other samples and with
   * buffers and errors of its own; no other function of the instance is called meanwhile. */
  tn_status (*read_at)(void* instance, const int64_t* indices, int64_t count, const tn_reader_buffers* buffers,
                       const tn_errors* errors);
} tn_parallel_read;

#ifdef __cplusplus
}
#endif
#endif
