/* Tenon: tables of Arrow as feeds and as readers, and outputs as record batches. SPDX-License-Identifier: Apache-2.0
 *
 * In a library of its own: link with libtenon_arrow and libtenon (pkg-config tenon-arrow, or Tenon::arrow of CMake). It
 * needs no package of Arrow: the structs below are all that two libraries share (arrow.apache.org/docs/format). Drafts,
 * since 0.4.
 *
 * Columns, by format, and what a data layer or slot gets of them:
 *   c C s S i I l L e f g   integers and floats
 *   b                       booleans, one byte each
 *   dictionary              the numbers of categories, with their names
 *   u U z Z vu              texts, where the names of the data layer are known; else refused
 *   +w                      lists of one size: one more dimension
 *   +l +L                   sequences; lists of lists are sequences of sequences, or of vectors; for a dense data layer
 *                           vectors, if all have its size; for a sparse one the columns that are 1
 *   +m                      maps from integers to numbers, for a sparse data layer
 * Others, such as times and decimals, are refused where they are needed. A null is TN_BAD_DATA and names the column and
 * the sample; nulls outside of the rows, as of a sliced array, are none. Values become the type of the data layer if
 * none is lost: integers of any width, floats rounded to float32 (one beyond its range is refused), integers as floats
 * that hold them exactly; never floats as integers. NaN passes, as in every feed.
 *
 * Memory: values that have the type of the data layer lie where Arrow has them, without a copy, with any offset. Copied
 * are: booleans, texts, categories and lists of int32 offsets (only their offsets), values of another type, values of
 * several chunks, and those that are not aligned.
 *
 * Ownership: a call that succeeds takes the structs that it says it takes, and sets their release to null. A call that
 * fails takes nothing: the caller still has to release them. A release that a struct came with is called exactly once.
 * Damaged structs are TN_BAD_DATA: null pointers, negative lengths, missing buffers, columns shorter than their table,
 * offsets that fall or lie outside. Sizes of buffers are not part of the interface, so none can be checked. */
#ifndef TENON_TENON_ARROW_H
#define TENON_TENON_ARROW_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

#endif

/* The feeds of one record batch, with the memory that they lie in. Unchanged until it is released; any thread. */
typedef struct tn_arrow_feeds {
  uint32_t size;
  uint32_t feeds_count;
  const tn_feed* feeds;
  int64_t samples;
} tn_arrow_feeds;

/* Takes `batch`, a struct array, and makes the feeds of the data layers that the outputs depend on of its columns of
 * these names; others are not looked at. schema: that of the batch; only read, and not after the call. parameters: the
 * set whose names number the categories and texts, or {0, 0}: then a category has its number in the dictionary, and the
 * dictionary must not have a text twice. TN_NOT_FOUND for a data layer without a column. */
TENON_API tn_status tn_arrow_feeds_create(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                                          tn_parameters parameters, const struct ArrowSchema* schema,
                                          struct ArrowArray* batch, const tn_arrow_feeds** feeds, tn_error* error);
/* Releases the feeds, and with them the batch, which goes earlier if no feed lies in it. feeds may be null. */
TENON_API void tn_arrow_feeds_release(const tn_arrow_feeds* feeds);

/* Reads all chunks of the stream at once and keeps them: the reader then knows its number of samples, reads by index
 * (shuffle, split, seek) and has any number of passes. */
enum { TN_ARROW_KEEP = 1 };

typedef struct tn_arrow_reader_options {
  uint32_t size;
  uint32_t flags; /* TN_ARROW_* */
  /* Taken. Without TN_ARROW_KEEP the reader holds one chunk at a time, and has one pass: the next one, and seek, are
   * TN_UNSUPPORTED. Null if `open` is set. */
  struct ArrowArrayStream* stream;
  /* Opens the stream again for each pass, such as by a query: any number of passes, seek, and one chunk at a time. The
   * first call is that of tn_arrow_reader_create, later ones are like those of tn_source_options. All streams have the
   * types of the first one. A failure fills *error. Null if `stream` is set. */
  tn_status (*open)(void* user, struct ArrowArrayStream* stream, tn_error* error);
  void* user;
  void (*release)(void* user); /* as in tn_source_options; or null */
  /* The slots are those of the data layers that the outputs depend on, in their types. None: those of the columns, in
   * their own types: float64 and float16 become float32, uint64 int64. */
  const tn_layer* outputs;
  uint32_t outputs_count;
  uint32_t columns_count;
  /* Without outputs the columns that are read; null: all that may be slots. */
  const char* const* columns;
  /* The set whose names number categories and texts; {0, 0}: those of the first chunk with rows (TN_ARROW_KEEP: of all
   * chunks). A category that they lack is TN_BAD_DATA. */
  tn_parameters parameters;
} tn_arrow_reader_options;
/* A reader over a stream of Arrow. Wrappers, trainings and tests take it like any other. Calls of the stream are made
 * one at a time, on the threads of tn_source_options. A chunk that fails is TN_BAD_DATA or the status of `open`. */
TENON_API tn_status tn_arrow_reader_create(tn_host* host, const tn_arrow_reader_options* options, tn_reader* reader,
                                           tn_error* error);

/* A column of a record batch. Frozen. */
typedef struct tn_arrow_column {
  const char* name;
  tn_array values; /* row-major, such as an output, or the values of a reader: numbers of whole bytes but bfloat16 */
  const tn_text* names; /* [names_count] of the integers, which all have one: the column is a dictionary; or null */
  int64_t names_count;
} tn_arrow_column;

/* Writes columns of equal length as a record batch: *schema and *batch, which the caller releases, or whoever takes
 * them. Dimensions after the first become lists of one size (+w), sequences large lists (+L), sparse vectors maps (+m)
 * from columns to numbers, TN_BOOL bits. release null: the values are copied, as outputs of tn_predictor_predict must
 * be, which are borrowed. Else they are lent: they stay unchanged until release(user), which is called once, after a
 * call that succeeded, by the thread that releases the last part of batch and schema; bits, the offsets of maps and the
 * names are copied all the same. A call that fails writes nothing and does not call it. */
TENON_API tn_status tn_arrow_export(const tn_arrow_column* columns, uint32_t columns_count, void (*release)(void* user),
                                    void* user, struct ArrowSchema* schema, struct ArrowArray* batch, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
