/* Tenon: the public API in C99. SPDX-License-Identifier: Apache-2.0
 *
 * Everything hangs off a tn_host; any number of hosts live in one process. All other objects are handles {index,
 * generation}: a stale handle, or one of another host, gives TN_MISUSE. Calls on one host may come from any thread
 * and are serialised by the host; an event handler may call back into its own host. After fork() the child's copy
 * of a host answers TN_MISUSE.
 *
 * Every call returns a tn_status and, when it fails, fills *error (if given) and changes nothing: all handles stay
 * usable. No call prints, aborts or exits. Pointers that a call returns are borrowed until the moment it states. */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/attribute.h>
#include <tenon/slot.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_VERSION "0.1.0"

#if defined(__GNUC__)
#define TENON_API __attribute__((visibility("default")))
#else
#define TENON_API
#endif

/* The caller's buffer for a failure. Set size before the call. */
typedef struct tn_error {
  uint32_t size;
  tn_status code;
  char message[4088]; /* NUL-terminated; cut at the end if longer */
} tn_error;

/* Receives text (JSON where so stated) in one or more pieces. */
typedef void (*tn_write)(void* user, const char* text, size_t length);

typedef struct tn_host tn_host;
struct tn_plugin;

typedef struct tn_layer {
  uint32_t index, generation;
} tn_layer; /* an expression: one output of a layer */
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

/* A named attribute. */
typedef struct tn_named_value {
  const char* name;
  tn_value value;
} tn_named_value;

/* A row-major array in host memory, by storage:
 *   TN_DENSE    data of `shape`; shape[0] counts samples where samples are meant
 *   TN_RAGGED   sequences end to end: data of `shape`, shape[0] counting rows; sample i has the rows from offsets[0][i]
 *               to offsets[0][i + 1]. With two levels that is its inner sequences, and inner sequence j has the rows
 *               from offsets[1][j] to offsets[1][j + 1]. offsets[0][0] and offsets[1][0] are 0.
 *   TN_CSR      shape is {samples, width}; sample i has the entries from offsets[0][i] to offsets[0][i + 1], each a
 *               column in `ids` and a float in `data`; data null: all are 1 */
typedef struct tn_array {
  tn_dtype dtype; /* TN_CSR: TN_F32 */
  int32_t rank;
  int64_t shape[8];
  void* data;                /* not written through when it is an input */
  int32_t storage;           /* TN_DENSE (0), TN_RAGGED, TN_CSR */
  uint32_t levels;           /* TN_RAGGED: 1 or 2; else 0 */
  const int64_t* offsets[2]; /* [samples + 1], [inner sequences + 1]; null where there are none */
  const int64_t* ids;        /* TN_CSR; else null */
  int64_t samples;           /* TN_RAGGED: samples; else ignored */
} tn_array;

/* ---- library --------------------------------------------------------------------------------------------------- */

TENON_API const char* tn_version(void);
/* "not found" and the like; "unknown status" for a number that is none. */
TENON_API const char* tn_status_text(tn_status status);

/* ---- host ------------------------------------------------------------------------------------------------------ */

/* Where memory comes from. All bytes of tensors, parameters and arenas pass here. Called from any thread. */
typedef struct tn_allocator {
  uint32_t size;
  uint32_t reserved;
  void* self;
  void* (*allocate)(void* self, uint64_t bytes, uint64_t alignment); /* null: out of memory */
  void (*release)(void* self, void* memory, uint64_t bytes);
} tn_allocator;

/* Whether the host checks the thread tags of the plugin interface: what a plugin calls from where, and what it goes on
 * using after it had to be given back. A breach ends the call with TN_PLUGIN_FAULT that names component and function;
 * calling the host from inside a plugin's function, where that runs plugin code again, is TN_MISUSE. Meant for those
 * who write and test plugins: it takes a lock and some memory at each call of a plugin. */
enum {
  TN_CHECK_DEFAULT = 0, /* on where the library was built without NDEBUG */
  TN_CHECK_ON = 1,
  TN_CHECK_OFF = 2
};

