/* Tenon SDK: symbolic shapes, tensor specifications, tensors. SPDX-License-Identifier: MIT */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include <dlpack/dlpack.h>
#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_MAX_RANK 8

/* DLTensor is part of this interface. Its layout is that of DLPack 0.2 and every version since; the name `device` of
 * its second member came with DLPack 0.6. */
typedef char tn_dltensor_has_48_bytes[sizeof(DLTensor) == 48 && offsetof(DLTensor, device) == 8 &&
                                              offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20 &&
                                              offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32 &&
                                              offsetof(DLTensor, byte_offset) == 40
                                          ? 1
                                          : -1];

/* Symbols a dimension can depend on. A machine is planned once for the bounds and runs any size below. */
enum {
  TN_SYMBOL_NONE = 0,         /* a constant: the value is `offset` */
  TN_SYMBOL_SAMPLES = 1,      /* samples in the minibatch */
  TN_SYMBOL_FIRST_RAGGED = 16 /* this and above: rows of each ragged level, numbered by the host; the numbers between
                                 are not given out yet */
};
#define TN_UNBOUNDED ((int64_t)-1)

/* One dimension: value = coefficient * symbol + offset, never more than bound. Never negative: the offset is at least
 * 0, and the coefficient of a symbol at least 1. Frozen. */
typedef struct tn_dim {
  int64_t coefficient;
  int64_t offset;
  int64_t bound; /* set by the host: TN_UNBOUNDED until a machine is planned; for a constant, the constant */
  int32_t symbol;
  int32_t reserved; /* 0 for ever */
} tn_dim;

static inline tn_dim tn_dim_constant(int64_t n) {
  tn_dim d = {0, 0, 0, TN_SYMBOL_NONE, 0};
  d.offset = n;
  d.bound = n;
  return d;
}
static inline tn_dim tn_dim_symbol(int32_t symbol) {
  tn_dim d = {1, 0, TN_UNBOUNDED, 0, 0};
  d.symbol = symbol;
  return d;
}
/* The value of a dimension for the current symbols (tn_execution.symbols). */
static inline int64_t tn_dim_value(const tn_dim* d, const int64_t* symbols) {
  return d->symbol == TN_SYMBOL_NONE ? d->offset : d->coefficient * symbols[d->symbol] + d->offset;
}

/* What is known of a tensor before it has memory. dims is borrowed as long as the spec is. The host refuses other
 * storages and layouts than those below, and element types of more than one lane. */
typedef struct tn_spec {
  uint32_t size;
  tn_dtype dtype;
  int32_t storage; /* TN_DENSE, ... */
  int32_t rank;    /* 0 (one element) to TN_MAX_RANK */
  const tn_dim* dims;
  uint32_t layout; /* 0: row-major; other numbers are not given out yet */
  uint32_t levels; /* TN_RAGGED: 1 = sequences, 2 = sub-sequences; else 0 */
  /* TN_RAGGED: [levels] what the rows lie in, from the inside: with two levels the inner sequences, last the samples.
   * TN_CSR: [1] the entries. Else null. dims[0] is the rows, of TN_CSR the samples. */
  const tn_dim* outer;
} tn_spec;

/* Parts of the storages that are not dense; all pointers are device memory. `dl` of the tensor holds the values. */
typedef struct tn_row_sparse {
  uint32_t size;
  uint32_t reserved;
  int64_t capacity; /* rows that fit */
  int64_t* count;   /* rows in use */
  int64_t* ids;     /* [capacity] which row of the full tensor each value row is */
} tn_row_sparse;
typedef struct tn_ragged {
  uint32_t size;
  uint32_t levels;
  const int64_t* capacity; /* [levels] sequences that fit, from the inside, as in tn_spec.outer */
  int64_t* const* offsets; /* [levels] each [capacity + 1]: start rows; the last one in use is the end */
} tn_ragged;
typedef struct tn_csr {
  uint32_t size;
  uint32_t has_values; /* 0: every present entry is 1 and dl.data is null */
  int64_t capacity;    /* entries that fit */
  int64_t* indptr;     /* [samples + 1] */
  int64_t* ids;        /* [capacity] column of each entry */
} tn_csr;

/* A tensor with memory. The host owns the struct, the memory and the shape array, and rewrites them between
 * calls, never during one. dl.shape holds the current sizes; where a call writes the size of a dimension (TN_ROWS_DATA)
 * it holds the bound, and the size is in tn_execution.symbols. Elements are row-major: dl.strides is null, or says so.
 * Values begin at tn_data: dl.byte_offset need not be 0. */
typedef struct tn_tensor {
  uint32_t size;
  int32_t storage;
  uint32_t layout; /* as in tn_spec */
  /* Bytes; the values are at least so aligned: 64 in all calls but those of updaters, and of calls with
   * TN_TRAIT_ANY_ALIGNMENT in the steps of scans. */
  uint32_t alignment;
  uint64_t flags; /* 0: none are given out yet */
  DLTensor dl;
  const void* part; /* tn_row_sparse, tn_ragged or tn_csr, by storage; null for dense */
} tn_tensor;

/* The first byte of a tensor's values: dl.data and dl.byte_offset. Null for a null tensor, and where dl.data is null.
 */
static inline uint8_t* tn_data(const tn_tensor* tensor) {
  return tensor == NULL || tensor->dl.data == NULL ? NULL : (uint8_t*)tensor->dl.data + tensor->dl.byte_offset;
}
/* The current number of elements; 1 for a tensor of rank 0. */
static inline int64_t tn_elements(const tn_tensor* tensor) {
  int64_t elements = 1;
  for (int32_t i = 0; i < tensor->dl.ndim; ++i) elements *= tensor->dl.shape[i];
  return elements;
}

#ifdef __cplusplus
}
#endif
#endif
