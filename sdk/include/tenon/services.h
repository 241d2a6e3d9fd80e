/* Tenon SDK: what the host gives a plugin: error sink, services by id, threads, the execution context.
 * SPDX-License-Identifier: MIT */
#ifndef TENON_SERVICES_H
#define TENON_SERVICES_H

#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One failure. All pointers are the caller's and may die when report returns. */
typedef struct tn_error_report {
  uint32_t size;
  tn_status code;
  const char* message;     /* what was wrong, in a sentence without the component's own name */
  const char* port;        /* input, output, attribute or file the failure is about, or null */
  const tn_spec* expected; /* or null */
  const tn_spec* actual;   /* or null */
} tn_error_report;

/* Where failures go. The host adds which component and layer it was talking to. */
typedef struct tn_errors {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* [any] Copies the report; the last one before the failing return counts. Never fails. */
  void (*report)(void* self, const tn_error_report* report);
} tn_errors;

/* Reports `code` with a message and returns it: `return tn_fail(errors, TN_INVALID, "size", "must be even");` */
static inline tn_status tn_fail(const tn_errors* errors, tn_status code, const char* port, const char* message) {
  tn_error_report r = {sizeof(tn_error_report), 0, NULL, NULL, NULL, NULL};
  r.code = code;
  r.message = message;
  r.port = port;
  errors->report(errors->self, &r);
  return code;
}

/* The host's threads. Plugins create no compute threads of their own. */
typedef struct tn_parallel {
  uint32_t size;
  int32_t workers; /* threads that may take part; worker ids are 0 .. workers - 1 */
  void* self;
  /* [run] Calls task(argument, index, worker) once for each index in [0, count), in any order, and returns when
   * all are done. A task must not depend on which worker runs it or on how many there are. May run everything on
   * the calling thread; always does so when called from inside a task. */
  void (*for_each)(void* self, int64_t count, void (*task)(void* argument, int64_t index, int32_t worker),
                   void* argument);
  /* [run] Several for_each behind one another as one region, with a barrier between two phases: calls
   * task(argument, phase, index, worker) once for each phase in [0, count) and each index in [0, sizes[phase]), and
   * begins no task of a phase before all of the one before it are done; what those wrote is seen. Costs less than as
   * many calls of for_each, whose rules hold. Null in a host that is older. */
  void (*phases)(void* self, int32_t count, const int64_t* sizes,
                 void (*task)(void* argument, int32_t phase, int64_t index, int32_t worker), void* argument);
} tn_parallel;

/* Services of the host, handed to every create, open and prepare call and valid until the object made is
 * destroyed. Never keep one in a static: two hosts may share one loaded image. */
typedef struct tn_services {
  uint32_t size;
  uint16_t abi_major; /* what the host offers */
  uint16_t abi_minor;
  void* self;
  /* [any] A service by id ("tenon.log/1"), or null. The table lives as long as these services. */
  const void* (*extension)(void* self, const char* id);
} tn_services;

/* "tenon.log/1": lines for the application's log. */
#define TN_LOG "tenon.log/1"
typedef struct tn_log {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* [any] level: 0 debug, 1 info, 2 warning, 3 error. The text is copied. */
  void (*write)(void* self, int32_t level, const char* message);
} tn_log;

/* "tenon.memory/1": counted host memory for what a plugin keeps between calls. */
#define TN_MEMORY "tenon.memory/1"
typedef struct tn_memory {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* [setup][io] 64-byte aligned, or null when there is no more. */
  void* (*allocate)(void* self, uint64_t bytes);
  /* [setup][io] `bytes` as allocated; null is ignored. */
  void (*release)(void* self, void* memory, uint64_t bytes);
} tn_memory;

/* Varies per step and is read through device memory. Frozen. */
typedef struct tn_random {
  uint64_t seed;
  uint64_t step; /* in training the number of updates that the parameters had, over all trainings; else 0 */
} tn_random;

/* Given to every run. Valid during the call. */
typedef struct tn_execution {
  uint32_t size;
  uint32_t reserved;
  void* device;            /* the instance the device's open made */
  void* stream;            /* enqueue here; never synchronise */
  const int64_t* symbols;  /* device memory: current value of each symbol */
  const tn_random* random; /* device memory */
  const tn_parallel* parallel;
  const tn_errors* errors;
} tn_execution;

/* What to do with one output of a backward kernel. */
enum { TN_REQUEST_NONE = 0, TN_REQUEST_WRITE = 1, TN_REQUEST_ADD = 2 };

/* The operands of one run. The host owns and rewrites all of it between calls. */
typedef struct tn_call {
  uint32_t size;
  uint32_t inputs_count;
  uint32_t outputs_count;
  uint32_t reserved;
  const tn_tensor* const* inputs; /* an entry is null where an optional operand is absent */
  tn_tensor* const* outputs;      /* an entry is null where its request is NONE */
  const uint8_t* requests;        /* [outputs_count] TN_REQUEST_* */
  void* workspace;                /* as many bytes as prepare asked for; contents undefined at entry */
  uint64_t node;                  /* identity of this call, for counter-based random numbers */
} tn_call;

/* A call that was prepared: the host stores it in a flat array and runs it every step. */
typedef struct tn_prepared {
  uint32_t size;
  uint32_t traits;          /* TN_TRAIT_* */
  void* binding;            /* the callee's own; handed back to run and destroy */
  uint64_t workspace_bytes; /* 64-byte aligned memory that is the call's own while it runs */
  /* [run] Enqueues the work. Anything but TN_OK ends the step, with a report in execution->errors. */
  tn_status (*run)(void* binding, const tn_execution* execution, const tn_call* call);
  /* [setup] Frees the binding. May be null when there is nothing to free. */
  void (*destroy)(void* binding);
} tn_prepared;

#ifdef __cplusplus
}
#endif
#endif