typedef struct tn_host_options {
  uint32_t size;
  int32_t threads;                 /* compute threads, the caller's included; 0: the cores this process may use */
  const char* const* plugin_paths; /* folders that are searched, with their sub-folders; null: the folder
                                      tenon/plugins beside libtenon.so */
  uint32_t plugin_paths_count;
  uint32_t check_threads;        /* TN_CHECK_* */
  const tn_allocator* allocator; /* null: the system's. Copied. */
  /* Lines for a log. level: 0 debug, 1 info, 2 warning, 3 error. Null: none. Any thread. */
  void (*log)(void* user, int32_t level, const char* message);
  void* log_user;
} tn_host_options;

/* options may be null. Reads the notes of the plugins found; loads none. A broken plugin file is no failure: it is
 * listed with the reason. */
TENON_API tn_status tn_host_create(const tn_host_options* options, tn_host** host, tn_error* error);
/* Frees everything of the host. Null is ignored. */
TENON_API void tn_host_destroy(tn_host* host);

typedef struct tn_host_counters {
  uint32_t size;
  int32_t threads;
  uint64_t bytes_now;        /* through the allocator: held now */
  uint64_t bytes_peak;       /* most ever held */
  uint64_t workers_computed; /* threads that have run at least one task */
} tn_host_counters;
TENON_API tn_status tn_host_count(tn_host* host, tn_host_counters* counters, tn_error* error);

/* JSON array of everything found in the search paths: {file, status: "found" | "loaded" | "refused", reason,
 * manifest}. Runs no plugin code. */
TENON_API tn_status tn_host_plugins(tn_host* host, tn_write write, void* user, tn_error* error);
/* Adds components of the application's own: the same tables as a plugin's, which must outlive the host. */
TENON_API tn_status tn_host_add_plugin(tn_host* host, const struct tn_plugin* plugin, tn_error* error);

/* ---- layers ---------------------------------------------------------------------------------------------------- */

/* A data layer: what is fed under `name`. */
typedef struct tn_data_options {
  uint32_t size;
  tn_dtype dtype; /* as fed; TN_COMPUTE: the machine's compute type */
  const char* name;
  const int64_t* shape; /* of one sample */
  int32_t rank;
  int32_t reserved;
  int64_t index_limit; /* integers are in [0, index_limit); -1: not known */
  double scale;        /* integers that flow into a float port, moved before or not, become scale * x + offset; 0: 1 */
  double offset;
  int32_t storage; /* TN_DENSE (0); TN_RAGGED: a sample is a sequence of rows of `shape`; TN_CSR: a vector of shape[0]
                      numbers of which most are 0, dtype TN_F32 */
  uint32_t levels; /* TN_RAGGED: 1 (also 0) or 2, sequences of sequences */
  /* TN_RAGGED: data layers that give the same `sequence` have sequences of equal length in every sample, and their rows
   * can be combined. Null: the layer's own name. */
  const char* sequence;
} tn_data_options;
TENON_API tn_status tn_data_create(tn_host* host, const tn_data_options* options, tn_layer* layer, tn_error* error);

typedef struct tn_layer_options {
  uint32_t size;
  uint32_t inputs_count;
  const char* type;
  const char* name; /* null: generated */
  const tn_layer* inputs;
  const tn_named_value* attributes; /* the type's own and the host's: parameter_name, act, ... */
  uint32_t attributes_count;
  uint32_t reserved;
} tn_layer_options;
/* Makes a layer; loads the plugin of its type. All errors of shape and attribute are reported here. */
TENON_API tn_status tn_layer_create(tn_host* host, const tn_layer_options* options, tn_layer* layer, tn_error* error);
/* JSON: {name, type, role: "layer" | "cost" | "metric", inputs, attributes, shape, dtype, parameters}. */
TENON_API tn_status tn_layer_describe(tn_host* host, tn_layer layer, tn_write write, void* user, tn_error* error);
/* Another output of a layer that has several, counted from 0: a handle that is used like a layer's. */
TENON_API tn_status tn_layer_output(tn_host* host, tn_layer layer, uint32_t number, tn_layer* output, tn_error* error);
/* The handle becomes stale; the layer lives on inside the layers, sets and machines that use it. */
TENON_API tn_status tn_layer_release(tn_host* host, tn_layer layer, tn_error* error);

