/* A fault of a step, which computes what the layer does. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <tenon/step.h>

#include "fault.h"

static tn_status step(const tn_stepper* stepper) {
  const tn_expander* const expander = stepper->expander;
  const tn_ref in = expander->input(expander->self, 0);
  const tn_expansion_layer inner = {.size = sizeof inner, .inputs_count = 1, .type = "bad.scale", .inputs = &in};
  if (FAULT(stepper)) return tn_fail(expander->errors, TN_UNSUPPORTED, NULL, "not in this host");
  return expander->output(expander->self, 0, expander->layer(expander->self, &inner));
}
static const tn_step steps = {.size = sizeof steps, .step = step};
static const void* extension(void* user, const char* id) {
  (void)user;
  return strcmp(id, TN_STEP) == 0 ? &steps : NULL;
}
#define EXTENSION extension
#define BODY
#define WITHOUT_KERNEL
#include "../layer.h"
