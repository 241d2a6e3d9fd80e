/* Tenon: the public API in C99. SPDX-License-Identifier: Apache-2.0
 *
 * A tn_host owns all state; a process may hold any number of hosts. All other objects are handles {index,
 * generation}: a stale handle, or a handle of another host, returns TN_MISUSE. Calls on one host may come from any
 * thread and run at the same time (docs/serving.md): a machine, updater or reader takes one call at a time, another is
 * TN_MISUSE; calls that read a set of parameters wait for one that writes it, in a training for the end of its step. An
 * event handler may call back into its own host. In a child process after fork() every call on the host returns
 * TN_MISUSE.
 *
 * Further calls have headers of their own: tenon_topology.h (layers, topologies and sets as data), tenon_scan.h (layers
 * that run at each step of sequences), tenon_machine.h (gradients in and out, inference on arrays), tenon_plugins.h
 * (plugin sets, signatures), tenon_updater.h (states of updaters, steps in parts, metrics over minibatches),
 * tenon_predictor.h and tenon_lease.h (several threads).
 *
 * Every call returns a tn_status. A call that fails fills *error (if not null) and changes nothing: all handles stay
 * usable. No call prints, aborts or exits. Returned pointers are borrowed until the moment that the call states. */
#ifndef TENON_TENON_H
#define TENON_TENON_H

#include <tenon/slot.h>
#include <tenon/tenon_base.h>
#include <tenon/tenon_machine_options.h>
#include <tenon/tenon_reader.h>
#include <tenon/tenon_training.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- library --------------------------------------------------------------------------------------------------- */

TENON_API const char* tn_version(void);
/* The minor version of the API that the library has, TENON_API_MINOR of its headers. Since 0.4. */
TENON_API uint32_t tn_api_minor(void);
/* A short text such as "not found"; "unknown status" for a number that is not a tn_status. */
TENON_API const char* tn_status_text(tn_status status);
/* Writes the call of a plugin that this thread is in to text[size], cut if it is too long and NUL-terminated, such as
 * `layer "mid" (vendor.type, native kernel "k") of plugin "org.vendor": run [run]`; "" if it is in none. A compute
 * thread is in the call whose task it runs. Returns the length of the whole text. Safe in a signal handler, for the
 * message of a crash: the library installs no handler itself. */
TENON_API uint64_t tn_plugin_call(char* text, uint64_t size);

/* Since 0.4. Writes a file as tn_model_save does: to a temporary name beside it, synced, then renamed. A link is
 * followed, and its target replaced. TN_IO if another user may have planted the file or a link on the way to it: in a
 * folder that is sticky and writable by all, such as /tmp, an entry must belong to this user or to the owner of the
 * folder. */
TENON_API tn_status tn_file_replace(const char* path, const void* bytes, uint64_t size, tn_error* error);
/* Since 0.4. Passes to `write` the path that tn_file_replace would replace: the target of a link, else `path` itself.
 * Looks alone, and creates nothing, so that a caller who writes the file in another way keeps the same rule. TN_INVALID
 * if the path names no file; TN_IO as tn_file_replace. */
TENON_API tn_status tn_file_target(const char* path, tn_write write, void* user, tn_error* error);
/* Since 0.4. Returns what would keep tn_file_replace and tn_model_save from writing this file now: creates the
 * temporary file and removes it again. */
TENON_API tn_status tn_file_check(const char* path, tn_error* error);

/* ---- host ------------------------------------------------------------------------------------------------------ */

/* Allocates the memory of tensors, parameters and arenas, all of it. Called from any thread. */
typedef struct tn_allocator {
  uint32_t size;
  uint32_t reserved;
  void* self;
  void* (*allocate)(void* self, uint64_t bytes, uint64_t alignment); /* null: out of memory */
  void (*release)(void* self, void* memory, uint64_t bytes);
} tn_allocator;

