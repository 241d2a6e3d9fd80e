/* Tenon: the values of parameters for applications with several threads. SPDX-License-Identifier: Apache-2.0
 *
 * The rules of a set of parameters. One call at a time writes: a step of tn_train, tn_updater_update,
 * tn_parameters_set, tn_parameters_set_names, tn_parameters_set_metadata. Calls that read, such as tn_machine_forward,
 * tn_test, tn_model_save and tn_parameters_read, may overlap with each other; they wait for a write to end, during a
 * training for the end of its present step. Of another thread than the training's, calls that write are TN_MISUSE until
 * it ends, and so are views: leases and tn_parameters_get. In a handler of tn_train the set is between two steps: its
 * thread may make every call but another training of the set. */
#ifndef TENON_TENON_LEASE_H
#define TENON_TENON_LEASE_H

#include <tenon/slot.h>
#include <tenon/tenon_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives lists of names, which are borrowed during the call. It must not call the host. */
typedef void (*tn_names_sink)(void* user, const tn_names* const* names, uint32_t count);
/* Since 0.4. Call `sink` once with what readers of other data must agree with, by data layer: names of integers
 * (count 0: none; these lists are last), names of columns, type and shape. tn_train stores those of the reader's slots
 * and model files hold them; tn_train, tn_test and tn_infer refuse a reader with others, with TN_INVALID. Of a reader:
 * what a model keeps of its slots, as far as the reader knows it. */
TENON_API tn_status tn_parameters_read_names(tn_host* host, tn_parameters parameters, tn_names_sink sink, void* user,
                                             tn_error* error);
TENON_API tn_status tn_reader_read_names(tn_host* host, tn_reader reader, tn_names_sink sink, void* user,
                                         tn_error* error);
/* Since 0.4, a draft. Gives a set a text that its model files and checkpoints hold in their metadata: tn_model_load
 * reads it, tn_model_describe shows it. key: "tenon.reader", how data is read (docs/model-file.md), or one of the
 * application, such as "com.example.licence"; TN_INVALID for others that begin with "tenon.", and "format". text:
 * UTF-8, copied; null: the set loses it. */
TENON_API tn_status tn_parameters_set_metadata(tn_host* host, tn_parameters parameters, const char* key,
                                               const char* text, tn_error* error);
/* Copies the values of a parameter, row-major, between two steps if another thread trains the set. *bytes: the room on
 * entry, the size of the values on return; TN_NEED_CAPACITY if the room is smaller. */
TENON_API tn_status tn_parameters_read(tn_host* host, tn_parameters parameters, const char* name, void* values,
                                       uint64_t* bytes, tn_error* error);

typedef struct tn_lease {
  uint32_t index, generation;
} tn_lease;

enum {
  TN_LEASE_READ = 0,
  /* The application may write the values. Alone: TN_MISUSE beside any other lease of the set. */
  TN_LEASE_WRITE = 1
};

/* A view of the values of a parameter, without a copy, until tn_lease_release, even if the set is released before.
 *
 * Of a reading lease, memory stays valid during a training that begins later; its thread's handlers may read it,
 * another thread only after the training. Other writes of the set, of other threads than the lease's, are TN_MISUSE
 * while it lives. While a writing lease lives, trainings and calls of other threads on the set are TN_MISUSE. */
TENON_API tn_status tn_parameters_lease(tn_host* host, tn_parameters parameters, const char* name, int32_t mode,
                                        tn_lease* lease, tn_array* values, tn_error* error);
/* A view of an output of the last forward (tn_machine_output), without a copy, until tn_lease_release, even if the
 * machine is released before. While it lives, the next forward is TN_MISUSE. Of the machine of an event it must end
 * before the handler returns. */
TENON_API tn_status tn_machine_lease(tn_host* host, tn_machine machine, tn_layer layer, tn_lease* lease,
                                     tn_array* values, tn_error* error);
/* Ends a lease; from any thread. */
TENON_API tn_status tn_lease_release(tn_host* host, tn_lease lease, tn_error* error);

struct DLManagedTensor;
/* The same as a DLPack tensor (dlpack.h, version 0.x) for NumPy, PyTorch and others: its deleter ends the lease, on any
 * thread, and may be called after tn_host_destroy. */
TENON_API tn_status tn_parameters_dlpack(tn_host* host, tn_parameters parameters, const char* name, int32_t mode,
                                         struct DLManagedTensor** tensor, tn_error* error);
/* The same of an output, which must be dense. The deleter must be called before tn_host_destroy. */
TENON_API tn_status tn_machine_dlpack(tn_host* host, tn_machine machine, tn_layer layer,
                                      struct DLManagedTensor** tensor, tn_error* error);

struct DLManagedTensorVersioned; /* tenon_dlpack.h */
/* Since 0.4. The same two as tensors of DLPack 1.0, which say that what a reading lease or an output lends is not to be
 * written. */
TENON_API tn_status tn_parameters_dlpack_versioned(tn_host* host, tn_parameters parameters, const char* name,
                                                   int32_t mode, struct DLManagedTensorVersioned** tensor,
                                                   tn_error* error);
TENON_API tn_status tn_machine_dlpack_versioned(tn_host* host, tn_machine machine, tn_layer layer,
                                                struct DLManagedTensorVersioned** tensor, tn_error* error);

#ifdef __cplusplus
}
#endif
#endif
