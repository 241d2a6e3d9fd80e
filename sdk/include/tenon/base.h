/* Tenon SDK: status codes, element types, growth rules, thread tags. SPDX-License-Identifier: MIT
 *
 * Rules that hold in every SDK header
 * - Pure C99. A plugin imports no symbol from the host: both sides exchange tables of function pointers.
 * - A struct whose first member is `uint32_t size` may grow at its end. It is passed by pointer only; the side that
 *   makes it sets `size` to sizeof; the other side checks TN_HAS before it reads or writes a member newer than ABI 0.2,
 *   neither reads nor writes what lies behind the members that it knows, and wants no exact size.
 *   The host refuses one with a smaller size than in 0.2, such as 0 from a member that was forgotten. A struct without
 *   `size` is frozen for ever and may be passed by value in arrays.
 * - Strings are NUL-terminated UTF-8. Reserved members and unknown bits of flags are zero: the host refuses others,
 *   since a later version may give them a meaning.
 * - If a function that the host lends for a call fails, the call fails with that reason, whatever the plugin returns,
 *   unless the function's comment says otherwise.
 * - Ownership has three forms: the caller's buffer; borrowed until a stated moment; a handle with its own destroy
 *   function. Memory allocated by one side is never freed by the other.
 * - A function returns a tn_status (or a count or index, negative on failure) and reports the reason to the error
 *   sink passed to it. It never throws, aborts, prints or exits. A status that the host does not know counts as
 *   TN_PLUGIN_FAULT.
 *
 * Thread tags, written in brackets above each function pointer
 *   [load]   while a host loads or describes a plugin; other hosts may do so at the same moment
 *   [setup]  building, planning, preparing; one call at a time per host
 *   [run]    inside a step; one call at a time per binding, several bindings at once; must not allocate, lock,
 *            synchronise with a device, or read device values on the host
 *   [io]     reader work; one call at a time per instance, on any thread
 *   [any]    any thread, any number at once
 */
#ifndef TENON_BASE_H
#define TENON_BASE_H

#include <stddef.h>
#include <stdint.h>

/* Tables have one layout, that of 64-bit little-endian machines, on which they have no padding. */
#if defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ != 8
#error "Tenon needs pointers of 64 bits"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Tenon needs a little-endian machine"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The interface version of these headers. Minor: raised by every addition. Major: raised by incompatible changes. From
 * 0.2 on every later host 0.x runs a plugin that was built with 0.2 or later; only 1.0 may refuse it. Plugins built
 * with 0.1 are refused. */
#define TN_ABI_MAJOR 0
#define TN_ABI_MINOR 4
#define TN_ABI_OLDEST 2 /* the oldest `built` of a plugin that hosts of this version run */

/* The oldest minor version of a host on which the plugin is to run: a plugin may define it, before the first header, as
 * 2 or more. Structs then end where those of that version end, so that a newer member or function does not compile, nor
 * does a newer trait. Tables by id are always declared: a host that does not know one does not ask for it, and answers
 * null. TN_TARGET_MINOR is then also `required` of tn_abi; tn::Plugin states it itself. */
#ifdef TN_TARGET_MINOR
#define TN_TARGET_STATED 1
#else
#define TN_TARGET_STATED 0
#define TN_TARGET_MINOR TN_ABI_MINOR
#endif
#if TN_TARGET_MINOR < TN_ABI_OLDEST || TN_TARGET_MINOR > TN_ABI_MINOR
#error "TN_TARGET_MINOR must be a minor version of the interface from TN_ABI_OLDEST to TN_ABI_MINOR"
#endif

/* "Frozen" structs never grow. Their reserved members, too, may get a meaning; 0 keeps the present one.
 *
 * A plugin's versions: it was built with {major, built} and needs at least {major, required}. Frozen. */
typedef struct tn_abi {
  uint16_t major;
  uint16_t built;    /* minor version of the headers it was compiled with */
  uint16_t required; /* oldest host minor it can run on */
  uint16_t reserved;
} tn_abi;

/* True if the sized struct *p, made by the other side, holds `member`. */
#define TN_HAS(p, type, member) ((p)->size >= offsetof(type, member) + sizeof((p)->member)) /* NOLINT(*-sizeof-*) */

typedef int32_t tn_status;
enum {
  TN_OK = 0,
  TN_INVALID = 1,     /* an argument, attribute or shape is wrong */
  TN_MISUSE = 2,      /* a call out of order, a stale or foreign handle, a null pointer */
  TN_NOT_FOUND = 3,   /* no such file, type, name */
  TN_UNSUPPORTED = 4, /* understood, but not offered here */
  TN_BAD_DATA = 5,    /* a data or model file is damaged or of another format */
  TN_BAD_CONFIG = 6,  /* a job file is wrong */
  TN_OUT_OF_MEMORY = 7,
  TN_IO = 8,             /* the system refused to read or write */
  TN_REFUSED = 9,        /* a plugin was not admitted */
  TN_NEED_CAPACITY = 10, /* the caller's buffer is too small; nothing was consumed */
  TN_END = 11,           /* a reader's pass is over; not a failure */
  TN_CANCELLED = 12,
  TN_NOT_KEPT = 13,     /* the value exists while a step runs but was not declared as kept */
  TN_PLUGIN_FAULT = 14, /* a plugin broke its contract */
  TN_INTERNAL = 15      /* a defect in this project */
};

