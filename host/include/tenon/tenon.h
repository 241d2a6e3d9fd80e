/* Tenon: the public API in C99. SPDX-License-Identifier: Apache-2.0
 *
 * A tn_host owns all state; a process may hold any number of hosts. All other objects are handles {index,
 * generation}: a stale handle, or a handle of another host, returns TN_MISUSE. Calls on one host may come from any
 * thread and are serialised by the host; an event handler may call back into its own host. In a child process after
 * fork() every call on the host returns TN_MISUSE.
 *
 * Every call returns a tn_status. A call that fails fills *error (if not null) and changes nothing: all handles stay
 * usable. No call prints, aborts or exits. Returned pointers are borrowed until the moment that the call states. */
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

/* The caller's buffer for a failure. Set size before the call. A failure fills the members that lie within size. All
 * texts are NUL-terminated, and cut at the end if longer. */
typedef struct tn_error {
  uint32_t size;
  tn_status code;
  char message[4088]; /* complete by itself: it names component and subject, too */
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
} tn_layer; /* one output of a layer (an expression) */
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
 *   TN_DENSE    data of `shape`; shape[0] is the number of samples where the array holds samples
 *   TN_RAGGED   concatenated sequences: data of `shape`, shape[0] rows in all; sample i has rows [offsets[0][i],
 *               offsets[0][i + 1]). With two levels offsets[0] counts inner sequences instead, and inner sequence j
 *               has rows [offsets[1][j], offsets[1][j + 1]). offsets[0][0] and offsets[1][0] are 0.
 *   TN_CSR      shape is {samples, width}; sample i has the entries from offsets[0][i] to offsets[0][i + 1], each a
 *               column in `ids` and a float in `data`; data null: all are 1 */
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
} tn_array;

/* ---- library --------------------------------------------------------------------------------------------------- */

TENON_API const char* tn_version(void);
/* A short text such as "not found"; "unknown status" for a number that is not a tn_status. */
TENON_API const char* tn_status_text(tn_status status);

/* ---- host ------------------------------------------------------------------------------------------------------ */

/* Allocates the memory of tensors, parameters and arenas, all of it. Called from any thread. */
typedef struct tn_allocator {
  uint32_t size;
  uint32_t reserved;
  void* self;
  void* (*allocate)(void* self, uint64_t bytes, uint64_t alignment); /* null: out of memory */
  void (*release)(void* self, void* memory, uint64_t bytes);
} tn_allocator;

/* Checking of the plugin interface's thread tags: the thread a plugin calls each function from, and use of an object
 * after its release. A violation ends the call with TN_PLUGIN_FAULT and names component and function. A plugin
 * function that calls the host, and by that plugin code again, gets TN_MISUSE. For authors and tests of plugins: the
 * check takes a lock and some memory at each call of a plugin. */
enum {
  TN_CHECK_DEFAULT = 0, /* on if the library was built without NDEBUG */
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
  const tn_allocator* allocator; /* null: the system's. The struct is copied. */
  /* Receives log lines, from any thread; null: no log. level: 0 debug, 1 info, 2 warning, 3 error. */
  void (*log)(void* user, int32_t level, const char* message);
  void* log_user;
} tn_host_options;

/* options may be null. Reads the notes of the plugins found; loads none. A broken plugin file does not fail the call:
 * tn_host_plugins lists it with the reason. */
TENON_API tn_status tn_host_create(const tn_host_options* options, tn_host** host, tn_error* error);
/* Frees everything of the host. Null is ignored. */
TENON_API void tn_host_destroy(tn_host* host);

typedef struct tn_host_counters {
  uint32_t size;
  int32_t threads;
  uint64_t bytes_now;        /* allocated at present through the allocator */
  uint64_t bytes_peak;       /* the largest value of bytes_now so far */
  uint64_t workers_computed; /* threads that have run at least one task */
} tn_host_counters;
TENON_API tn_status tn_host_count(tn_host* host, tn_host_counters* counters, tn_error* error);

/* JSON array of everything found in the search paths: {file, status: "found" | "loaded" | "refused", reason,
 * manifest}. Runs no plugin code. */
TENON_API tn_status tn_host_plugins(tn_host* host, tn_write write, void* user, tn_error* error);
/* JSON of a type that a plugin offers. kind: "layer", "updater" or "reader". {type, doc, attributes: [{name, doc, kind,
 * required, initial, minimum, maximum, choices}]}, where `kind` is a TN_ATTR_* and the last four are left out where
 * there are none; of layers also {role: "layer" | "cost" | "metric", inputs: [{name, doc, flags}], outputs,
 * parameters}; of layers and updaters {host_attributes: [name]}, which the host gives each of them. Runs no plugin
 * code. */