/* ---- parameters and model files -------------------------------------------------------------------------------- */

/* Derives, checks and initialises the parameters of the given outputs. */
TENON_API tn_status tn_parameters_create(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, uint64_t seed,
                                         tn_parameters* parameters, tn_error* error);
/* The same parameters without values, and without the memory for them, to plan with: a machine on such a set asks for
 * no memory and has a plan alone. Whatever needs values is TN_MISUSE. */
TENON_API tn_status tn_parameters_declare(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                                          tn_parameters* parameters, tn_error* error);
/* JSON array of {name, shape, dtype, kind: "parameter" | "buffer"} in a fixed order. */
TENON_API tn_status tn_parameters_describe(tn_host* host, tn_parameters parameters, tn_write write, void* user,
                                           tn_error* error);
/* A view of the values, borrowed until the set is trained, changed or released. */
TENON_API tn_status tn_parameters_get(tn_host* host, tn_parameters parameters, const char* name, tn_array* values,
                                      tn_error* error);
/* Copies values in; shape and dtype must match. */
TENON_API tn_status tn_parameters_set(tn_host* host, tn_parameters parameters, const char* name, const tn_array* values,
                                      tn_error* error);
/* What the integers of data layers stand for: classes, categories, words. tn_train keeps the names of the slots that it
 * was given, model files hold them, and tn_train, tn_test and tn_infer refuse with TN_INVALID a reader whose names have
 * other numbers. More than 65,536 names, or 1 MiB of them, are known by count and digest alone. `slot` of each list is
 * the data layer. Borrowed until the next call of tn_parameters_names or tn_reader_names on this host. */
TENON_API tn_status tn_parameters_names(tn_host* host, tn_parameters parameters, const tn_names* const** names,
                                        uint32_t* count, tn_error* error);
/* Replaces the names of these data layers, as after a training without tn_train; a count of 0 forgets them. */
TENON_API tn_status tn_parameters_set_names(tn_host* host, tn_parameters parameters, const tn_names* const* names,
                                            uint32_t count, tn_error* error);
TENON_API tn_status tn_parameters_release(tn_host* host, tn_parameters parameters, tn_error* error);

/* Writes topology and parameters as one safetensors file: to a temporary name, synced, then renamed. */
TENON_API tn_status tn_model_save(tn_host* host, tn_parameters parameters, const tn_layer* outputs,
                                  uint32_t outputs_count, const char* path, tn_error* error);
/* Rebuilds the outputs and their parameters. *outputs_count: room on entry, number of outputs on return;
 * TN_NEED_CAPACITY when the room is too small. */
TENON_API tn_status tn_model_load(tn_host* host, const char* path, tn_layer* outputs, uint32_t* outputs_count,
                                  tn_parameters* parameters, tn_error* error);
/* JSON: {verified, topology, tensors: [{name, dtype, shape, bytes}], metadata}. Loads no plugin. */
TENON_API tn_status tn_model_describe(tn_host* host, const char* path, tn_write write, void* user, tn_error* error);

typedef struct tn_metric {
  const char* name; /* "<layer>.<value>", or the value's name alone where it is unique */
  double value;
} tn_metric;

/* ---- gradient machine ------------------------------------------------------------------------------------------ */

typedef struct tn_machine_options {
  uint32_t size;
  tn_dtype compute;    /* TN_F32 (also 0) or TN_F64; F64 computes on a copy converted from the set at each forward */
  int64_t max_samples; /* bound of the minibatch; must be at least 1 */
  uint32_t training;   /* 1: backward is possible */
  uint32_t keep_all;   /* 1: every layer's output can be read; else outputs, costs and metrics only */
  const char* device;  /* null: "cpu" */
  /* Of random numbers inside the model, such as what dropout drops. They follow from this seed and from the number of
   * updates that the parameters had, by whatever machine and in whatever training, so they differ in every step of all
   * trainings of one tn_parameters. Where `training` is 0 they are those of no update, in every forward. */
  uint64_t seed;
  /* Parameters that get no gradient, and buffers that keep their values: a name means itself and everything below it
   * ("D": "D", "D.weight"). Nothing is computed that would serve them alone. */
  const char* const* immutable_parameters;
  uint32_t immutable_parameters_count;
  uint32_t reserved;
  /* Bound of the rows that one ragged data layer (entries that a TN_CSR one) has in a minibatch. 0: the machine begins
   * with a few for each sample, and plans anew with twice as many when a minibatch has more. */
  int64_t max_rows;
} tn_machine_options;

