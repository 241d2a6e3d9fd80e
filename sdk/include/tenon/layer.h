/* Tenon SDK: layer types and metrics. SPDX-License-Identifier: MIT */
#ifndef TENON_LAYER_H
#define TENON_LAYER_H

#include <tenon/attribute.h>
#include <tenon/builder.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TN_PORT_OPTIONAL = 1,
  TN_PORT_VARIADIC = 2, /* one or more values; last port only; of an output plan states how many */
  TN_PORT_INTEGER = 4,  /* integer elements (labels, ids); else float */
  TN_PORT_ANY = 8,      /* integer or float */
  TN_PORT_SPARSE = 16   /* accepts a TN_CSR value too; other ports never get one */
};                      /* INTEGER and ANY exclude each other; OPTIONAL and SPARSE are for inputs alone */

/* The most that a host takes: 65,536 outputs of a layer, and instructions, inputs and outputs of a program; layers
 * within layers 32 deep. A later version may take more.
 *
 * Static description of one input or output. */
typedef struct tn_port {
  uint32_t size;
  uint32_t flags;
  const char* name;
  const char* doc; /* one line: meaning and shape */
} tn_port;

/* The first values of a parameter or buffer. Frozen. */
enum { TN_INIT_CONSTANT = 0 /* a */, TN_INIT_UNIFORM = 1 /* [a, b) */, TN_INIT_NORMAL = 2 /* mean a, std b */ };
typedef struct tn_initializer {
  int32_t kind;
  int32_t reserved;
  double a, b;
} tn_initializer;

enum { TN_PARAMETER_SPARSE_GRADIENT = 1 /* its gradient may be stored as TN_ROW_SPARSE */ };

/* The value of a buffer after a step in which several shards of a minibatch gave one value each. */
enum {
  TN_MERGE_MEAN = 0, /* the mean, weighted by the samples of each shard */
  TN_MERGE_SUM = 1,
  TN_MERGE_MAX = 2,
  TN_MERGE_FIRST = 3 /* that of the first shard */
};

/* A parameter or buffer that a layer needs. Its full name is "<parameter name of the layer>.<suffix>". */
typedef struct tn_parameter {
  uint32_t size;
  uint32_t flags;
  const char* suffix;  /* one of the description's `parameters`; each at most once */
  const tn_spec* spec; /* dense, constant dimensions; dtype TN_COMPUTE: the machine's */
  tn_initializer initializer;
  int32_t merge; /* buffers: TN_MERGE_*; parameters: 0 */
  uint32_t reserved;
} tn_parameter;

/* Rules by which a layer makes the rows of a ragged output. Sequence i of the result comes from sequence i of `a`, at
 * its innermost level. Members that a rule does not name are 0 or null. */
enum {
  TN_ROWS_CONCATENATED = 1, /* a[i] followed by b[i]; both have the same sequences outside */
  TN_ROWS_STRIDED = 2,      /* of n rows floor((n + padding - window) / stride) + 1, or 0 if n + padding < window */
  TN_ROWS_FIRST = 3,        /* of n rows min(n, count) */
  TN_ROWS_DATA = 4          /* as many as the layer's native kernel writes */
};
typedef struct tn_rows_rule {
  uint32_t size;
  int32_t rule;     /* TN_ROWS_* */
  const tn_spec* a; /* an input, TN_RAGGED; of TN_ROWS_DATA also dense: its first dimension counts the sequences */
  const tn_spec* b; /* TN_ROWS_CONCATENATED: another input, TN_RAGGED; else null */
  int64_t window;   /* TN_ROWS_STRIDED: at least 1 */
  int64_t stride;   /* TN_ROWS_STRIDED: at least 1 */
  int64_t padding;  /* TN_ROWS_STRIDED: zero rows before and after each sequence, together; at least 0 */
  int64_t count;    /* TN_ROWS_FIRST: at least 0 */
  /* TN_ROWS_DATA: the most rows, as a dimension of the inputs, such as three times the samples */
  const tn_dim* bound;
} tn_rows_rule;

/* The argument of plan: a layer's inputs, and functions that declare its results. [setup], valid until plan returns. A
 * function that fails reports the reason; plan then returns its status, or TN_INVALID after a negative number. */
typedef struct tn_planner {
  uint32_t size;
  uint32_t inputs_count; /* connected values, those of a variadic port included */
  void* self;
  const tn_errors* errors;
  const tn_attributes* attributes;
  const tn_spec* const* inputs; /* [inputs_count] in port order; null: absent optional input */
  /* Declares shape and type of an output; copies the spec. Required once for every output port; a variadic port has the
   * outputs from its own number on. Storage, levels and outer are ignored: they follow from dims[0]. */
  tn_status (*output)(void* self, uint32_t port, const tn_spec* spec);
  /* Declares a parameter (buffer); copies it. Returns its index, or a negative number on failure. */
  int32_t (*parameter)(void* self, const tn_parameter* parameter);
  int32_t (*buffer)(void* self, const tn_parameter* buffer);
  /* Declares that the integers at input `input` are used as indices in [0, limit), limit at least 1. The host checks
   * those of data layers, at each step; a kernel checks others. */
  tn_status (*index_limit)(void* self, uint32_t input, int64_t limit);
  /* Metrics: declares `count` fp64 accumulators, at most 65536, zero at the start of a pass. */
  tn_status (*state)(void* self, uint32_t count);
  /* Declares the next ragged dimension that the layer makes; writes it to `rows`. Equal rules of several layers give
   * the same dimension, except TN_ROWS_DATA. Returns its number, or a negative number on failure. */
  int32_t (*rows)(void* self, const tn_rows_rule* rule, tn_dim* rows);
  /* Declares the next state that is carried from minibatch to minibatch, zero at first and after a reset. Its first
   * dimension is constant or the samples: sample i gets the state of sample i of the minibatch before, or zeros if that
   * had fewer samples. Dense. Copies the spec. Returns its number, or a negative number on failure. */
  int32_t (*carried)(void* self, const tn_spec* spec);
  void* user; /* of the layer type's table */
#if TN_TARGET_MINOR >= 3
  /* Since 0.3: exempts one integer from the limit declared for input `input`, such as a label that does not count. */
  tn_status (*index_exempt)(void* self, uint32_t input, int64_t value);
#endif
} tn_planner;

