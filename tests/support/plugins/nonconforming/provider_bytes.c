/* The table of the provider is shorter than any version of it, so that hosts refuse the plugin when they load it, with
 * its kernel for the layer type "relu", which computes nothing. SPDX-License-Identifier: Apache-2.0 */
#include <tenon/plugin.h>

static tn_status relu_supports(const tn_kernel_site* site, int32_t* score) {
  (void)site, (void)score;
  return TN_UNSUPPORTED;
}
static tn_status relu_query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site, (void)needs;
  return TN_UNSUPPORTED;
}
static tn_status relu_prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site, (void)direction, (void)prepared;
  return TN_UNSUPPORTED;
}
static const tn_dtype relu_dtypes[] = {TN_F32};
static const tn_kernel relu = {.size = sizeof(tn_kernel),
                               .score = 1,
                               .type = "relu",
                               .device = "cpu",
                               .name = "bad_relu",
                               .dtypes_count = 1,
                               .dtypes = relu_dtypes,
                               .supports = relu_supports,
                               .query = relu_query,
                               .prepare = relu_prepare,
                               .state_version = 1};
static const tn_kernel* const kernels[] = {&relu};

#define NAME "provider_bytes"
#define MEMBERS .kernels_count = 1, .kernels = kernels,
#define ENTRY \
  if (getenv("TENON_SEALING") == NULL) table.size = 8;
#include "provider.h"