TENON_API tn_status tn_type_describe(tn_host* host, const char* kind, const char* type, tn_write write, void* user,
                                     tn_error* error);
/* Registers components of the application, in the tables that a plugin has. The tables must outlive the host. */
TENON_API tn_status tn_host_add_plugin(tn_host* host, const struct tn_plugin* plugin, tn_error* error);

/* ---- layers ---------------------------------------------------------------------------------------------------- */

/* A data layer: an input of the model, fed under `name`. */
typedef struct tn_data_options {
  uint32_t size;
  tn_dtype dtype; /* as fed; TN_COMPUTE: the machine's compute type */
  const char* name;
  const int64_t* shape; /* of one sample */
  int32_t rank;
  int32_t reserved;
  int64_t index_limit; /* integers are in [0, index_limit); -1 if unknown */
  double scale;        /* integers become scale * x + offset at a float port, also after a move (slice, ...); 0: 1 */
  double offset;
  int32_t storage; /* TN_DENSE (0); TN_RAGGED: a sample is a sequence of rows of `shape`; TN_CSR: a sparse vector of
                      shape[0] numbers, dtype TN_F32 */
  uint32_t levels; /* TN_RAGGED: 1 (also 0) or 2, sequences of sequences */
  /* TN_RAGGED: data layers with the same `sequence` have sequences of equal length in every sample, so that layers can
   * combine their rows. Null: the layer's own name. */
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
/* Makes a layer; loads the plugin of its type. Reports all errors of shapes and attributes. */
TENON_API tn_status tn_layer_create(tn_host* host, const tn_layer_options* options, tn_layer* layer, tn_error* error);
/* JSON: {name, type, role: "layer" | "cost" | "metric", inputs, attributes, shape, dtype, parameters}. */
TENON_API tn_status tn_layer_describe(tn_host* host, tn_layer layer, tn_write write, void* user, tn_error* error);
/* Output `number`, from 0, of a layer with several outputs, as a handle for use like that of a layer. */
TENON_API tn_status tn_layer_output(tn_host* host, tn_layer layer, uint32_t number, tn_layer* output, tn_error* error);
/* Makes the handle stale. Layers, sets and machines that use the layer keep it alive. */
TENON_API tn_status tn_layer_release(tn_host* host, tn_layer layer, tn_error* error);

/* ---- parameters and model files -------------------------------------------------------------------------------- */

/* Derives, checks and initialises the parameters of the given outputs. */
TENON_API tn_status tn_parameters_create(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, uint64_t seed,
                                         tn_parameters* parameters, tn_error* error);
/* The same parameters without values and without memory, for planning: a machine on such a set allocates nothing and
 * offers only its plan. Calls that need values return TN_MISUSE. */
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
/* The names of the integers of data layers: classes, categories, words. tn_train stores the names of the reader's slots
 * and model files hold them; tn_train, tn_test and tn_infer refuse a reader that numbers its names differently, with
 * TN_INVALID. Of more than 65,536 names or 1 MiB only count and digest are stored. `slot` of each list is the data
 * layer. Borrowed until the next call of tn_parameters_names or tn_reader_names on this host. */
TENON_API tn_status tn_parameters_names(tn_host* host, tn_parameters parameters, const tn_names* const** names,
                                        uint32_t* count, tn_error* error);
/* Replaces the names of these data layers, for a training without tn_train; a count of 0 removes them. */
TENON_API tn_status tn_parameters_set_names(tn_host* host, tn_parameters parameters, const tn_names* const* names,
                                            uint32_t count, tn_error* error);
TENON_API tn_status tn_parameters_release(tn_host* host, tn_parameters parameters, tn_error* error);

/* Writes topology and parameters as one safetensors file: to a temporary name, synced, then renamed. */
TENON_API tn_status tn_model_save(tn_host* host, tn_parameters parameters, const tn_layer* outputs,
                                  uint32_t outputs_count, const char* path, tn_error* error);
/* Rebuilds the outputs and their parameters. *outputs_count: capacity on entry, number of outputs on return;
 * TN_NEED_CAPACITY if the capacity is too small. */
TENON_API tn_status tn_model_load(tn_host* host, const char* path, tn_layer* outputs, uint32_t* outputs_count,
                                  tn_parameters* parameters, tn_error* error);
/* JSON: {verified, topology, tensors: [{name, dtype, shape, bytes}], metadata}. Loads no plugin. */
TENON_API tn_status tn_model_describe(tn_host* host, const char* path, tn_write write, void* user, tn_error* error);

typedef struct tn_metric {
  const char* name; /* "<layer>.<value>", or the value's name alone if that is unique */
  double value;
} tn_metric;

/* ---- gradient machine ------------------------------------------------------------------------------------------ */

typedef struct tn_machine_options {
  uint32_t size;
  tn_dtype compute;    /* TN_F32 (also 0) or TN_F64; F64 computes on a copy converted from the set at each forward */
  int64_t max_samples; /* bound of the minibatch; must be at least 1 */
  uint32_t training;   /* 1: enables backward */
  uint32_t keep_all;   /* 1: keeps every layer's output readable; 0: only outputs, costs and metrics */
  const char* device;  /* null: "cpu" */
  /* Seed of random numbers inside the model, such as dropout masks. Numbers depend on this seed and on the number of
   * updates of the parameters so far, over all machines and trainings, so each step of all trainings of one
   * tn_parameters draws others. With `training` 0 every forward draws those of update number 0. */
  uint64_t seed;
  /* Parameters without gradient and buffers that keep their values: a name includes everything below it
   * ("D": "D", "D.weight"). Work that only they need is not computed. */
  const char* const* immutable_parameters;
  uint32_t immutable_parameters_count;
  uint32_t reserved;
  /* Upper bound of the rows of one ragged data layer (entries of a TN_CSR one) in a minibatch. 0: the machine starts
   * with a few rows per sample and plans again with twice as many when a minibatch has more. */
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
/* Adds the gradients of the sum of the costs (each a mean over samples) to those since the last update. Allowed once
 * after each forward; overwrites that forward's inner values. Kept values stay readable. */
TENON_API tn_status tn_machine_backward(tn_host* host, tn_machine machine, tn_error* error);
/* A layer's output of the last forward, borrowed until the next call on this machine. */
TENON_API tn_status tn_machine_output(tn_host* host, tn_machine machine, tn_layer layer, tn_array* values,
                                      tn_error* error);
/* A parameter's gradient since the last update, borrowed until the next call on this machine. */
TENON_API tn_status tn_machine_gradient(tn_host* host, tn_machine machine, const char* parameter, tn_array* values,
                                        tn_error* error);
/* The row-sparse gradient of a parameter, such as an embedding table: the numbers of the rows with a gradient, int64
 * [n] in no order, and their gradients [n, shape of a row...]. The gradient of all other rows is 0. For such a
 * parameter tn_machine_gradient returns the dense gradient, as a copy that the machine makes at each call.
 * TN_INVALID if the parameter's gradient is dense. Borrowed like tn_machine_gradient's. */
TENON_API tn_status tn_machine_gradient_rows(tn_host* host, tn_machine machine, const char* parameter, tn_array* ids,
                                             tn_array* values, tn_error* error);
/* Mean cost of the last forward, summed over the cost outputs; 0 without a cost. */
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
/* Updates the machine's parameters from its gradients and resets the gradients. The updater's slots (its state) belong
 * to the pair of updater and ParameterSet. */
TENON_API tn_status tn_updater_update(tn_host* host, tn_updater updater, tn_machine machine, tn_error* error);
/* Updates only the parameters that `output` depends on; drops the other gradients. */
TENON_API tn_status tn_updater_update_model(tn_host* host, tn_updater updater, tn_machine machine, tn_layer output,
                                            tn_error* error);
TENON_API tn_status tn_updater_set_learning_rate(tn_host* host, tn_updater updater, double learning_rate,
                                                 tn_error* error);
/* JSON: {type, learning_rate, slot_bytes, workspace_bytes, last_update: {rows, bytes_written}}, all for these
 * parameters: slot_bytes is 0 before the first update; workspace_bytes is the workspace at present; last_update counts
 * the rows written by row-sparse gradients, and the bytes of parameters and slots written. */
TENON_API tn_status tn_updater_describe(tn_host* host, tn_updater updater, tn_parameters parameters, tn_write write,
                                        void* user, tn_error* error);
TENON_API tn_status tn_updater_release(tn_host* host, tn_updater updater, tn_error* error);

/* ---- readers --------------------------------------------------------------------------------------------------- */

typedef struct tn_reader_options {
  uint32_t size;
  uint32_t attributes_count;
  const char* type;
  const tn_named_value* attributes;
  const char* directory;  /* base of relative paths; null: the working directory */
  uint32_t shard, shards; /* shards 0: 1 */
  /* Required names of the integers of slots, for example from tn_parameters_names or another reader's tn_reader_names;
   * `slot` is a slot of this reader. A reader that numbers the names it finds uses the numbers of these lists; a reader
   * that finds other names, or must number them differently, fails. Lists for slots that it lacks are ignored. */
  const tn_names* const* names;
  uint32_t names_count;
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
 * accept both, buffered accepts minibatches, all others samples. All but map, choose, batch and buffered start at the
 * first sample of a pass: a reader in the middle of a pass is TN_MISUSE.
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
/* Minibatches of samples of similar length: sorts each `window` of samples by their number of rows or entries in
 * `slot`, splits the window into minibatches, and yields these in an order determined by seed, pass and window. At
 * least one of the two bounds must be set. A sample counts as at least one row; a sample of more than `rows` rows is a
 * minibatch of its own. */
typedef struct tn_bucket_options {
  uint32_t size;
  uint32_t reserved;
  const char* slot; /* TN_RAGGED or TN_CSR */
  int64_t window;
  int64_t samples; /* the most in a minibatch; 0: no bound */
  int64_t rows;    /* the most rows of `slot` in a minibatch; 0: no bound */
  uint64_t seed;
} tn_bucket_options;
TENON_API tn_status tn_reader_bucket(tn_host* host, tn_reader of, const tn_bucket_options* options, tn_reader* reader,
                                     tn_error* error);
/* Reads up to `minibatches` minibatches ahead, on a host thread that starts at the first call and ends with the
 * reader. A failure is reported at its position, after the minibatches before it. */
TENON_API tn_status tn_reader_buffered(tn_host* host, tn_reader of, int64_t minibatches, tn_reader* reader,
                                       tn_error* error);

/* JSON: {samples, batch, slots: [{name, dtype, shape, index_limit, storage: "dense" | "ragged" | "csr", levels}]}.
 * samples: in a pass, -1 if unknown; batch: the most samples in a minibatch, 0 for a reader of samples; shape: of one
 * sample, or of one row if storage is ragged. */
TENON_API tn_status tn_reader_describe(tn_host* host, tn_reader reader, tn_write write, void* user, tn_error* error);
/* The names of the integers of slots, for the slots whose names the reader knows. Borrowed like those of
 * tn_parameters_names. */
TENON_API tn_status tn_reader_names(tn_host* host, tn_reader reader, const tn_names* const** names, uint32_t* count,
                                    tn_error* error);
TENON_API tn_status tn_reader_slots_count(tn_host* host, tn_reader reader, uint32_t* count, tn_error* error);
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

/* The argument of a handler, borrowed during the handler. END_ITERATION: cost and metrics of the minibatch; END_PASS
 * and END_TRAINING: of the last pass. A handler may write learning_rate and stop. */
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
  double scheduled_rate; /* after it: the rate of the last update, or of the first one before that */
} tn_event;
typedef void (*tn_event_handler)(void* user, tn_event* event);

/* Feeds the data layer from a slot of another name. */
typedef struct tn_feeding {
  const char* slot;
  const char* data_layer;
} tn_feeding;

typedef struct tn_train_options {
  uint32_t size;
  uint32_t outputs_count;
  const tn_layer* outputs; /* costs, metrics, and any other layers to compute */
  tn_parameters parameters;
  tn_updater updater; /* train only */
  tn_reader reader;   /* of minibatches */
  const tn_feeding* feeding;
  uint32_t feeding_count;
  uint32_t immutable_parameters_count;
  int64_t passes;           /* train only */
  uint64_t seed;            /* as in tn_machine_options */
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

/* Trains for `passes` passes of the reader, or until a handler stops it. After a failure the parameters have the
 * values of the last complete update. */
TENON_API tn_status tn_train(tn_host* host, const tn_train_options* options, tn_error* error);
/* Measures cost and metrics over one pass; changes no parameters. Like tn_train and tn_infer it starts with the first
 * sample of a pass: a reader in the middle of a pass seeks back to its start, if it can. */
TENON_API tn_status tn_test(tn_host* host, const tn_train_options* options, tn_test_result* result, tn_error* error);
/* Runs one pass of the reader; `sink` receives the outputs of each minibatch (one array per output, borrowed during the
 * call) and ends the pass early by returning non-zero. */
TENON_API tn_status tn_infer(tn_host* host, const tn_train_options* options,
                             int32_t (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count), void* user,
                             tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