/* Checking of plugins, for their authors and tests. Thread tags: the thread a plugin calls each function from, and use
 * of an object after its release. Native kernels: each runs on copies of its operands between guard lines, and must
 * write its results, all of them, and nothing else. A violation ends the call with TN_PLUGIN_FAULT and names component
 * and function or tensor. A plugin function that calls the host, and by that plugin code again, gets TN_MISUSE. The
 * checks take a lock and some memory at each call of a plugin, and copies of all tensors of native kernels. */
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
  uint32_t check;                /* TN_CHECK_* */
  const tn_allocator* allocator; /* null: the system's. The struct is copied. */
  /* Receives log lines, from any thread; null: no log. level: 0 debug, 1 info, 2 warning, 3 error. */
  void (*log)(void* user, int32_t level, const char* message);
  void* log_user;
  uint32_t check_finite; /* 1: every float that is fed or computed in a step must be finite; an error names the layers
                            whose values are not, and the element. For trainings that go wrong; takes time. */
  uint32_t time_calls;   /* 1: machines measure the time of each call, which tn_machine_plan then shows (docs/plan.md);
                            takes some 100 ns for each */
  /* Path of a plugin set, which says which plugins may load (docs/plugin-sets.md); null: all that are found. A set of
   * mode "locked" ignores all paths of this struct; one with `installed = false` the default of plugin_paths. One of
   * mode "allow" refuses what is in added_plugin_paths; plugin_paths are the folders of the installed plugins. */
  const char* plugin_set;
  const char* const* added_plugin_paths; /* folders that are searched before plugin_paths, or before its default; with
                                            a plugin set after them */
  uint32_t added_plugin_paths_count;
  /* Since 0.4, a draft: TN_ARITHMETIC_* (tenon/base.h). 0: providers whose bits are native are not asked. PORTABLE: the
   * same, and a machine with a call whose bits are not known to be portable is TN_UNSUPPORTED, which names the call.
   * NATIVE: all providers are asked, and the bits of a model may follow from the processor. */
  uint32_t arithmetic;
} tn_host_options;

/* options may be null. Reads the notes of the plugins found; loads none. A broken plugin file does not fail the call:
 * tn_host_plugins lists it with the reason. A wrong plugin set does: TN_NOT_FOUND if it or a file that it names does
 * not exist, TN_BAD_CONFIG if its text is wrong, TN_REFUSED if others may change it. */
TENON_API tn_status tn_host_create(const tn_host_options* options, tn_host** host, tn_error* error);
/* Frees everything of the host. Null is ignored. Any thread, also beside calls on the host: trainings, tests,
 * inferences, steps and generations in flight are cancelled as by tn_cancel_request (generations and tn_machine_steps
 * return TN_CANCELLED), and the function waits until all calls in flight have ended: for a reader of the application,
 * too. Calls that begin later return TN_MISUSE, also after the function has returned, until 64 further hosts are
 * destroyed. A second tn_host_destroy waits for the first, then does nothing. Within a call on the host, such as in a
 * handler, it does not wait: the call is cancelled, further calls return TN_MISUSE, and the last call in flight frees
 * the host when it ends. Nor does it wait in a function of the application that a thread of the library runs, such as
 * that of a buffered reader: another thread frees the host when the function has returned. */
TENON_API void tn_host_destroy(tn_host* host);
/* The same, by the name that all releases have. Since 0.4; tn_host_destroy is deprecated. */
TENON_API void tn_host_release(tn_host* host);

typedef struct tn_host_counters {
  uint32_t size;
  int32_t threads;
  uint64_t bytes_now;        /* allocated at present through the allocator */
  uint64_t bytes_peak;       /* the largest value of bytes_now so far */
  uint64_t workers_computed; /* threads that have run at least one task */
} tn_host_counters;
TENON_API tn_status tn_host_count(tn_host* host, tn_host_counters* counters, tn_error* error);
/* The same, by the name that functions have which fill a struct; those that end in _count return a number. Since 0.4;
 * tn_host_count is deprecated. */
TENON_API tn_status tn_host_inspect(tn_host* host, tn_host_counters* counters, tn_error* error);

/* JSON array of everything found in the search paths: {file, status: "found" | "loaded" | "refused" | "unused", reason,
 * admitted_by: "id" | "bytes", refused, options, manifest}. "unused": another file with the same id has a newer
 * version, or the same and was found first. `admitted_by` is "" without a plugin set, and "bytes" if its entry has
 * sha256 or signed_by. `refused` lists the single components that this host cannot use: {kind: "layer" | "updater" |
 * "reader" | "kernel", index in the manifest's list, name, reason}; `options` has the values of the plugin's options on
 * this host: {name: value}. Since 0.4, of loaded ones, `usage`: {bytes, log_lines}: the host's memory that the plugin
 * holds, and the lines that it has logged. A folder that cannot be read is listed as a refused file, with the manifest
 * null. Runs no plugin code. */