/* One data layer's minibatch: shape [samples, shape of a sample...]. */
typedef struct tn_feed {
  const char* name;
  tn_array values;
} tn_feed;

TENON_API tn_status tn_machine_create(tn_host* host, tn_parameters parameters, const tn_layer* outputs,
                                      uint32_t outputs_count, const tn_machine_options* options, tn_machine* machine,
                                      tn_error* error);
/* Runs the topology on a minibatch. The feeds are copied. All feeds must have the same number of samples, at most
 * max_samples; 0 is allowed and computes nothing. */
TENON_API tn_status tn_machine_forward(tn_host* host, tn_machine machine, const tn_feed* feeds, uint32_t feeds_count,
                                       tn_error* error);
/* Adds the gradients of the summed costs (mean over samples each) to those since the last update. Once after each
 * forward, whose inner values it overwrites; what is kept stays readable. */
TENON_API tn_status tn_machine_backward(tn_host* host, tn_machine machine, tn_error* error);
/* A layer's output of the last forward, borrowed until the next call on this machine. */
TENON_API tn_status tn_machine_output(tn_host* host, tn_machine machine, tn_layer layer, tn_array* values,
                                      tn_error* error);
/* A parameter's gradient since the last update, borrowed until the next call on this machine. */
TENON_API tn_status tn_machine_gradient(tn_host* host, tn_machine machine, const char* parameter, tn_array* values,
                                        tn_error* error);
/* The gradient of a parameter that has it as rows, as a layer's table has of which few rows are read: the numbers of
 * the rows that have one, int64 [n] in no order, and their gradients [n, shape of a row...]; all other rows have none.
 * tn_machine_gradient gives the whole one of such a parameter, as a copy that the machine makes at each call.
 * TN_INVALID where the parameter's gradient is dense. Borrowed like tn_machine_gradient's. */
TENON_API tn_status tn_machine_gradient_rows(tn_host* host, tn_machine machine, const char* parameter, tn_array* ids,
                                             tn_array* values, tn_error* error);
/* Mean cost of the last forward, summed over the cost outputs; 0 where there is none. */
TENON_API tn_status tn_machine_cost(tn_host* host, tn_machine machine, double* cost, tn_error* error);
/* Values of the machine's metrics over the last forward, borrowed until the next call of tn_machine_metrics or tn_test
 * on this host. */
TENON_API tn_status tn_machine_metrics(tn_host* host, tn_machine machine, const tn_metric** metrics, uint32_t* count,
                                       tn_error* error);
/* JSON: the call array with layers, groups and bytes; see docs/plan.md. */
TENON_API tn_status tn_machine_plan(tn_host* host, tn_machine machine, tn_write write, void* user, tn_error* error);
TENON_API tn_status tn_machine_release(tn_host* host, tn_machine machine, tn_error* error);

/* ---- updater --------------------------------------------------------------------------------------------------- */

TENON_API tn_status tn_updater_create(tn_host* host, const char* type, const tn_named_value* attributes,
                                      uint32_t attributes_count, tn_updater* updater, tn_error* error);
/* Changes the machine's parameters by its gradients and begins new gradients. Slots belong to the pair of updater
 * and ParameterSet. */
TENON_API tn_status tn_updater_update(tn_host* host, tn_updater updater, tn_machine machine, tn_error* error);
/* The same for the parameters alone that the model of `output` uses; the other gradients are dropped. */
TENON_API tn_status tn_updater_update_model(tn_host* host, tn_updater updater, tn_machine machine, tn_layer output,
                                            tn_error* error);
TENON_API tn_status tn_updater_set_learning_rate(tn_host* host, tn_updater updater, double learning_rate,
                                                 tn_error* error);
/* JSON: {type, learning_rate, slot_bytes, workspace_bytes, last_update: {rows, bytes_written}}: what the updater keeps
 * for these parameters: slots from its first update on, and the workspace that it holds at present; and what its last
 * update of them wrote: rows, where gradients are of rows, and bytes of parameters and slots. */
TENON_API tn_status tn_updater_describe(tn_host* host, tn_updater updater, tn_parameters parameters, tn_write write,
                                        void* user, tn_error* error);
TENON_API tn_status tn_updater_release(tn_host* host, tn_updater updater, tn_error* error);

/* ---- readers --------------------------------------------------------------------------------------------------- */

typedef struct tn_reader_options {
  uint32_t size;
  uint32_t attributes_count;
  const char* type;
  const tn_named_value* attributes;
  const char* directory;  /* what relative paths start from; null: the working directory */
  uint32_t shard, shards; /* shards 0: 1 */
  /* Names that the integers of slots must stand for, such as tn_parameters_names or another reader's tn_reader_names
   * tell, with `slot` being this reader's. A reader that numbers what it finds gives each name its number in these
   * lists; one that finds other names, or numbers them otherwise, fails. Of slots that it lacks they do not matter. */
  const tn_names* const* names;
  uint32_t names_count;
  uint32_t reserved;
} tn_reader_options;
TENON_API tn_status tn_reader_create(tn_host* host, const tn_reader_options* options, tn_reader* reader,
                                     tn_error* error);

/* A reader of the application's own. Its functions are called one at a time, but on a thread of the host's where
 * tn_reader_buffered is above it; they must not call this host. They lend samples in `values`, one array for each slot:
 * data, offsets and ids are theirs to set, and shape[0], the number of rows, where the slot is TN_RAGGED. The host sets
 * the rest, and copies what is lent before it calls again. A failure is a status, and why in *error. */
typedef struct tn_source_options {
  uint32_t size;
  uint32_t slots_count;
  const tn_slot* const* slots; /* copied */
  int64_t samples;             /* in a pass; -1: not known, or there is no end */
  void* user;
  /* The next samples of the pass, at most `most`; *count says how many, 0 once at the end of each pass. May be null
   * where read_at is not. */
  tn_status (*next)(void* user, int64_t most, tn_array* values, int64_t* count, tn_error* error);
  /* Samples by index, in the order given; or null. `samples` must be known. */
  tn_status (*read_at)(void* user, const int64_t* indices, int64_t count, tn_array* values, tn_error* error);
  /* Makes `position` the next sample of pass number `pass`; null: it cannot, unless there is no `next` either. */
  tn_status (*seek)(void* user, int64_t pass, int64_t position, tn_error* error);
  /* When the reader goes; or null. Not called where tn_reader_create_from fails. */
  void (*release)(void* user);
} tn_source_options;
TENON_API tn_status tn_reader_create_from(tn_host* host, const tn_source_options* options, tn_reader* reader,
                                          tn_error* error);

/* Wrappers. Each consumes the readers it is put around, whose handles become stale, and makes a new one; when it fails,
 * they are as they were. A reader yields samples until batch or bucket cut it into minibatches: map and choose take
 * either, buffered minibatches, all others samples. All but map, choose, batch and buffered begin with the first sample
 * of a pass: a reader that has given some of one is TN_MISUSE.
 *
 * shuffle: a new order in every pass, from the seed and the pass alone; an exact permutation where the reader can
 * read by index, else a buffer of `buffer` samples. buffer 0: the whole shard. */
TENON_API tn_status tn_reader_shuffle(tn_host* host, tn_reader of, int64_t buffer, uint64_t seed, tn_reader* reader,
                                      tn_error* error);
/* The first `samples` samples of each pass. */
TENON_API tn_status tn_reader_first_n(tn_host* host, tn_reader of, int64_t samples, tn_reader* reader, tn_error* error);
/* The samples i of each pass with i % shards == shard. A reader that cannot read by index is read whole. */
TENON_API tn_status tn_reader_shard(tn_host* host, tn_reader of, int64_t shard, int64_t shards, tn_reader* reader,
                                    tn_error* error);
