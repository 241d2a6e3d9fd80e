/* Tenon SDK: the host's services for plugins: error sink, services by id, threads, the execution context.
 * SPDX-License-Identifier: MIT */
#ifndef TENON_SERVICES_H
#define TENON_SERVICES_H

#include <tenon/attribute.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One failure. All pointers belong to the caller and are valid until report returns. */
typedef struct tn_error_report {
  uint32_t size;
  tn_status code;
  const char* message;     /* the fault, in a sentence without the component's own name */
  const char* port;        /* the input, output, attribute or file at fault, or null */
  const tn_spec* expected; /* or null */
  const tn_spec* actual;   /* or null */
} tn_error_report;

/* Receives failures. The host adds the names of component and layer. */
typedef struct tn_errors {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* [any] Copies the report. The host uses the last one before the failing return. Never fails. */
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
   * all are done. A task must not depend on its worker or on the number of workers. May run everything on the
   * calling thread, and always does so when called from inside a task. */
  void (*for_each)(void* self, int64_t count, void (*task)(void* argument, int64_t index, int32_t worker),
                   void* argument);
  /* [run] A sequence of for_each in one region, with a barrier after each phase: calls task(argument, phase, index,
   * worker) once for each phase in [0, count) and each index in [0, sizes[phase]). The tasks of a phase start after all
   * tasks of the phase before are done, and see their writes. The rules of for_each hold. Cheaper than `count` calls of
   * for_each. */
  void (*phases)(void* self, int32_t count, const int64_t* sizes,
                 void (*task)(void* argument, int32_t phase, int64_t index, int32_t worker), void* argument);
} tn_parallel;

/* Services of the host, passed to every create, open and prepare call and valid until the object made by it is
 * destroyed. Never store them in a static: two hosts may share one loaded image. */
typedef struct tn_services {
  uint32_t size;
  uint16_t abi_major; /* the host's version */
  uint16_t abi_minor;
  void* self;
  /* [any] A service by id ("tenon.log/1"), or null. The table lives as long as these services. */
  const void* (*extension)(void* self, const char* id);
} tn_services;

/* TN_TRAIT_ANY_ALIGNMENT on hosts that know it, 0 on older ones, which refuse unknown traits. For a call that takes
 * operands of any alignment, in plugins for all hosts. */
static inline uint32_t tn_any_alignment(const tn_services* services) {
  return services->abi_major > 0 || services->abi_minor >= 4 ? 64u : 0u;
}

/* TN_TRAIT_PORTABLE, likewise: 0 on hosts that do not know it. */
static inline uint32_t tn_portable(const tn_services* services) {
  return services->abi_major > 0 || services->abi_minor >= 4 ? 128u : 0u;
}

/* "tenon.log/1": lines for the application's log. */
#define TN_LOG "tenon.log/1"
typedef struct tn_log {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* [any] level: 0 debug, 1 info, 2 warning, 3 error. The text is copied. */
  void (*write)(void* self, int32_t level, const char* message);
} tn_log;

/* "tenon.options/1": the options of plugins, as the deployer of this host set them in its plugin set. Since 0.3. */
#define TN_OPTIONS "tenon.options/1"
typedef struct tn_options {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* [any] The options of the plugin with this id, in the order of tn_plugin.options: the values of the plugin set, else
   * the defaults. Null if this host uses no plugin of that id, and, for plugins that are built with 0.4 or later, of
   * every id but that of the plugin itself. They never change on a host that has loaded the plugin, and live as long as
   * these services. Each host has values of its own. */
  const tn_attributes* (*of)(void* self, const char* plugin);
} tn_options;

/* [any] The options of a plugin on the host of these services; null if it has none, as every host of 0.2. */
static inline const tn_attributes* tn_options_of(const tn_services* services, const char* plugin) {
  const tn_options* options = (const tn_options*)services->extension(services->self, TN_OPTIONS);
  return options == NULL ? NULL : options->of(options->self, plugin);
}

/* An open device, for the kernels and providers that run on it. Lives as long as the objects made with it. */
typedef struct tn_device {
  uint32_t size;
  int32_t index;    /* among the devices of its kind */
  const char* kind; /* "cpu", "cuda" */
  void* instance;   /* the object that the device's open made: first argument of the functions of its tables */
  void* self;
  /* [any] A table of the device by id (tenon/device.h), or null if it does not offer one with functions in the first
   * `bytes` bytes. Of a table that a shorter one of an older plugin replaces, the rest is zero. */
  const void* (*table)(void* self, const char* id, uint32_t bytes);
} tn_device;