TENON_API tn_status tn_host_plugins(tn_host* host, tn_write write, void* user, tn_error* error);
/* JSON of a type that a plugin offers. kind: "layer", "updater", "reader" or, since 0.4, "comm". {type, doc,
 * other_names: [name], as other frameworks call it; attributes: [{name, doc, kind, required, initial, minimum, maximum,
 * choices}]}, where `kind` is a TN_ATTR_* and the last four are left out where there are none; of layers also {role:
 * "layer" | "cost" | "metric", inputs: [{name, doc, flags}], outputs, parameters}; of layers and updaters
 * {host_attributes: [name]}, which the host gives each; of communicators {traits: [name]}. Runs no plugin code. */
TENON_API tn_status tn_type_describe(tn_host* host, const char* kind, const char* type, tn_write write, void* user,
                                     tn_error* error);
/* Registers components of the application, in the tables that a plugin has. The tables must outlive the host. A plugin
 * set of mode "allow" or "locked" must list the plugin's id with `application = true`, else TN_REFUSED. */
TENON_API tn_status tn_host_add_plugin(tn_host* host, const struct tn_plugin* plugin, tn_error* error);

/* ---- layers ---------------------------------------------------------------------------------------------------- */

/* A data layer: an input of the model, fed under `name`. */
typedef struct tn_data_options {
  uint32_t size;
  tn_dtype dtype; /* as fed; TN_COMPUTE: the machine's compute type */
  const char* name;
  const int64_t* shape; /* of one sample, as fed */
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
  uint32_t layout; /* TN_CHANNELS_*. TN_CHANNELS_FIRST: arrays are fed in that order, and `shape` has it; each feed is
                      converted, and the output of the layer has the channels last. Dense, of at least two dimensions */
  uint32_t reserved2;
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
  /* A layer of the same type, such as one of a loaded model, or {0, 0}: attributes that are not given are those of this
   * layer instead of the defaults, also inside an expansion. Attributes of the host are not taken over. */
  tn_layer like;
  /* [inputs_count] The name of the port of each input; inputs of a variadic port are in their own order. TN_INVALID
   * names an unknown port, or one that is given twice. null: the inputs are in the order of the ports. */
  const char* const* ports;
} tn_layer_options;
/* Makes a layer; loads the plugin of its type. Reports all errors of shapes and attributes. */
TENON_API tn_status tn_layer_create(tn_host* host, const tn_layer_options* options, tn_layer* layer, tn_error* error);
/* The layer called `name` among those that `layer` depends on, itself included; TN_NOT_FOUND if there is none. */
TENON_API tn_status tn_layer_find(tn_host* host, tn_layer layer, const char* name, tn_layer* found, tn_error* error);
/* JSON: {name, type, role: "layer" | "cost" | "metric", inputs, attributes, shape, dtype, outputs: [{name, shape,
 * dtype}], parameters}. shape and dtype are those of the output that `layer` is; outputs are all of the layer, and are
 * named "layer", "layer:1", "layer:2", as in job and model files. attributes are those of the type, defaults
 * included, and those of the host that were given. parameters: names, those of buffers included. */
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
 * offers only its plan, which also lists layers that cannot be trained. Calls that need values return TN_MISUSE. */
TENON_API tn_status tn_parameters_declare(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                                          tn_parameters* parameters, tn_error* error);
/* JSON array of {name, shape, dtype, kind: "parameter" | "buffer"} in a fixed order. */
TENON_API tn_status tn_parameters_describe(tn_host* host, tn_parameters parameters, tn_write write, void* user,
                                           tn_error* error);
/* A view of the values, borrowed until the set is trained, changed or released. TN_MISUSE while another thread trains
 * the set: tn_parameters_read (tenon_lease.h) copies them. */
TENON_API tn_status tn_parameters_get(tn_host* host, tn_parameters parameters, const char* name, tn_array* values,
                                      tn_error* error);
/* Copies values in; shape and dtype must match. */
TENON_API tn_status tn_parameters_set(tn_host* host, tn_parameters parameters, const char* name, const tn_array* values,
                                      tn_error* error);
/* The names of the integers of data layers, such as classes, categories and words, with which readers of other data
 * must agree. tn_train stores those of the reader's slots and model files hold them; tn_train, tn_test and tn_infer
 * refuse a reader that numbers its names differently, with TN_INVALID. Of more than 65,536 names or 1 MiB only count
 * and digest are stored. `slot` of each list is the data layer. Borrowed until this thread's next call of
 * tn_parameters_names or tn_reader_names on this host. tn_parameters_read_names (tenon_lease.h) also has what 0.4
 * added: columns, type and shape of every data layer. */
