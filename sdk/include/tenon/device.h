/* Tenon SDK: devices: memory, streams, and one nullable table per family of primitives. SPDX-License-Identifier: MIT */
#ifndef TENON_DEVICE_H
#define TENON_DEVICE_H

#include <tenon/builder.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_device_properties {
  uint32_t size;
  uint32_t host_memory; /* 1: the host may read and write the device's memory directly */
  char name[128];
  uint64_t memory_bytes; /* 0 if unknown */
} tn_device_properties;

/* The argument of a device type's open. */
typedef struct tn_device_open {
  uint32_t size;
  int32_t index;               /* from 0 */
  const tn_services* services; /* valid until close */
  const tn_errors* errors;     /* valid until open returns */
  void* user;                  /* of the device type's table */
} tn_device_open;

/* One copy. */
typedef struct tn_copy {
  uint32_t size;
  int32_t kind; /* TN_COPY_*; a device answers TN_UNSUPPORTED to one that it does not know */
  void* stream; /* null: the device's own first stream */
  void* to;
  const void* from;
  uint64_t bytes;
} tn_copy;

typedef struct tn_device_description {
  uint32_t size;
  int32_t dlpack_type; /* DLDeviceType of its pointers */
  const char* kind;    /* "cpu", "cuda" */
  const char* doc;
  const char* const* tables; /* null-terminated list of the ids that extension answers */
} tn_device_description;

/* The core of a device. Work is ordered within a stream; `stream` null means the device's own first stream. A function
 * with an error sink may also report the failure of work that was enqueued earlier; stream_wait reports every such
 * failure that was not reported before. */
typedef struct tn_device_type {
  uint32_t size;
  uint32_t reserved;
  const tn_device_description* description;
  /* [setup] The number of devices present. A negative status on failure. */
  int32_t (*count)(void* user, const tn_errors* errors);
  /* [setup] Opens a device. On failure reports the reason and does not write *device. */
  tn_status (*open)(const tn_device_open* open, void** device);
  /* [setup] Frees the device, after all its streams and memory were freed. */
  void (*close)(void* device);
  /* [any] Fills `properties`, which comes with size set. */
  tn_status (*properties)(void* device, const tn_errors* errors, tn_device_properties* properties);
  /* [setup] 64-byte aligned device memory, or null with a report. The memory has addresses: the host adds offsets in
   * bytes to them and passes the sums to all functions. */
  void* (*allocate)(void* device, const tn_errors* errors, uint64_t bytes);
  /* [setup] */
  void (*release)(void* device, void* memory, uint64_t bytes);
  /* [run] Copies in stream order. Host memory must stay valid until the copy is done. */
  tn_status (*copy)(void* device, const tn_errors* errors, const tn_copy* copy);
  /* [run] Sets bytes in stream order. */
  tn_status (*fill)(void* device, const tn_errors* errors, void* stream, void* memory, uint8_t value, uint64_t bytes);
  /* [setup] */
  tn_status (*stream_create)(void* device, const tn_errors* errors, void** stream);
  /* [setup] */
  void (*stream_destroy)(void* device, void* stream);
  /* [any] Blocks until the stream is empty. Never called within a primitive's or a kernel's run, and inside a step only
   * for devices with host_memory 0, between the calls of the step. */
  tn_status (*stream_wait)(void* device, const tn_errors* errors, void* stream);
  /* [setup] Events order work between streams. */
  tn_status (*event_create)(void* device, const tn_errors* errors, void** event);
  /* [setup] */
  void (*event_destroy)(void* device, void* event);
  /* [run] */
  tn_status (*event_record)(void* device, const tn_errors* errors, void* event, void* stream);
  tn_status (*event_wait)(void* device, const tn_errors* errors, void* event, void* stream);
  /* [any] A table by id: a primitive family below, or one of a later version; null if not offered. */
  const void* (*extension)(void* user, const char* id);
  void* user; /* passed to count and extension, and given back in tn_device_open */
} tn_device_type;

enum { TN_COPY_TO_DEVICE = 0, TN_COPY_TO_HOST = 1, TN_COPY_ON_DEVICE = 2 };

/* Primitive tables. A change of what a call means gets a new id, never a member that an older table does not know. Each
 * has one prepare: [setup], several bindings at once, `prepared` comes with size set and the
 * rest zero, TN_UNSUPPORTED with a report that names the missing feature. The runs are [run]. All tensors are dense and
 * row-major; outputs obey call->requests (WRITE or ADD). Sizes are read from execution->symbols or, by calls
 * with TN_TRAIT_HOST_SIZES, from execution->host_symbols, not from the tensors: those of updates have no shape. A null
 * function of a table stands for calls that the device does not offer. */

