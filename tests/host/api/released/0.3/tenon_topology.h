/* Tenon: layers, topologies and sets of parameters as data. SPDX-License-Identifier: Apache-2.0
 *
 * These calls read what others have made; they change no object and may be called from any thread, as all calls of
 * tenon.h. All texts and lists that a struct of this header points to belong to the object whose handle was given: they
 * are borrowed, and stay valid and unchanged until that handle is released. What a function of the application receives
 * is borrowed until it returns. */
#ifndef TENON_TENON_TOPOLOGY_H
#define TENON_TENON_TOPOLOGY_H

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers ---------------------------------------------------------------------------------------------------- */

enum {
  TN_DIMENSION_FIXED = 0,   /* `extent` is the size */
  TN_DIMENSION_SAMPLES = 1, /* the number of samples of the minibatch */
  TN_DIMENSION_ROWS = 16    /* this and above: the number of rows of sequences, or of entries of a sparse layer. Equal
                               symbols of one host have equal sizes at each step */
};

/* One dimension of an output. If it is symbolic its size is known at each step alone: factor * (size of the symbol) +
 * added. */
typedef struct tn_dimension {
  int64_t extent;        /* the size; -1 if it is symbolic */
  int64_t factor, added; /* of a symbolic one, else 0 */
  int32_t symbol;        /* TN_DIMENSION_* */
  int32_t reserved;      /* 0 */
} tn_dimension;

typedef struct tn_layer_info {
  uint32_t size;
  uint32_t output;           /* which output of the layer the handle is, from 0 */
  const char* name;          /* without the number of the output */
  const char* type;          /* "data" for a data layer */
  const char* role;          /* "layer", "cost" or "metric" */
  const char* plugin;        /* the id of the plugin that offers the type; "" for a data layer */
  uint32_t inputs_count;     /* absent optional ones included */
  uint32_t outputs_count;    /* 0 for a metric */
  uint32_t parameters_count; /* buffers included; those of the layers inside an expansion, too */
  uint32_t reserved;         /* 0 */
} tn_layer_info;
TENON_API tn_status tn_layer_inspect(tn_host* host, tn_layer layer, tn_layer_info* info, tn_error* error);

/* A block is the outside, the steps of a scan, or one branch of a cond. A layer is inside of a block if it reads a
 * value of it. Blocks nest; a layer belongs to the innermost one. */
enum { TN_BLOCK_GLOBAL = 0, TN_BLOCK_STEP = 1, TN_BLOCK_BRANCH = 2 };
typedef struct tn_block_info {
  uint32_t size;
  uint32_t kind;    /* TN_BLOCK_* */
  const char* name; /* of the layer that stands outside for the scan or the branches; "" for TN_BLOCK_GLOBAL */
  uint32_t branch;  /* TN_BLOCK_BRANCH: its number, from 0; else 0 */
  uint32_t reserved;
} tn_block_info;
/* The block that the layer belongs to. */
TENON_API tn_status tn_layer_block(tn_host* host, tn_layer layer, tn_block_info* info, tn_error* error);

/* Input `number`, from 0, of a layer or of an output of a layer, as a handle of the caller: the output of a layer that
 * it reads. A zeroed handle for an optional input that is absent. TN_NOT_FOUND for a number that the layer lacks. */
TENON_API tn_status tn_layer_input(tn_host* host, tn_layer layer, uint32_t number, tn_layer* input, tn_error* error);
/* The name of the port of input `number`. The parts of scans and branches have those of docs/model-file.md:
 * "sequences", "over", "initial", "results", "memories", "next", "value", "rows", "sequence_rows". */
TENON_API tn_status tn_layer_port(tn_host* host, tn_layer layer, uint32_t number, const char** port, tn_error* error);