TENON_API tn_status tn_parameters_names(tn_host* host, tn_parameters parameters, const tn_names* const** names,
                                        uint32_t* count, tn_error* error);
/* Replaces the names of these data layers, for a training without tn_train; a list without names of integers and
 * columns removes them. Columns that a list lacks stay. */
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
/* Since 0.4. The same from the bytes of a model file, such as one that an application decrypts or has inside, with the
 * same checks. The bytes are read during the call and not kept. Errors call them "the model in memory". */
TENON_API tn_status tn_model_load_memory(tn_host* host, const void* data, uint64_t bytes, tn_layer* outputs,
                                         uint32_t* outputs_count, tn_parameters* parameters, tn_error* error);
/* JSON: {verified, topology, tensors: [{name, dtype, shape, bytes}], metadata}. Former names of layer types are
 * replaced by the present ones. Loads no plugin. */
TENON_API tn_status tn_model_describe(tn_host* host, const char* path, tn_write write, void* user, tn_error* error);

typedef struct tn_metric {
  const char* name; /* "<layer>.<value>", or the value's name alone if that is unique */
  double value;
} tn_metric;

/* ---- gradient machine ------------------------------------------------------------------------------------------ */

/* The member `compute` of options: the type in which floats are computed.
 *   TN_F32, also 0; TN_F64
 *   TN_BF16: as TN_F32, parameters and updates included, but that the factors of matrix products may be rounded to
 *     bfloat16; the terms are summed in float32
 *   TN_TF32: the same with TensorFloat-32 (10 bits of fraction) on devices that have it; as TN_F32 on others
 * A device may always be more exact: convolutions and native kernels, such as attention on the cpu, round nothing.
 * With TN_BF16 and TN_TF32 an updater skips a step whose gradients are not finite: parameters, buffers and the
 * updater's states keep their values, and it counts the step (tn_updater_skipped, tn_event.skipped). */
#define TN_TF32 TN_DTYPE(2, 19)

/* Flags of tn_machine_options, both for `training` 1; tenon/tenon_machine.h has the calls.
 * TN_MACHINE_DATA_GRADIENTS: backward also computes the gradients of the data layers of floats.
 * TN_MACHINE_GIVEN_GRADIENTS: backward begins with gradients of the outputs that the application gives, instead of the
 * costs. The outputs need no cost among them. */
enum { TN_MACHINE_DATA_GRADIENTS = 1, TN_MACHINE_GIVEN_GRADIENTS = 2 };

/* One data layer's minibatch: shape [samples, shape of a sample...]. No float is refused: NaN passes, of which argmax
 * makes a class (see tn_host_options.check_finite). What the numbers mean is not known (see tn_reader_check). */
typedef struct tn_feed {
  const char* name;
  tn_array values;
} tn_feed;

TENON_API tn_status tn_machine_create(tn_host* host, tn_parameters parameters, const tn_layer* outputs,
                                      uint32_t outputs_count, const tn_machine_options* options, tn_machine* machine,
                                      tn_error* error);
/* Runs the topology on a minibatch. The feeds are copied. All feeds must have the same number of samples, at most
 * max_samples; 0 is allowed and computes nothing. Feeds that do not fit are refused before anything is changed: the
 * outputs of the forward before stay readable. After the failure of a kernel there are no outputs until the next
 * forward. */
TENON_API tn_status tn_machine_forward(tn_host* host, tn_machine machine, const tn_feed* feeds, uint32_t feeds_count,
                                       tn_error* error);
/* Adds the gradients of the sum of the costs (each a mean over samples) to those since the last update. Allowed once
 * after each forward, else TN_MISUSE; overwrites that forward's inner values. Kept values stay readable. The failure of
 * a kernel drops all gradients since the last update. */
TENON_API tn_status tn_machine_backward(tn_host* host, tn_machine machine, tn_error* error);
/* Sets the states that layers carry from minibatch to minibatch to zero, as before the first forward. tn_train, tn_test
 * and tn_infer do so at the beginning of each pass. */
TENON_API tn_status tn_machine_reset_carried(tn_host* host, tn_machine machine, tn_error* error);
/* A layer's output of the last forward, borrowed until the next call on this machine. */
TENON_API tn_status tn_machine_output(tn_host* host, tn_machine machine, tn_layer layer, tn_array* values,
                                      tn_error* error);
/* A parameter's gradient since the last update, or, between an update and the next forward, the gradient that the
 * update used. Borrowed until the next call on this machine. TN_NOT_FOUND for a parameter without gradient, as are all
 * of a machine made without `training`. */
