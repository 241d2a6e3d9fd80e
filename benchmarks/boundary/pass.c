/* A layer that does nothing, with native kernels: all that a step of many of them costs is the host's. Built as eight
 * plugins; TENON_PASS is the number of each. SPDX-License-Identifier: Apache-2.0
 */
#include <tenon/plugin.h>

#define TYPE "pass" TENON_PASS

static const tn_port in = {.size = sizeof(tn_port), .name = "in", .doc = "any shape"};
static const tn_port out = {.size = sizeof(tn_port), .name = "out", .doc = "not written"};
static const tn_port* const inputs[] = {&in};
static const tn_port* const outputs[] = {&out};
static const tn_layer_description description = {
    .size = sizeof(tn_layer_description),
    .role = TN_ROLE_LAYER,
    .type = TYPE,
    .doc = "Does nothing.",
    .inputs_count = 1,
    .outputs_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .state_version = 1,
};

static tn_status plan(const tn_planner* planner) { return planner->output(planner->self, 0, planner->inputs[0]); }

static const tn_layer_type layer = {.size = sizeof(tn_layer_type), .description = &description, .plan = plan};

static tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  (void)self, (void)execution, (void)call;
  return TN_OK;
}

static void destroy(void* self) { (void)self; }

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)site, (void)score;
  return TN_OK;
}

static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site, (void)needs;
  return TN_OK;
}

static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  (void)site, (void)direction;
  prepared->binding = (void*)&layer; /* not null; never written */
  prepared->run = run;
  prepared->destroy = destroy;
  return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32};
static const tn_kernel kernel = {
    .size = sizeof(tn_kernel),
    .score = 10,
    .type = TYPE,
    .device = "cpu",
    .name = TYPE,
    .dtypes_count = 1,
    .dtypes = dtypes,
    .supports = supports,
    .query = query,
    .prepare = prepare,
};

static const tn_layer_type* const layers[] = {&layer};
static const tn_kernel* const kernels[] = {&kernel};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
    .id = "tenon.bench.pass" TENON_PASS,
    .version = "1.0.0",
    .doc = "A layer that does nothing",
    .license = "Apache-2.0",
    .isa = "",
    .layers_count = 1,
    .kernels_count = 1,
    .layers = layers,
    .kernels = kernels,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }
