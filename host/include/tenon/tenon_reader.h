/* Tenon: readers of the public API. Include <tenon/tenon.h>. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TENON_READER_H
#define TENON_TENON_READER_H

#include <tenon/slot.h>
#include <tenon/tenon_base.h>
#include <tenon/tenon_reader_options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of tn_reader_options. TN_READER_SCHEMA: the reader is asked for its slots and its number of samples alone, and
 * may leave out reading what they do not need; reading samples is TN_MISUSE. */
enum { TN_READER_SCHEMA = 1 };

typedef struct tn_reader_options {
  uint32_t size;
  uint32_t attributes_count;
  const char* type;
  const tn_named_value* attributes;
  const char* directory;  /* base of relative paths; null: the working directory */
  uint32_t shard, shards; /* shards 0: 1 */
  /* What a model knows of slots, for example from tn_parameters_read_names or tn_reader_read_names; `slot` is a slot of
   * this reader. A reader that numbers the names it finds uses the numbers of these lists; a reader that finds other
   * names, or must number them differently, fails. Since 0.4: a reader that finds columns, their number or their type
   * in its data uses those of these lists. Lists for slots that it lacks are ignored. */
  const tn_names* const* names;
  uint32_t names_count;
  uint32_t flags; /* TN_READER_* */
  uint64_t seed;  /* of the reader's random choices, such as the cropping of images: equal seeds give equal samples */
  /* Since 0.4. The slots that are needed, such as those of the data layers of the outputs of tn_infer; null: all. The
   * reader may leave out the others, and then neither reads nor checks them: new data needs no labels. */
  const char* const* needed;
  uint32_t needed_count;
  uint32_t reserved;
} tn_reader_options;
TENON_API tn_status tn_reader_create(tn_host* host, const tn_reader_options* options, tn_reader* reader,
                                     tn_error* error);

/* A reader implemented by the application. The host calls its functions one at a time, on a host thread if
 * tn_reader_buffered wraps it; they must not call this host. They return samples in `values`, one array per slot: they
 * set data, offsets and ids, and for a TN_RAGGED slot shape[0], the number of rows; the host sets the rest. The host
 * copies the values before its next call. A function that fails returns a status and fills
 * *error: message and subject. */
typedef struct tn_source_options {
  uint32_t size;
  uint32_t slots_count;
  const tn_slot* const* slots; /* copied */
  int64_t samples;             /* in a pass; -1 if unknown or endless */
  void* user;
  /* Reads the next samples of the pass, at most `most`, and sets *count to their number; 0 once at the end of each
   * pass. May be null if read_at is set. */
  tn_status (*next)(void* user, int64_t most, tn_array* values, int64_t* count, tn_error* error);
  /* Reads samples by index, in the order given; or null. Needs a known `samples`. */
  tn_status (*read_at)(void* user, const int64_t* indices, int64_t count, tn_array* values, tn_error* error);
  /* Makes `position` the next sample of pass number `pass`; null: unsupported, unless `next` is null too. */
  tn_status (*seek)(void* user, int64_t pass, int64_t position, tn_error* error);
  /* Called when the reader is destroyed; or null. Not called if tn_reader_create_from fails. */
  void (*release)(void* user);
} tn_source_options;
TENON_API tn_status tn_reader_create_from(tn_host* host, const tn_source_options* options, tn_reader* reader,
                                          tn_error* error);

/* Wrappers. Each consumes the readers it wraps (their handles become stale) and makes a new reader; if it fails, the
 * wrapped readers are unchanged. A reader yields samples; batch and bucket make it yield minibatches. map and choose
 * accept both, buffered accepts minibatches, all others samples. All but map, choose, augment, batch and buffered start
 * at the first sample of a pass: a reader in the middle of a pass is TN_MISUSE.
 *
 * shuffle: a new order in every pass, determined by the seed and the pass; an exact permutation if the reader can
 * read by index, else by a buffer of `buffer` samples. buffer 0: the whole shard. */
TENON_API tn_status tn_reader_shuffle(tn_host* host, tn_reader of, int64_t buffer, uint64_t seed, tn_reader* reader,
                                      tn_error* error);
/* The first `samples` samples of each pass. */
TENON_API tn_status tn_reader_first_n(tn_host* host, tn_reader of, int64_t samples, tn_reader* reader, tn_error* error);
/* The samples i of each pass with i % shards == shard. A reader without read by index is read completely. */
TENON_API tn_status tn_reader_shard(tn_host* host, tn_reader of, int64_t shard, int64_t shards, tn_reader* reader,
                                    tn_error* error);
/* One of the two parts into which fraction and seed divide the samples of a reader that reads by index, for validation:
 * round(fraction * samples) samples are held out. held_out 1: these; 0: all others. Both parts keep the order of the
 * data. The division depends on fraction, seed and number of samples alone, so readers of the same data, split with the
 * same numbers, share no sample. fraction: between 0 and 1, and so that neither part is empty. */
TENON_API tn_status tn_reader_split(tn_host* host, tn_reader of, double fraction, uint64_t seed, int32_t held_out,
                                    tn_reader* reader, tn_error* error);

/* Changes the images of a slot at random. */
TENON_API tn_status tn_reader_augment(tn_host* host, tn_reader of, const tn_augment_options* options, tn_reader* reader,
                                      tn_error* error);
/* Concatenates readers with the same slots: one reader after the other. */
TENON_API tn_status tn_reader_chain(tn_host* host, const tn_reader* of, uint32_t of_count, tn_reader* reader,
                                    tn_error* error);
/* One sample of each reader in turn, skipping readers at their end. All must have the same slots. */
TENON_API tn_status tn_reader_interleave(tn_host* host, const tn_reader* of, uint32_t of_count, tn_reader* reader,
                                         tn_error* error);
/* Zips readers: sample i has the slots of sample i of every reader. Names of slots must differ. Different numbers of
 * samples give TN_INVALID if the numbers are known, else TN_BAD_DATA when the first reader ends.
 */
TENON_API tn_status tn_reader_compose(tn_host* host, const tn_reader* of, uint32_t of_count, tn_reader* reader,
                                      tn_error* error);
/* Selects these slots, in this order, and renames slot i to names[i]; names null: keeps their names. */
TENON_API tn_status tn_reader_choose(tn_host* host, tn_reader of, const char* const* slots, const char* const* names,
                                     uint32_t slots_count, tn_reader* reader, tn_error* error);

/* Samples computed from samples by a function of the application, under the rules of tn_source_options. */
typedef struct tn_map_options {
  uint32_t size;
  uint32_t slots_count;
  const tn_slot* const* slots; /* of the outputs; copied */
  void* user;
  /* Computes as many samples of outputs as of inputs: whole minibatches after batch or bucket, else any number.
   * outputs[i] may point into an input. Called again with the same samples after a failure. */
  tn_status (*map)(void* user, const tn_array* inputs, uint32_t inputs_count, int64_t samples, tn_array* outputs,
                   uint32_t outputs_count, tn_error* error);
  void (*release)(void* user); /* as in tn_source_options */
} tn_map_options;
TENON_API tn_status tn_reader_map(tn_host* host, tn_reader of, const tn_map_options* options, tn_reader* reader,
                                  tn_error* error);

/* Minibatches of `samples`; the short last one is kept unless drop_last. */
TENON_API tn_status tn_reader_batch(tn_host* host, tn_reader of, int64_t samples, int32_t drop_last, tn_reader* reader,
                                    tn_error* error);
/* Minibatches of samples of similar length. */
TENON_API tn_status tn_reader_bucket(tn_host* host, tn_reader of, const tn_bucket_options* options, tn_reader* reader,
                                     tn_error* error);
/* Reads up to `minibatches` minibatches ahead, on a host thread that starts once reading has proved slow and ends
 * with the reader. A failure is reported at its position, after the minibatches before it. */
