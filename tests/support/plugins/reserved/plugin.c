/* A plugin whose note `tenon plugins seal` fills in. Other plugins are made of this source by macros:
 *   RESERVED_BYTES  the room of the note; 4096 by default
 *   NEEDS_ABSENT    calls a function of a library that is absent, and holds its address
 *   HAS_KERNEL      has a kernel for a type of another plugin
 *   CRASHES, RETURNS_NULL, IS_REFUSED, HAS_NO_ENTRY, WAITS, CANNOT_BE_DESCRIBED
 * Uses no function of libc. SPDX-License-Identifier: Apache-2.0 */
#include <tenon/plugin.h>

#ifndef RESERVED_BYTES
#define RESERVED_BYTES 4096
#endif
TN_RESERVE_NOTE(RESERVED_BYTES);

#ifdef NEEDS_ABSENT
int tenon_test_absent(void); /* of the library */
int (*const tenon_test_address)(void) = tenon_test_absent;
#endif

__attribute__((unused)) static tn_status plan(const tn_planner* planner) {
#ifdef NEEDS_ABSENT
  if (planner->size == 0) return tenon_test_absent() + tenon_test_address();
#endif
  return planner->output(planner->self, 0, planner->inputs[0]);
}

static tn_status lower(const tn_attributes* attributes, const tn_builder* builder) {
  (void)attributes;
  return builder->output(builder->self, 0, builder->input(builder->self, 0, 0));
}

static const tn_port in_port = {sizeof(tn_port), 0, "in", "any"};
static const tn_port out_port = {sizeof(tn_port), 0, "out", "as in"};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const tn_layer_description description = {.size = sizeof(tn_layer_description),
                                                 .type = "test_reserved",
                                                 .doc = "out = in",
                                                 .inputs_count = 1,
                                                 .outputs_count = 1,
                                                 .inputs = inputs,
                                                 .outputs = outputs,
                                                 .state_version = 1};
static const tn_layer_type layer = {.size = sizeof(tn_layer_type),
                                    .description = &description,
#ifndef IS_REFUSED
                                    .plan = plan,
#endif
                                    .lower = lower};
static const tn_layer_type* const layers[] = {&layer};
#ifdef HAS_KERNEL /* for a type of Tenon, of whose state version it says nothing */
static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)site, (void)score;
  return TN_UNSUPPORTED;
}
static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site, (void)needs;
  return TN_UNSUPPORTED;
}
static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site, (void)direction, (void)prepared;
  return TN_UNSUPPORTED;
}
static const tn_dtype dtypes[] = {TN_F32};
static const tn_kernel kernel = {.size = sizeof(tn_kernel),
                                 .type = "square",
                                 .device = "cpu",
                                 .name = "square_loop",
                                 .dtypes_count = 1,
                                 .dtypes = dtypes,
                                 .supports = supports,
                                 .query = query,
                                 .prepare = prepare};
static const tn_kernel* const kernels[] = {&kernel};
#endif

static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
                                 .id = "tenon.test.reserved",
                                 .version = "1.0.0",
                                 .doc = "A layer that copies",
                                 .license = "Apache-2.0",
                                 .isa = "",
#ifdef HAS_KERNEL
                                 .kernels_count = 1,
                                 .kernels = kernels,
#endif
                                 .layers_count = 1,
                                 .layers = layers};

#ifdef HAS_NO_ENTRY
const tn_plugin* tenon_other_plugin(void);
const tn_plugin* tenon_other_plugin(void) { return &plugin; }
#else
const tn_plugin* tenon_plugin(void) {
#ifdef CRASHES
  __builtin_trap();
#endif
#ifdef WAITS
  for (volatile int waits = 1; waits != 0;) continue;
#endif
#ifdef RETURNS_NULL
  return plugin.size == 0 ? &plugin : NULL;
#else
  return &plugin;
#endif
}
#endif