/* One reader after the other. All must have the same slots. */
TENON_API tn_status tn_reader_chain(tn_host* host, const tn_reader* of, uint32_t of_count, tn_reader* reader,
                                    tn_error* error);
/* One sample of each reader in turn, of those that are not over. All must have the same slots. */
TENON_API tn_status tn_reader_interleave(tn_host* host, const tn_reader* of, uint32_t of_count, tn_reader* reader,
                                         tn_error* error);
/* The slots of all readers side by side: sample i has those of sample i of each. Names of slots must differ. Readers
 * that do not have equally many samples are TN_INVALID where that is known, else TN_BAD_DATA when the first one ends.
 */
TENON_API tn_status tn_reader_compose(tn_host* host, const tn_reader* of, uint32_t of_count, tn_reader* reader,
                                      tn_error* error);
/* The slots named, in this order, each under names[i]; names null: under their own. */
TENON_API tn_status tn_reader_choose(tn_host* host, tn_reader of, const char* const* slots, const char* const* names,
                                     uint32_t slots_count, tn_reader* reader, tn_error* error);

/* Samples made from samples by a function of the application's, under the rules of tn_source_options. */
typedef struct tn_map_options {
  uint32_t size;
  uint32_t slots_count;
  const tn_slot* const* slots; /* of what it makes; copied */
  void* user;
  /* Makes one sample of each: outputs[i] of inputs. Gets whole minibatches where it stands after batch or bucket, else
   * any number of samples. An output may lend what an input does. Called again with the same after a failure. */
  tn_status (*map)(void* user, const tn_array* inputs, uint32_t inputs_count, int64_t samples, tn_array* outputs,
                   uint32_t outputs_count, tn_error* error);
  void (*release)(void* user); /* as in tn_source_options */
} tn_map_options;
TENON_API tn_status tn_reader_map(tn_host* host, tn_reader of, const tn_map_options* options, tn_reader* reader,
                                  tn_error* error);

/* Minibatches of `samples`; the short last one is kept unless drop_last. */
TENON_API tn_status tn_reader_batch(tn_host* host, tn_reader of, int64_t samples, int32_t drop_last, tn_reader* reader,
                                    tn_error* error);
/* Minibatches of samples of similar length: sorts each `window` of samples by the rows or entries that they have in
 * `slot`, cuts that into minibatches, and gives these in an order that follows from seed, pass and window alone. At
 * least one of the bounds must be set. A sample counts as one row at least; one with more than `rows` is a minibatch of
 * its own. */
typedef struct tn_bucket_options {
  uint32_t size;
  uint32_t reserved;
  const char* slot; /* TN_RAGGED or TN_CSR */
  int64_t window;
  int64_t samples; /* the most in a minibatch; 0: no bound */
  int64_t rows;    /* likewise the sum of the rows in `slot` */
  uint64_t seed;
} tn_bucket_options;
TENON_API tn_status tn_reader_bucket(tn_host* host, tn_reader of, const tn_bucket_options* options, tn_reader* reader,
                                     tn_error* error);
/* Reads up to `minibatches` of them ahead, on a thread of the host's that begins with the first call and ends with the
 * reader. A failure comes in its place, after what was read before it. */
TENON_API tn_status tn_reader_buffered(tn_host* host, tn_reader of, int64_t minibatches, tn_reader* reader,
                                       tn_error* error);

/* JSON: {samples, batch, slots: [{name, dtype, shape, index_limit, storage: "dense" | "ragged" | "csr", levels}]}.
 * samples: in a pass, -1 where not known; batch: the most samples in a minibatch, 0 for a reader of samples; shape: of
 * one sample, of one row where storage is ragged. */
TENON_API tn_status tn_reader_describe(tn_host* host, tn_reader reader, tn_write write, void* user, tn_error* error);
/* The names of those slots whose integers stand for something, as far as the reader knows. Borrowed like those of
 * tn_parameters_names. */
TENON_API tn_status tn_reader_names(tn_host* host, tn_reader reader, const tn_names* const** names, uint32_t* count,
                                    tn_error* error);
TENON_API tn_status tn_reader_slots_count(tn_host* host, tn_reader reader, uint32_t* count, tn_error* error);
/* The next minibatch (one sample where nothing has cut it into minibatches): values[i] is slot i, borrowed until the
 * next call on this reader. TN_END after the last of a pass; the call after that begins the next pass. */