/* "tenon.gemm/1": C[b] = alpha op(A[b]) op(B[b]). inputs: A, B; outputs: C. Without TN_TRANSPOSE_A the bits of an
 * element of C follow from its row of A, its column of op(B), and dtype, n, k, flags and alpha; never from batch, m,
 * its place or the number of threads: what a model answers for a sample does not depend on the samples beside it. A
 * call that does not keep this has TN_TRAIT_BATCH_VARIANT: its bits may follow from batch, m and the place, too, not
 * from the threads. With TN_TRANSPOSE_A (gradients, which sum over the samples) they may follow from m in every call.
 */
#define TN_GEMM "tenon.gemm/1"
/* How exactly products are computed; a device may always be more exact. Products of float32 are summed in float32.
 *   TN_PRECISION_FULL: in dtype
 *   TN_PRECISION_BF16: factors of float32 may be rounded to bfloat16, to the nearest, halves to the even one
 *   TN_PRECISION_TF32: factors of float32 may be rounded to 10 bits of fraction (NVIDIA's TensorFloat-32) */
enum { TN_PRECISION_FULL = 0, TN_PRECISION_BF16 = 1, TN_PRECISION_TF32 = 2 };
typedef struct tn_gemm {
  uint32_t size;
  tn_dtype dtype;
  tn_dim batch, m, n, k;
  uint32_t flags;     /* TN_TRANSPOSE_*: how A and B are stored */
  uint32_t precision; /* TN_PRECISION_*, since 0.3; 0 in hosts of 0.2 */
  double alpha;
} tn_gemm;
typedef struct tn_gemm_table {
  uint32_t size;
  uint32_t reserved;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                       tn_prepared* prepared);
} tn_gemm_table;

/* "tenon.pointwise/1": inputs and outputs are those of the program, which the host has validated. An output may share
 * the memory of an input of the same extent and element size. */
#define TN_POINTWISE "tenon.pointwise/1"
typedef struct tn_pointwise_site {
  uint32_t size;
  tn_dtype compute;          /* TN_F32 or TN_F64: type of float values, and the bits of ints */
  const tn_program* program; /* borrowed until prepare returns */
  const uint8_t* extents;    /* [instructions_count] extent of every value, derived by the host */
  const tn_dtype* inputs;    /* [inputs_count] element types in memory */
  const tn_dtype* outputs;   /* [outputs_count] */
  tn_dim rows, columns;      /* columns is constant, or arbitrary if rows is the constant 1 */
} tn_pointwise_site;
typedef struct tn_pointwise_table {
  uint32_t size;
  /* TN_OPSET of the headers whose opcodes it knows: the host passes it no program with later ones, and refuses a
   * program that no table for the device can take. */
  uint32_t opset;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors,
                       const tn_pointwise_site* site, tn_prepared* prepared);
} tn_pointwise_table;

/* "tenon.gemm_epilogue/1": a matrix product C fused with a program that reads C while it is in the cache. The program's
 * grid is that of C: batch * m rows, n columns. inputs: A, B, then the program's inputs in order without number
 * `product`, which is C; outputs: C, then the program's. C has memory of its own; after the call it holds the product
 * if its request is WRITE, else undefined values. Output 1 and above may share the memory of C or of an input. */
#define TN_GEMM_EPILOGUE "tenon.gemm_epilogue/1"
typedef struct tn_gemm_epilogue {
  uint32_t size;
  int32_t product; /* number of the program's input that is C; FULL */
  const tn_gemm* gemm;
  const tn_pointwise_site* site; /* inputs and outputs of the program, C among the inputs */
} tn_gemm_epilogue;
typedef struct tn_gemm_epilogue_table {
  uint32_t size;
  uint32_t opset; /* as in tn_pointwise_table */
  /* [setup] TN_OK if one call is faster than two, else TN_UNSUPPORTED without a report; or TN_OUT_OF_MEMORY. */
  tn_status (*supports)(void* device, const tn_errors* errors, const tn_gemm_epilogue* epilogue);
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors,
                       const tn_gemm_epilogue* epilogue, tn_prepared* prepared);
} tn_gemm_epilogue_table;