/* A layer inside an expansion. */
typedef struct tn_expansion_layer {
  uint32_t size;
  uint32_t inputs_count;
  const char* type;
  /* Null: the new layer has the parameter name of the expanded layer; else that name, a dot and the suffix. */
  const char* suffix;
  const tn_ref* inputs; /* [inputs_count] refs of this expander */
  uint32_t attributes_count;
  uint32_t reserved;
  const char* const* attribute_names; /* [attributes_count] */
  const tn_value* attribute_values;   /* [attributes_count] */
} tn_expansion_layer;

/* The argument of expand. [setup], valid until expand returns. */
typedef struct tn_expander {
  uint32_t size;
  uint32_t inputs_count;
  void* self;
  const tn_errors* errors;
  const tn_attributes* attributes;
  const tn_spec* const* inputs;
  /* The value at input number `input`. */
  tn_ref (*input)(void* self, uint32_t input);
  /* Adds a layer by type name; returns its first output, or a negative number on failure. */
  tn_ref (*layer)(void* self, const tn_expansion_layer* layer);
  /* Output number `number` of the layer whose first output is `first`; a negative number on failure. */
  tn_ref (*output_of)(void* self, tn_ref first, uint32_t number);
  /* Sets output `port` of the expanded layer to `value`. Required once for every output port. */
  tn_status (*output)(void* self, uint32_t port, tn_ref value);
  void* user; /* of the layer type's table */
} tn_expander;

/* The role of a layer type. */
enum {
  TN_ROLE_LAYER = 0,
  TN_ROLE_COST = 1,  /* output 0 holds one value per sample; the host reduces it */
  TN_ROLE_METRIC = 2 /* has no outputs; its recorded body calls builder->state */
};

/* Everything static about a layer type; goes into the manifest. */
typedef struct tn_layer_description {
  uint32_t size;
  int32_t role;
  const char*
      type; /* "vendor.name" of lower case letters, digits, underscores; without vendor only in plugins of Tenon */
  const char* doc; /* one paragraph: the formula and its source */
  uint32_t inputs_count;
  uint32_t outputs_count;
  const tn_port* const* inputs;
  const tn_port* const* outputs;
  uint32_t attributes_count;
  uint32_t parameters_count;
  const tn_attribute* const* attributes;
  const char* const* parameters; /* suffixes that may be declared, buffers too; of expansions "inner.suffix" (0.3) */
  /* Rises when model files hold something else: names or meanings of attributes, parameters, buffers
   * (tenon/migrate.h); and when the type gets an input, output, parameter or buffer, which are appended to these lists:
   * native kernels of other plugins were written for the type of their state_version. Whoever raises it offers
   * tenon.migrate/1, which may change nothing; without it, models of the versions before are refused. 1 at first, never
   * 0. */
  uint32_t state_version;
  uint32_t reserved;
} tn_layer_description;

/* Receives one named value of a metric. Name and value are copied. Names differ and are not empty. */
typedef void (*tn_metric_result)(void* self, const char* name, double value);

/* The argument of finalize: the merged state of a metric. Valid until finalize returns. */
typedef struct tn_finalizer {
  uint32_t size;
  uint32_t state_count;
  const tn_attributes* attributes;
  const double* state; /* [state_count] the accumulators that plan declared; may be all zero */
  const tn_errors* errors;
  tn_metric_result result; /* call it with `self` */
  void* self;
  void* user; /* of the layer type's table */
} tn_finalizer;

/* A layer type. Tables are immutable and live as long as the plugin is mapped.
 * Call order for one layer: plan (expand | lower*). All functions are pure: same arguments, same results. */
typedef struct tn_layer_type {
  uint32_t size;
  uint32_t reserved;
  const tn_layer_description* description;
  /* [setup] Declares shapes, parameters, buffers, independent of batch size and device. On failure: reports the port
   * with expected and actual shape; all declarations are discarded. */
  tn_status (*plan)(const tn_planner* planner);
  /* [setup] Optional. Replaces the layer by other layers, after plan succeeded. Returns TN_UNSUPPORTED, without a
   * report, if these attributes need no expansion; the host then calls lower. */
  tn_status (*expand)(const tn_expander* expander);
  /* [setup] Records the body. Optional if native kernels compute the layer. */
  tn_status (*lower)(const tn_attributes* attributes, const tn_builder* builder);
  /* [any] Metrics: computes named values from the merged state. Required for TN_ROLE_METRIC, null otherwise. */
  tn_status (*finalize)(const tn_finalizer* finalizer);
  /* [any] Returns an optional table by id, or null. The function may be null. */
  const void* (*extension)(void* user, const char* id);
  void* user; /* given back as member `user` of the arguments of the functions */
} tn_layer_type;

#ifdef __cplusplus
}
#endif
#endif