TENON_API tn_status tn_machine_gradient(tn_host* host, tn_machine machine, const char* parameter, tn_array* values,
                                        tn_error* error);
/* The row-sparse gradient of a parameter, such as an embedding table: the numbers of the rows with a gradient, int64
 * [n] in order of first occurrence, and their gradients [n, shape of a row...]. The gradient of all other rows is 0.
 * For such a parameter tn_machine_gradient returns the dense gradient, as a copy that the machine makes at each call.
 * TN_INVALID if the parameter's gradient is dense. Borrowed like tn_machine_gradient's. */
TENON_API tn_status tn_machine_sparse_gradient(tn_host* host, tn_machine machine, const char* parameter, tn_array* ids,
                                               tn_array* values, tn_error* error);
/* Mean cost of the last forward, summed over the cost outputs; 0 without a cost. */
TENON_API tn_status tn_machine_cost(tn_host* host, tn_machine machine, double* cost, tn_error* error);
/* Since 0.4. The costs whose sum tn_machine_cost returns, if there are two or more; else *count is 0. Each is what it
 * adds to the sum: its mean times its `coefficient`. The name is that of the layer; "<layer>.cost" if the layer has the
 * name of a metric or is called "cost". Borrowed until this thread's next call of tn_machine_costs or tn_test on this
 * host. */
TENON_API tn_status tn_machine_costs(tn_host* host, tn_machine machine, const tn_metric** costs, uint32_t* count,
                                     tn_error* error);
/* Values of the machine's metrics over the last forward, borrowed until this thread's next call of tn_machine_metrics
 * or tn_test on this host. */
TENON_API tn_status tn_machine_metrics(tn_host* host, tn_machine machine, const tn_metric** metrics, uint32_t* count,
                                       tn_error* error);
/* JSON: the call array with layers, groups and bytes; see docs/plan.md. */
TENON_API tn_status tn_machine_plan(tn_host* host, tn_machine machine, tn_write write, void* user, tn_error* error);
TENON_API tn_status tn_machine_release(tn_host* host, tn_machine machine, tn_error* error);

/* ---- updater --------------------------------------------------------------------------------------------------- */

TENON_API tn_status tn_updater_create(tn_host* host, const char* type, const tn_named_value* attributes,
                                      uint32_t attributes_count, tn_updater* updater, tn_error* error);
/* Updates the machine's parameters from its gradients and resets the gradients; without gradients it does nothing.
 * TN_MISUSE if the machine was made without `training`. The updater's states (its state) belong to the pair of updater
 * and ParameterSet. */
TENON_API tn_status tn_updater_update(tn_host* host, tn_updater updater, tn_machine machine, tn_error* error);
/* Updates only the parameters that `output` depends on; drops the other gradients. */
TENON_API tn_status tn_updater_update_model(tn_host* host, tn_updater updater, tn_machine machine, tn_layer output,
                                            tn_error* error);
TENON_API tn_status tn_updater_set_learning_rate(tn_host* host, tn_updater updater, double learning_rate,
                                                 tn_error* error);
/* JSON: {type, learning_rate, state_bytes, workspace_bytes, last_update: {rows, bytes_written}}, all for these
 * parameters: state_bytes is what the updater keeps from its first update on; workspace_bytes is the workspace at
 * present; last_update counts the rows written by row-sparse gradients, and the bytes of parameters and states written.
 */
TENON_API tn_status tn_updater_describe(tn_host* host, tn_updater updater, tn_parameters parameters, tn_write write,
                                        void* user, tn_error* error);
TENON_API tn_status tn_updater_release(tn_host* host, tn_updater updater, tn_error* error);

/* ---- training, testing, inference ------------------------------------------------------------------------------ */

enum {
  TN_BEGIN_TRAINING = 0,
  TN_END_TRAINING = 1,
  TN_BEGIN_PASS = 2,
  TN_END_PASS = 3, /* when the reader ends a pass, or after pass_batches minibatches */
  TN_BEGIN_ITERATION = 4,
  TN_END_ITERATION = 5,
  TN_CHECKPOINT = 6, /* a checkpoint was written: after END_ITERATION, END_PASS or TEST, or before END_TRAINING */
  TN_TEST = 7        /* tn_train_options.test was measured: after END_ITERATION or END_PASS */
};