/* An output of a layer: shape[0] is the samples, or the rows of sequences (TN_RAGGED). */
typedef struct tn_output_info {
  uint32_t size;
  tn_dtype dtype;  /* TN_COMPUTE: the machine's compute type */
  int32_t storage; /* TN_DENSE, TN_RAGGED, TN_CSR */
  uint32_t levels; /* TN_RAGGED: 1 or 2; else 0 */
  int32_t rank;
  int32_t reserved; /* 0 */
  tn_dimension shape[8];
  const char* port; /* its name, that of the layer's type; "output" of data layers and of what enters a block */
} tn_output_info;
/* Output `number`, from 0, of the layer. TN_NOT_FOUND for a number that the layer lacks. */
TENON_API tn_status tn_layer_inspect_output(tn_host* host, tn_layer layer, uint32_t number, tn_output_info* info,
                                            tn_error* error);

/* Calls `take` for each attribute of the layer in alphabetical order: those of the type, defaults included, and those
 * of the host that were given; absent ones are left out. Those of parts of scans and branches are what model files hold
 * of them: "scan" or "cond", the name, and "reverse", "results", "initial_value", "shape", "branches", "branch". `take`
 * must not call this host. */
TENON_API tn_status tn_layer_attributes(tn_host* host, tn_layer layer,
                                        void (*take)(void* user, const tn_named_value* attribute), void* user,
                                        tn_error* error);

enum { TN_PARAMETER_TRAINED = 0, TN_PARAMETER_BUFFER = 1 };
typedef struct tn_parameter_info {
  uint32_t size;
  tn_dtype dtype; /* as stored: TN_F32 */
  const char* name;
  const char* layer; /* the layer that declares it, or declared it first */
  uint32_t kind;     /* TN_PARAMETER_*; buffers are stored with the model and not trained */
  int32_t rank;
  int64_t shape[8];
  /* The part of its name that the layer's type declares, also that of a layer inside of an expansion: "weight", or
   * "query.weight", as in the attributes param.<path>.<key>. null of an entry of a set. */
  const char* path;
} tn_parameter_info;
/* Parameter or buffer `number`, from 0, of the layer and the layers inside its expansion. Layers that share a parameter
 * have it both. TN_NOT_FOUND for a number that the layer lacks. */
TENON_API tn_status tn_layer_parameter(tn_host* host, tn_layer layer, uint32_t number, tn_parameter_info* info,
                                       tn_error* error);

/* ---- topologies ------------------------------------------------------------------------------------------------ */

/* All layers that the outputs depend on, those inside of blocks included, as handles of the caller, inputs first: a
 * layer that stands for a block follows those inside. *layers_count: capacity on entry, their number on return;
 * TN_NEED_CAPACITY if the capacity is too small. */
TENON_API tn_status tn_topology_layers(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, tn_layer* layers,
                                       uint32_t* layers_count, tn_error* error);
/* The data layers that the outputs depend on, as handles of the caller, inputs first. *data_count: capacity on entry,
 * their number on return; TN_NEED_CAPACITY if the capacity is too small. */
TENON_API tn_status tn_topology_data(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, tn_layer* data,
                                     uint32_t* data_count, tn_error* error);
/* Fills the options by which tn_data_create would make an equal data layer; set data->size before. TN_INVALID for a
 * layer of another type. */
TENON_API tn_status tn_data_inspect(tn_host* host, tn_layer layer, tn_data_options* data, tn_error* error);

/* Writes the topology of the outputs as JSON, as model files hold it (docs/model-file.md): without values, and without
 * the names of the integers of data layers, which belong to parameters. Equal topologies give equal texts. */
TENON_API tn_status tn_topology_write(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, tn_write write,
                                      void* user, tn_error* error);
/* Makes the layers of a topology that tn_topology_write wrote; loads the plugins of their types. json: `size` bytes,
 * which may come from anywhere: TN_BAD_DATA, naming the place, for a text that is no topology. *outputs_count: capacity
 * on entry, number of outputs on return; TN_NEED_CAPACITY if the capacity is too small. TN_REFUSED for a layer of an
 * older version of its type that needs a migration: migrations may change parameters, which only a model file has
 * (tn_model_load). */
TENON_API tn_status tn_topology_read(tn_host* host, const char* json, uint64_t size, tn_layer* outputs,
                                     uint32_t* outputs_count, tn_error* error);

/* Writes the text of tn_topology_write, with line breaks, as a file: a topology without values. */
TENON_API tn_status tn_topology_save(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, const char* path,
                                     tn_error* error);