/* "tenon.packed_gemm/1": products that read the same B many times, as those of the steps of a loop do: B is copied once
 * into an order of the device's own. The products have batch 1, A [m, k] without TN_TRANSPOSE_A, and the rules of
 * "tenon.gemm/1" for the bits of C.
 *   pack:     inputs B; outputs uint8 [bytes]
 *   multiply: inputs A, and what pack made of B for the same dtype, n, k and flags; outputs C
 *   epilogue: the same with an epilogue, operands as of "tenon.gemm_epilogue/1" */
#define TN_PACKED_GEMM "tenon.packed_gemm/1"
typedef struct tn_packed_gemm_table {
  uint32_t size;
  uint32_t reserved;
  /* [setup] Sets *bytes, at least 1, and returns TN_OK if a packed B is faster to read; else TN_UNSUPPORTED without a
   * report. gemm: of multiply. */
  tn_status (*packed_bytes)(void* device, const tn_errors* errors, const tn_gemm* gemm, uint64_t* bytes);
  tn_status (*prepare_pack)(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                            tn_prepared* prepared);
  tn_status (*prepare_multiply)(void* device, const tn_services* services, const tn_errors* errors, const tn_gemm* gemm,
                                tn_prepared* prepared);
  /* Of epilogues that the device's tn_gemm_epilogue_table supports; null: such products read B itself. */
  tn_status (*prepare_epilogue)(void* device, const tn_services* services, const tn_errors* errors,
                                const tn_gemm_epilogue* epilogue, tn_prepared* prepared);
} tn_packed_gemm_table;

/* "tenon.gather/1": rows of a table [height, width] by ids [count].
 *   gather:      inputs table, ids; outputs [count, width]
 *   scatter_add: inputs rows [count, width], ids; outputs [height, width], summed in the order of the ids
 *   gather_sum:  inputs table, ids, offsets int64 [segments + 1]; outputs [segments, width], the sums over ids
 *                offsets[s] to offsets[s + 1] - 1, in their order
 * An id outside [0, height) ends the step with TN_BAD_DATA naming it; memory outside the table is never accessed. */
#define TN_GATHER "tenon.gather/1"
enum { TN_GATHER_ROWS = 0, TN_SCATTER_ADD = 1, TN_GATHER_SUM = 2 };
typedef struct tn_gather {
  uint32_t size;
  tn_dtype dtype;
  tn_dtype ids; /* TN_I32 or TN_I64 */
  uint32_t op;  /* TN_GATHER_ROWS, TN_SCATTER_ADD, TN_GATHER_SUM */
  tn_dim height, width, count;
  tn_dim segments; /* TN_GATHER_SUM */
} tn_gather;
typedef struct tn_gather_table {
  uint32_t size;
  uint32_t reserved;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors, const tn_gather* gather,
                       tn_prepared* prepared);
} tn_gather_table;

/* "tenon.gather_gemm/1": products "tenon.gemm/1" of which A, B or both are rows of tables, read where they lie: rows
 * number 0, 1, 2 ... of the matrices, as these are stored, one matrix after the other, are the rows ids[0], ids[1],
 * ids[2] ... of the table. inputs: A or its table [height, columns], B or its table, the ids of A or null, those of B
 * or null; outputs: C, with the bits that a gather of the rows and the product give. Errors of ids: as in gather,
 * before anything is written. */
#define TN_GATHER_GEMM "tenon.gather_gemm/1"
typedef struct tn_gathered {
  uint32_t size;
  tn_dtype ids; /* TN_I32 or TN_I64 */
  tn_dim height;
} tn_gathered;
typedef struct tn_gather_gemm {
  uint32_t size;
  uint32_t reserved;
  const tn_gemm* gemm;
  const tn_gathered* a; /* null: A is no table */
  const tn_gathered* b; /* null: B is no table */
} tn_gather_gemm;
typedef struct tn_gather_gemm_table {
  uint32_t size;
  uint32_t reserved;
  /* [setup] TN_OK if one call is faster than the gathers and the product, else TN_UNSUPPORTED without a report. */
  tn_status (*supports)(void* device, const tn_errors* errors, const tn_gather_gemm* product);
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors,
                       const tn_gather_gemm* product, tn_prepared* prepared);
} tn_gather_gemm_table;

