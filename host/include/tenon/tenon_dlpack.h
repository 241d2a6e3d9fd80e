/* Tenon: the tensors of DLPack that tenon_lease.h gives. SPDX-License-Identifier: Apache-2.0
 *
 * Include dlpack/dlpack.h, of any version (Debian: libdlpack-dev), before this header. */
#ifndef TENON_TENON_DLPACK_H
#define TENON_TENON_DLPACK_H

#include <tenon/tenon_lease.h>

#endif

/* Outside of the guard, so that an include before dlpack.h does no harm: what dlpack.h has from 1.0 on (DLPack 1.0, "C
 * API"). */
#if defined(DLPACK_VERSION) && !defined(DLPACK_MAJOR_VERSION) && !defined(TENON_DLPACK_VERSIONED)
#define TENON_DLPACK_VERSIONED
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