#if TN_TARGET_MINOR >= 4
/* How the host uses a shared object. Since 0.4: a plugin that states one requires hosts of 0.4. */
enum {
  /* The host calls one function at a time that gets the object, or a binding that was made with it: for a library that
   * must not be entered by two threads. */
  TN_SHARED_ONE_AT_A_TIME = 1,
  /* One object for each stream of the host, instead of one for the device, such as a handle with a workspace of its
   * own. Calls that run on one stream do not overlap. Closed with the last binding that was made with it. */
  TN_SHARED_PER_STREAM = 2
};
#endif

/* An object that all kernels and providers of a plugin share on a device, such as a handle of a vendor's library. The
 * host makes one for each open device and tn_shared table, right before the first query or prepare that gets it. Unless
 * `flags` states otherwise, several bindings use it at the same time, on several threads and streams, and while query
 * and prepare use it. */
typedef struct tn_shared {
  uint32_t size;
#if TN_TARGET_MINOR >= 4
  uint32_t flags; /* TN_SHARED_*; before 0.4 a reserved member, which hosts of 0.2 and 0.3 want to be 0 */
#else
  uint32_t reserved;
#endif
  /* [setup] Makes the object. On failure reports the reason to `errors`, which is valid until open returns, and does
   * not write *shared. TN_UNSUPPORTED: the kernels and providers that need the object are passed over on this device,
   * and open is not called for it again. */
  tn_status (*open)(const tn_services* services, const tn_errors* errors, const tn_device* device, void* user,
                    void** shared);
  /* [setup] Frees it, after all bindings made with it, before the device is closed. */
  void (*close)(void* shared);
  void* user; /* passed to open */
} tn_shared;

/* "tenon.memory/1": counted host memory for a plugin's data that outlives a call. */
#define TN_MEMORY "tenon.memory/1"
typedef struct tn_memory {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* [setup][io] 64-byte aligned memory, or null if out of memory. */
  void* (*allocate)(void* self, uint64_t bytes);
  /* [setup][io] Frees memory; `bytes` as allocated; null is ignored. */
  void (*release)(void* self, void* memory, uint64_t bytes);
} tn_memory;

/* Seed and step of random numbers, in device memory, rewritten every step. Frozen. */
typedef struct tn_random {
  uint64_t seed;
  /* Low 32 bits: in training the number of updates of the parameters so far, over all trainings; else 0. High 32 bits:
   * number of the stream, such as an iteration of a loop or a shard; 0 outside of them. Both enter the counter of
   * program.h, so that streams draw different numbers. */
  uint64_t step;
} tn_random;

/* The context of a run. Valid during the call. */
typedef struct tn_execution {
  uint32_t size;
  uint32_t reserved;
  void* device;            /* the instance the device's open made */
  void* stream;            /* enqueue here; never synchronise */
  const int64_t* symbols;  /* device memory: current value of each symbol */
  const tn_random* random; /* device memory */
  const tn_parallel* parallel;
  const tn_errors* errors;
#if TN_TARGET_MINOR >= 3
  /* Since 0.3. Host memory, valid until run returns: the values that `symbols` will have when the work runs. Of calls
   * with TN_TRAIT_HOST_SIZES never null. */
  const int64_t* host_symbols;
#endif
} tn_execution;

/* How a call writes an output: not at all, replacing its values, or adding to them. */
enum { TN_REQUEST_NONE = 0, TN_REQUEST_WRITE = 1, TN_REQUEST_ADD = 2 };

/* The operands of one run. Owned by the host, which rewrites them between calls. */
typedef struct tn_call {
  uint32_t size;
  uint32_t inputs_count;
  uint32_t outputs_count;
  uint32_t reserved;
  const tn_tensor* const* inputs; /* null entry: absent optional operand */
  tn_tensor* const* outputs;      /* null entry: its request is NONE */
  const uint8_t* requests;        /* [outputs_count] TN_REQUEST_* */
  void* workspace;                /* workspace_bytes of tn_prepared; contents undefined at entry */
  /* Native kernels: the first of the draw numbers that query asked for, the same in forward and backward. The draws of
   * program.h with these numbers are the call's own; no program of the machine has them. */
  uint64_t draw;
} tn_call;

/* A prepared call. The host stores it in a flat array and runs it every step. A binding holds nothing that cannot be
 * made again: the host prepares a call anew when its machine grows. After a failed prepare the host calls destroy if
 * the function set both binding and destroy, so a function that frees on failure sets neither. */
typedef struct tn_prepared {
  uint32_t size;
  uint32_t traits;          /* TN_TRAIT_* */
  void* binding;            /* the plugin's data, passed to run and destroy */
  uint64_t workspace_bytes; /* 64-byte aligned memory for the call while it runs */
  /* [run] Enqueues the work. Any status but TN_OK ends the step; the reason is reported to execution->errors. */
  tn_status (*run)(void* binding, const tn_execution* execution, const tn_call* call);
  /* [setup] Frees the binding. May be null if there is nothing to free. */
  void (*destroy)(void* binding);
} tn_prepared;

#ifdef __cplusplus
}
#endif
#endif