/* Element type: the three fields of a DLDataType packed as code | bits << 8 | lanes << 16. Types have 1 to 7 bits, or
 * whole bytes. */
typedef uint32_t tn_dtype;
#define TN_DTYPE(code, bits) ((tn_dtype)(code) | ((tn_dtype)(bits) << 8) | ((tn_dtype)1 << 16))
#define TN_COMPUTE ((tn_dtype)0) /* stands for the float type in which the machine computes */
#define TN_I8 TN_DTYPE(0, 8)
#define TN_I16 TN_DTYPE(0, 16)
#define TN_I32 TN_DTYPE(0, 32)
#define TN_I64 TN_DTYPE(0, 64)
#define TN_U8 TN_DTYPE(1, 8)
#define TN_U16 TN_DTYPE(1, 16)
#define TN_U32 TN_DTYPE(1, 32)
#define TN_F16 TN_DTYPE(2, 16)
#define TN_F32 TN_DTYPE(2, 32)
#define TN_F64 TN_DTYPE(2, 64)
#define TN_BF16 TN_DTYPE(4, 16)
#define TN_BOOL TN_DTYPE(6, 8)

static inline uint32_t tn_dtype_code(tn_dtype t) { return t & 0xffu; }
static inline uint32_t tn_dtype_bits(tn_dtype t) { return (t >> 8) & 0xffu; }
/* Bytes of one element; 0 for types of less than 8 bits, whose elements share bytes. */
static inline uint32_t tn_dtype_bytes(tn_dtype t) { return tn_dtype_bits(t) / 8u; }
/* Bytes of `elements` elements, those of less than 8 bits packed without gaps, the first in the lowest bits. */
static inline uint64_t tn_dtype_storage(tn_dtype t, uint64_t elements) {
  return elements / 8u * tn_dtype_bits(t) + (elements % 8u * tn_dtype_bits(t) + 7u) / 8u;
}

/* How the elements are stored. */
enum {
  TN_DENSE = 0,
  TN_ROW_SPARSE = 1, /* a row-sparse gradient: some rows of a [height, ...] tensor */
  TN_RAGGED = 2,     /* concatenated sequences, never padded */
  TN_CSR = 3         /* sparse input vectors */
};

/* Traits of a kernel or reader, for the host's scheduling of its calls. Bits. */
enum {
  TN_TRAIT_OWN_THREADS = 1,   /* starts compute threads of its own; the host gives it one thread */
  TN_TRAIT_HOST_CALLBACK = 2, /* calls back into the application; never captured */
  TN_TRAIT_CAPTURABLE = 4,    /* reads sizes and scalars from device memory only, no dl.shape of a varying dimension */
  TN_TRAIT_NONDETERMINISTIC = 8,
#if TN_TARGET_MINOR >= 3
  /* Of a call: run reads sizes from tn_execution.host_symbols, not from device memory, and what it enqueues is for
   * these sizes. For libraries that take sizes as numbers of the host. Excludes CAPTURABLE. Since 0.3. */
  TN_TRAIT_HOST_SIZES = 16,
  /* Of a call: the bits of a sample's results may depend on the number of samples beside it and on its place among
   * them, such as those of a library that chooses another algorithm for each size. Without it they do not. Since 0.3.
   */
  TN_TRAIT_BATCH_VARIANT = 32,
#endif
#if TN_TARGET_MINOR >= 4
  /* Of a call: run takes operands of any tn_tensor.alignment, in the steps of scans too. Without it every operand is
   * aligned to 64 bytes, except in updates (tn_tensor.alignment): the host copies those that are not. Since 0.4;
   * tn_any_alignment is for all hosts. */
  TN_TRAIT_ANY_ALIGNMENT = 64,
  /* Of a call: its results have the bits of the portable definition of what it computes, number 0 (docs/arithmetic.md),
   * on every processor. A host that is asked for portable bits uses no call without it. A draft. */
  TN_TRAIT_PORTABLE = 128,
  /* Of a call: run may wait for other processes or machines, for a bounded time (rule 8 of the plugin interface). The
   * host calls it where it holds no lock that other calls need. Excludes CAPTURABLE. A draft until a component kind
   * needs it. */
  TN_TRAIT_BLOCKING = 256
#endif
};

/* Since 0.4, a draft. What the bits of computed values follow from: what a host asks for (tn_host_options), and what a
 * plugin states (tn_plugin). */
enum {
  TN_ARITHMETIC_DEFAULT = 0,
  TN_ARITHMETIC_PORTABLE = 1, /* "portable-0": docs/arithmetic.md alone, the same on every processor */
  TN_ARITHMETIC_NATIVE = 2    /* the processor and libraries, too */
};

#ifdef __cplusplus
}
#endif
#endif