/* Why a training ended. */
enum {
  TN_REASON_NONE = 0,    /* it has not ended */
  TN_REASON_PASSES = 1,  /* all passes are done */
  TN_REASON_HANDLER = 2, /* a handler set `stop` */
  TN_REASON_CANCEL = 3,  /* tn_cancel_request */
  TN_REASON_EARLY = 4    /* tn_early_stop_options: no improvement for `patience` measurements */
};

/* The argument of a handler, borrowed during the handler. END_ITERATION: cost and metrics of the minibatch; END_PASS
 * and END_TRAINING: of the last pass; BEGIN_PASS: of the part of the pass before the checkpoint, if the training
 * resumes in it; TEST: of the test. A handler may write learning_rate and stop. */
typedef struct tn_event {
  uint32_t size;
  int32_t kind;
  int64_t pass;    /* from 0 */
  int64_t batch;   /* from 0 within the pass */
  int64_t samples; /* in this minibatch, or in this pass so far */
  double cost;     /* mean over samples */
  const tn_metric* metrics;
  uint32_t metrics_count;
  int32_t stop;           /* set to 1: training ends after this event */
  double seconds;         /* since the pass began; TEST: that the test took */
  double learning_rate;   /* before the schedule */
  double scheduled_rate;  /* after it: the rate of the last update, or of the first one before that */
  const char* checkpoint; /* CHECKPOINT: the file; BEGIN_TRAINING: the file resumed from; else null */
  /* The machine that trains: a handle for the calls that read, which is stale after the handler. Its outputs, cost,
   * metrics and gradients are those of the last minibatch from END_ITERATION until the handler gets the next event
   * but TEST and CHECKPOINT; else an output or gradient is TN_MISUSE. The gradients are those that the update used.
   * Calls that change or release the machine return TN_MISUSE. */
  tn_machine machine;
  uint32_t reason;  /* END_TRAINING: TN_REASON_*; else 0 */
  uint32_t skipped; /* steps so far that the training's updaters skipped, see TN_BF16 */
  /* Since 0.4. With two or more costs, each of them, as in tn_machine_costs; else none. Means over the same samples as
   * `cost`. */
  const tn_metric* costs;
  uint32_t costs_count;
  uint32_t reserved;
  /* Since 0.4. BEGIN_TRAINING of a resume with tn_checkpoint_options.resume_with: what differs from the checkpoint, one
   * difference in each line; else null. */
  const char* changes;
  /* Since 0.4. With tn_train_options.best: the best value measured before this event, and the passes and minibatches of
   * the next pass that were done then. best_pass is -1 if there is none. */
  double best;
  int64_t best_pass, best_batch;
  /* Since 0.4. In the bounded mode (tn_train_options.staleness), so far: minibatches of lost trainers that others have
   * computed again, and of these the ones of which some servers had applied the gradients before. */
  uint64_t repeated, torn;
} tn_event;

typedef struct tn_test_result {
  uint32_t size;
  uint32_t metrics_count;
  double cost;
  int64_t samples;
  double seconds;
  const tn_metric* metrics; /* borrowed until this thread's next tn_test or tn_machine_metrics on the host */
  /* Since 0.4. With two or more costs, each of them, as in tn_machine_costs; else none. Borrowed like metrics. */
  const tn_metric* costs;
  uint32_t costs_count;
  uint32_t reserved;
} tn_test_result;

/* Trains for `passes` passes, or until a handler, a cancel token or early stopping ends it; then it returns TN_OK, and
 * END_TRAINING has the reason. After a failure the parameters have the values of the last complete update. */
TENON_API tn_status tn_train(tn_host* host, const tn_train_options* options, tn_error* error);
/* Measures cost and metrics over one pass; changes no parameters. Like tn_train and tn_infer it starts with the first
 * sample of a pass: a reader in the middle of a pass seeks back to its start, if it can. */
TENON_API tn_status tn_test(tn_host* host, const tn_train_options* options, tn_test_result* result, tn_error* error);
/* Runs one pass of the reader; `sink` receives the outputs of each minibatch (one array per output, borrowed during the
 * call) and ends the pass early by returning non-zero. */
TENON_API tn_status tn_infer(tn_host* host, const tn_train_options* options,
                             int32_t (*sink)(void* user, const tn_array* outputs, uint32_t outputs_count), void* user,
                             tn_error* error);

TENON_DEPRECATED(tn_host_destroy, "use tn_host_release")
TENON_DEPRECATED(tn_host_count, "use tn_host_inspect")

#ifdef __cplusplus
}
#endif
#endif
