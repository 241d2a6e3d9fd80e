/* Tenon: the tensors of DLPack that tenon_lease.h gives. SPDX-License-Identifier: Apache-2.0
 *
 * It needs dlpack/dlpack.h, of any version (Debian: libdlpack-dev). */
#ifndef TENON_TENON_DLPACK_H
#define TENON_TENON_DLPACK_H

#include <dlpack/dlpack.h>
#include <tenon/tenon_lease.h>

#if !defined(DLPACK_MAJOR_VERSION)
/* What dlpack.h has from 1.0 on (DLPack 1.0, "C API"). */
struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* manager_ctx;
  /* Ends the tensor and its lease. */
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags; /* bit 0: the values are not to be written */
  DLTensor dl_tensor;
};
#endif

#endif