/* "tenon.move/1": copies boxes of row-major tensors of one element type into one tensor (concat, slice, pad,
 * transpose). Element x of a part's box is read at index `from_start + x` of input number `input` and written at index
 * y of the output, y[axes[i]] = to_start[axes[i]] + x[i]. The boxes do not overlap in the output. */
#define TN_MOVE "tenon.move/1"
typedef struct tn_move_part {
  uint32_t size;
  uint32_t input;
  const tn_dim* from;        /* [rank] the input's shape */
  const tn_dim* box;         /* [rank] in the order of the input's dimensions */
  const int64_t* from_start; /* [rank] in the order of the input's dimensions */
  const int64_t* to_start;   /* [rank] in the order of the output's */
  const int32_t* axes;       /* [rank] the output's dimension of each dimension of the input */
} tn_move_part;
typedef struct tn_move {
  uint32_t size;
  tn_dtype dtype;
  int32_t rank; /* of inputs and output, at most TN_MAX_RANK */
  uint32_t parts_count;
  const tn_dim* to; /* [rank] the output's shape */
  const tn_move_part* const* parts;
  uint32_t fill; /* 1: the boxes do not cover the output; WRITE sets the rest to 0 */
  uint32_t reserved;
} tn_move;
typedef struct tn_move_table {
  uint32_t size;
  uint32_t reserved;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors, const tn_move* move,
                       tn_prepared* prepared);
} tn_move_table;

/* "tenon.segment/1": TN_SEGMENT_* of builder.h. inputs: the value (null if the op takes none), offsets int64
 * [segments + 1]; outputs: one. The last offset is the number of rows. */
#define TN_SEGMENT "tenon.segment/1"
typedef struct tn_segment {
  uint32_t size;
  int32_t op;
  tn_dtype dtype; /* of the value; TN_I64 without a value */
  uint32_t reserved;
  int64_t by;
  tn_dim rows, segments, width;
} tn_segment;
typedef struct tn_segment_table {
  uint32_t size;
  uint32_t reserved;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors, const tn_segment* segment,
                       tn_prepared* prepared);
} tn_segment_table;

/* "tenon.argsort/1": tn_builder.argsort. inputs: values [rows, columns]; outputs: positions int64 [rows, count]. */
#define TN_ARGSORT "tenon.argsort/1"
typedef struct tn_argsort {
  uint32_t size;
  tn_dtype dtype; /* TN_F32 or TN_F64 */
  uint32_t flags; /* TN_SORT_* */
  uint32_t reserved;
  tn_dim rows, columns, count; /* count <= columns */
} tn_argsort;
typedef struct tn_argsort_table {
  uint32_t size;
  uint32_t reserved;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors, const tn_argsort* argsort,
                       tn_prepared* prepared);
} tn_argsort_table;

/* "tenon.prefix_sum/1": tn_builder.prefix_sum. inputs: values [rows, columns]; outputs: sums [rows, columns], whose
 * bits follow from the row, dtype, columns and flags alone. */
#define TN_PREFIX_SUM "tenon.prefix_sum/1"
typedef struct tn_prefix_sum {
  uint32_t size;
  tn_dtype dtype; /* TN_F32 or TN_F64 */
  uint32_t flags; /* TN_SUM_* */
  uint32_t reserved;
  tn_dim rows, columns;
} tn_prefix_sum;
typedef struct tn_prefix_sum_table {
  uint32_t size;
  uint32_t reserved;
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors,
                       const tn_prefix_sum* prefix_sum, tn_prepared* prepared);
} tn_prefix_sum_table;

/* "tenon.row_sparse/1": row-sparse gradients, TN_ROW_SPARSE tensors.
 *
 * coalesce: sums contributions to rows of a table [height, width] into one TN_ROW_SPARSE tensor. Each id is in it once,
 * in order of first occurrence; values are summed in the order of the parts, then of the ids. WRITE replaces the
 * rows, ADD adds to them. The tensor's capacity suffices. inputs, for each part: values, ids [count], offsets int64
 * [segments + 1] or null. Without offsets row i of the values belongs to ids[i]; with offsets the values are
 * [segments, width], and row s belongs to ids[i] for i in [offsets[s], offsets[s + 1]). Errors of ids: as in gather.
 * update: a pointwise program over the rows of a TN_ROW_SPARSE tensor, at most `rows` of its grid; FULL and PER_ROW
 * operands marked as indexed are tables: row r of the grid is row ids[r] of them. */