/* tn_topology_read of a file: one of tn_topology_save, or a model file, whose values are not read. Errors name the
 * file. */
TENON_API tn_status tn_topology_load(tn_host* host, const char* path, tn_layer* outputs, uint32_t* outputs_count,
                                     tn_error* error);

/* Writes the topology of the outputs as a text for people: block 0 with the parameters and one line for each layer,
 * inputs first, then the outputs. A line has the outputs of the layer with their shapes, the type, the inputs by port,
 * the parameters, and the attributes:
 *   hidden: float32 [samples, 8] = fc(inputs = x, weight = hidden.weight, bias = hidden.bias, bias = true, size = 8)
 * The block of a scan's steps, or of a branch, stands before the line of the layer that stands for it. */
TENON_API tn_status tn_topology_print(tn_host* host, const tn_layer* outputs, uint32_t outputs_count, tn_write write,
                                      void* user, tn_error* error);

/* A name before, and the name in its place. */
typedef struct tn_rename {
  const char* from;
  const char* to;
} tn_rename;

/* An attribute of a layer. */
typedef struct tn_layer_setting {
  const char* layer;
  tn_named_value attribute;
} tn_layer_setting;

typedef struct tn_clone_options {
  uint32_t size;
  uint32_t layers_count;
  const tn_rename* layers;     /* layers by their names; may be null */
  const tn_rename* parameters; /* with everything below: {"D", "E"} makes "E.weight" of "D.weight"; may be null */
  /* Attributes that replace those that the layers have, by the names before; a value of kind 0 removes one. May be
   * null. */
  const tn_layer_setting* settings;
  uint32_t parameters_count;
  uint32_t settings_count;
} tn_clone_options;
/* Makes all layers that the outputs depend on anew, with other names and attributes. clones: [outputs_count], handles
 * of the caller. Layers whose parameters are not renamed share them by name with those that they were made from.
 * TN_NOT_FOUND for a name that the topology lacks, TN_INVALID if two layers get one name; attributes are checked as by
 * tn_layer_create. options may be null. */
TENON_API tn_status tn_topology_clone(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                                      const tn_clone_options* options, tn_layer* clones, tn_error* error);

/* ---- sets of parameters ---------------------------------------------------------------------------------------- */

/* The parameters and buffers of a set, in a fixed order. Also of a set without values. */
TENON_API tn_status tn_parameters_count(tn_host* host, tn_parameters parameters, uint32_t* count, tn_error* error);
TENON_API tn_status tn_parameters_entry(tn_host* host, tn_parameters parameters, uint32_t number,
                                        tn_parameter_info* info, tn_error* error);

/* Flags of tn_copy_options. TN_COPY_PARTIAL: parameters that are missing or have another shape keep their values,
 * instead of failing the call. */
enum { TN_COPY_PARTIAL = 1 };

typedef struct tn_copy_options {
  uint32_t size;
  uint32_t flags; /* TN_COPY_* */
  /* A name of the set that is copied from, and the name in the set that is copied to. Each includes everything below
   * it:
   * {"encoder", "hidden"} makes "hidden.weight" of "encoder.weight"; the longest name decides. */
  const tn_rename* renames;
  const char* const* skip; /* names of the set that is copied to, with everything below: these keep their values */
  uint32_t renames_count;
  uint32_t skip_count;
} tn_copy_options;

/* Copies values between two sets by name: the parameters and buffers of `to` get the values of those of `from`. Every
 * one must be in `from` with its shape, unless `skip` includes it: else TN_INVALID lists all that are missing or
 * differ. TN_NOT_FOUND for a name of the options that a set lacks, TN_INVALID if two names become one. Everything is
 * checked before any value changes. options may be null. write may be null; else it receives, if the call succeeds,
 * JSON: {copied: [{name, from}], skipped: [name], missing: [name], reshaped: [{name, from, shape, from_shape}], extra:
 * [name]}; extra are names of `from` that `to` lacks. The names of the integers of data layers are not copied
 * (tn_parameters_names). */
TENON_API tn_status tn_parameters_copy(tn_host* host, tn_parameters to, tn_parameters from,
                                       const tn_copy_options* options, tn_write write, void* user, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