TENON_API tn_status tn_reader_buffered(tn_host* host, tn_reader of, int64_t minibatches, tn_reader* reader,
                                       tn_error* error);

/* JSON: {samples, batch, slots: [{name, dtype, shape, index_limit, storage: "dense" | "ragged" | "csr", levels}],
 * whole_reason}. samples: in a pass, -1 if unknown; batch: most in a minibatch, 0: a reader of samples; shape: of a
 * sample, or of a row if ragged; whole_reason: why each process of a team reads all samples, "" if its own alone. */
TENON_API tn_status tn_reader_describe(tn_host* host, tn_reader reader, tn_write write, void* user, tn_error* error);
/* The slots whose names of integers the reader knows. Borrowed like those of tn_parameters_names. Those of every slot:
 * tn_reader_read_names (tenon_lease.h). */
TENON_API tn_status tn_reader_names(tn_host* host, tn_reader reader, const tn_names* const** names, uint32_t* count,
                                    tn_error* error);
/* Since 0.4. Whether the slots mean what the model was trained with: TN_INVALID, naming the slot, if names of integers
 * or columns differ from those that the set keeps for a data layer of the slot's name. tn_train, tn_test and tn_infer
 * ask the same; an application that feeds minibatches of a reader itself calls it once before. */
TENON_API tn_status tn_reader_check(tn_host* host, tn_reader reader, tn_parameters parameters, tn_error* error);
TENON_API tn_status tn_reader_slots_count(tn_host* host, tn_reader reader, uint32_t* count, tn_error* error);
struct tn_data_options;
/* Slot `number`, from 0, as the options of a data layer that it feeds: for tn_data_create, as they are or with another
 * name, scale or sequence. name and shape are borrowed as long as the reader's handle. TN_NOT_FOUND beyond the last
 * one. */
TENON_API tn_status tn_reader_slot(tn_host* host, tn_reader reader, uint32_t number, struct tn_data_options* options,
                                   tn_error* error);
/* The next minibatch (or sample, for a reader without batch or bucket): values[i] is slot i, borrowed until the next
 * call on this reader. TN_END after the last one of a pass; the call after that starts the next pass. */
TENON_API tn_status tn_reader_next(tn_host* host, tn_reader reader, tn_array* values, uint32_t values_count,
                                   tn_error* error);
/* The reader's position: the number of the pass, from 0, and the number of samples of that pass read or skipped so far.
 * A damaged sample is skipped after its read failed once with TN_BAD_DATA. */
TENON_API tn_status tn_reader_position(tn_host* host, tn_reader reader, int64_t* pass, int64_t* position,
                                       tn_error* error);
/* Continues from a position, with the same samples as before from there on. TN_UNSUPPORTED if the data cannot be read
 * again, such as a stream. */
TENON_API tn_status tn_reader_seek(tn_host* host, tn_reader reader, int64_t pass, int64_t position, tn_error* error);
/* Since 0.4. The number, from 0, of the record of the data that sample `index` of a pass is: of a line of a text file,
 * of a record of a CSV file. It is `index`, unless the reader leaves out records, such as empty lines. TN_UNSUPPORTED
 * after shuffle and bucket, which change the order. */
TENON_API tn_status tn_reader_record(tn_host* host, tn_reader reader, int64_t index, int64_t* record, tn_error* error);
/* Since 0.4. The number of records that are left out; -1 if unknown. */
TENON_API tn_status tn_reader_left_out(tn_host* host, tn_reader reader, int64_t* records, tn_error* error);
/* Since 0.4. The text of a column of the record of sample `index`, whether a slot has it or not: a column of a CSV
 * file, "line" of a text file, "file" of an image. TN_NOT_FOUND if the data has no such column. TN_MISUSE after
 * tn_reader_buffered, whose thread reads: open a second reader for texts. */
TENON_API tn_status tn_reader_text(tn_host* host, tn_reader reader, int64_t index, const char* column, tn_write write,
                                   void* user, tn_error* error);
TENON_API tn_status tn_reader_release(tn_host* host, tn_reader reader, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