#define TN_ROW_SPARSE_TABLE "tenon.row_sparse/1"
typedef struct tn_coalesce_part {
  uint32_t size;
  tn_dtype ids; /* TN_I32 or TN_I64 */
  tn_dim count;
  uint32_t has_offsets;
  uint32_t reserved;
  tn_dim segments;
} tn_coalesce_part;
typedef struct tn_coalesce {
  uint32_t size;
  tn_dtype dtype; /* TN_F32 or TN_F64 */
  tn_dim height, width;
  uint32_t parts_count;
  uint32_t reserved;
  const tn_coalesce_part* const* parts;
} tn_coalesce;
typedef struct tn_row_sparse_update {
  uint32_t size;
  int32_t rows; /* number of the program's input that is the TN_ROW_SPARSE tensor; FULL */
  const tn_pointwise_site* site;
  const uint8_t* indexed_inputs;  /* [inputs_count] 1: indexed */
  const uint8_t* indexed_outputs; /* [outputs_count] */
} tn_row_sparse_update;
typedef struct tn_row_sparse_table {
  uint32_t size;
  uint32_t opset; /* of the programs of updates, as in tn_pointwise_table */
  tn_status (*prepare_coalesce)(void* device, const tn_services* services, const tn_errors* errors,
                                const tn_coalesce* coalesce, tn_prepared* prepared);
  tn_status (*prepare_update)(void* device, const tn_services* services, const tn_errors* errors,
                              const tn_row_sparse_update* update, tn_prepared* prepared);
} tn_row_sparse_table;

/* "tenon.coalesce_products/1": coalesce of "tenon.row_sparse/1" whose contributions are not in memory one by one: those
 * that products "tenon.gemm/1" with k = 1 would write. The values of a part are rows [segments, width], or rows of a
 * table by `segments` ids of their own. Segment s has the ids offsets[s] to offsets[s + 1] - 1; without offsets every
 * segment has as many ids, count / segments. Id i of segment s contributes row s, with weights alpha * (weights[i] *
 * row s), rounded after each multiplication. inputs, for each part: values or table, ids, offsets or null, weights
 * [count] or null, the ids of the values [segments] or null. The output and errors of ids: as in coalesce. */
#define TN_COALESCE_PRODUCTS "tenon.coalesce_products/1"
typedef struct tn_product_part {
  uint32_t size;
  tn_dtype ids; /* TN_I32 or TN_I64 */
  tn_dim count, segments;
  uint32_t has_offsets, has_weights;
  double alpha;
  const tn_gathered* values; /* null: the values are no table */
} tn_product_part;
typedef struct tn_coalesce_products {
  uint32_t size;
  tn_dtype dtype; /* TN_F32 or TN_F64 */
  tn_dim height, width;
  uint32_t parts_count;
  uint32_t reserved;
  const tn_product_part* const* parts;
} tn_coalesce_products;
typedef struct tn_coalesce_products_table {
  uint32_t size;
  uint32_t reserved;
  /* [setup] TN_OK if one call is faster than the products and a coalesce, else TN_UNSUPPORTED without a report. */
  tn_status (*supports)(void* device, const tn_errors* errors, const tn_coalesce_products* coalesce);
  tn_status (*prepare)(void* device, const tn_services* services, const tn_errors* errors,
                       const tn_coalesce_products* coalesce, tn_prepared* prepared);
} tn_coalesce_products_table;

/* A better table for a device that another plugin offers: a primitive family above, for a device kind. Before each
 * prepare the host asks the providers with a score above 0 in the order of their scores; the first that does not return
 * TN_UNSUPPORTED prepares the call, else the device's own table does. `plan` shows its name. Immutable; goes into the
 * manifest. */
typedef struct tn_provider {
  uint32_t size;
  int32_t score;
  const char* device; /* kind: "cpu" */
  const char* id;     /* of the table: TN_GEMM */
  const char* name;   /* "onednn_gemm" */
  /* Its functions get as `device` the object of `shared`; the device's instance if that is null. */
  const void* table;
  const tn_shared* shared;
} tn_provider;

/* "tenon.native/1": handles of the device's own library, for plugins that share its streams. */
#define TN_NATIVE "tenon.native/1"
typedef struct tn_native_table {
  uint32_t size;
  uint32_t reserved;
  /* [any] A CUstream, for instance; borrowed until the stream is destroyed. */
  void* (*stream)(void* device, void* stream);
} tn_native_table;

#ifdef __cplusplus
}
#endif
#endif