TENON_API tn_status tn_reader_next(tn_host* host, tn_reader reader, tn_array* values, uint32_t values_count,
                                   tn_error* error);
/* Where the reader is: the number of the pass, from 0, and the samples of it that it gave, or passed over because they
 * are damaged: reading such a one fails once with TN_BAD_DATA. */
TENON_API tn_status tn_reader_position(tn_host* host, tn_reader reader, int64_t* pass, int64_t* position,
                                       tn_error* error);
/* Goes on from there, with the samples that would have come next. TN_UNSUPPORTED where the data cannot be gone back to,
 * such as a stream. */
TENON_API tn_status tn_reader_seek(tn_host* host, tn_reader reader, int64_t pass, int64_t position, tn_error* error);
TENON_API tn_status tn_reader_release(tn_host* host, tn_reader reader, tn_error* error);

/* ---- training, testing, inference ------------------------------------------------------------------------------ */

enum {
  TN_BEGIN_TRAINING = 0,
  TN_END_TRAINING = 1,
  TN_BEGIN_PASS = 2,
  TN_END_PASS = 3, /* exactly when the reader ends a pass */
  TN_BEGIN_ITERATION = 4,
  TN_END_ITERATION = 5
};

/* What a handler is told; borrowed during the handler. END_ITERATION: cost and metrics of the minibatch. END_PASS and
 * END_TRAINING: of the last pass. A handler may write learning_rate and stop. */
typedef struct tn_event {
  uint32_t size;
  int32_t kind;
  int64_t pass;    /* from 0 */
  int64_t batch;   /* from 0 within the pass */
  int64_t samples; /* in this minibatch, or in this pass so far */
  double cost;     /* mean over samples */
  const tn_metric* metrics;
  uint32_t metrics_count;
  int32_t stop;          /* set to 1: training ends after this event */
  double seconds;        /* since the pass began */
  double learning_rate;  /* before the schedule */
  double scheduled_rate; /* after it: what the last update used; before the first one, what it will use */
} tn_event;
typedef void (*tn_event_handler)(void* user, tn_event* event);

/* Which data layer a slot feeds, where the names differ. */
typedef struct tn_feeding {
  const char* slot;
  const char* data_layer;
} tn_feeding;

typedef struct tn_train_options {
  uint32_t size;
  uint32_t outputs_count;
  const tn_layer* outputs; /* costs, metrics, and any layer to compute beside them */
  tn_parameters parameters;
  tn_updater updater; /* train only */
  tn_reader reader;   /* of minibatches */
  const tn_feeding* feeding;
  uint32_t feeding_count;
  uint32_t immutable_parameters_count;
  int64_t passes;           /* train only */
  uint64_t seed;            /* of random numbers inside the model: as in tn_machine_options */
  tn_event_handler handler; /* or null */
  void* user;
  const char* device;                      /* null: "cpu" */
  const char* const* immutable_parameters; /* train only: as in tn_machine_options */
} tn_train_options;

typedef struct tn_test_result {
  uint32_t size;
  uint32_t metrics_count;
  double cost;
  int64_t samples;
  double seconds;
  const tn_metric* metrics; /* borrowed until the next tn_test or tn_machine_metrics on this host */
} tn_test_result;

/* Trains for `passes` passes of the reader, or until a handler stops it. On failure the parameters are those of
 * the last finished update. */
TENON_API tn_status tn_train(tn_host* host, const tn_train_options* options, tn_error* error);
/* One pass without change to anything. Like tn_train and tn_infer it begins with the first sample: a pass that was left
 * in the middle is begun anew, where the reader can go back. */
TENON_API tn_status tn_test(tn_host* host, const tn_train_options* options, tn_test_result* result, tn_error* error);
/* One pass of the reader; `sink` gets the outputs of each minibatch (one array per output, borrowed during the call)
 * and ends the pass early by returning non-zero. */
TENON_API tn_status tn_infer(tn_host* host, const tn_train_options* options,
                             int32_t (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count), void* user,
                             tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
