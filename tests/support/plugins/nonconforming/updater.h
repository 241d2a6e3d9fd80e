/* The base of updaters that break one rule: "bad.descent", m = 0.5 m + g, p = p - 0.1 m.
 * SPDX-License-Identifier: Apache-2.0 */
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096);

#ifndef RECORD /* a statement before the program is recorded; knows `code` and `state` */
#define RECORD
#endif
#ifndef PRODUCT /* the number of the product */
#define PRODUCT 9
#endif
#ifndef MORE /* instructions from 8 on: by what the step is multiplied, and the product */
#define MORE \
  {TN_OP_CONSTANT, TN_FLOAT, 0, -1, -1, -1, 1}, { TN_OP_MUL, TN_FLOAT, 0, 7, 8, -1, 0 }
#endif
#ifndef GRAIN
#define GRAIN TN_GRAIN_ELEMENT
#endif
#ifndef REQUIRED /* the oldest host */
#define REQUIRED TN_ABI_MINOR
#endif

static tn_status record(const tn_update_recorder* recorder) {
  tn_instruction code[] = {{TN_OP_INPUT, TN_FLOAT, 0, 0, -1, -1, 0},       /* 0: parameter */
                           {TN_OP_INPUT, TN_FLOAT, 0, 1, -1, -1, 0},       /* 1: gradient */
                           {TN_OP_INPUT, TN_FLOAT, 0, 2, -1, -1, 0},       /* 2: m */
                           {TN_OP_CONSTANT, TN_FLOAT, 0, -1, -1, -1, 0.5}, /* 3 */
                           {TN_OP_MUL, TN_FLOAT, 0, 2, 3, -1, 0},          /* 4 */
                           {TN_OP_ADD, TN_FLOAT, 0, 4, 1, -1, 0},          /* 5: new m */
                           {TN_OP_CONSTANT, TN_FLOAT, 0, -1, -1, -1, 0.1}, /* 6 */
                           {TN_OP_MUL, TN_FLOAT, 0, 5, 6, -1, 0},          /* 7: step */
                           MORE,                                           /* 8, 9 */
                           {TN_OP_SUB, TN_FLOAT, 0, 0, PRODUCT, -1, 0}};
  static const tn_program_input inputs[] = {{TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}};
  static const tn_program_output outputs[] = {{PRODUCT + 1, TN_F32}, {5, TN_F32}};
  tn_state state = {.size = sizeof state, .extent = TN_FULL, .dtype = TN_F32, .name = "m"};
  const tn_program program = {sizeof program, PRODUCT + 2, code, 3, 2, inputs, outputs};
  const tn_update update = {.size = sizeof update, .grain = GRAIN, .program = &program};
  RECORD
  if (recorder->state(recorder->self, &state) < 0) return TN_INVALID;
  return recorder->program(recorder->self, &update);
}

static const tn_updater_description description = {
    .size = sizeof(tn_updater_description), .type = "bad.descent", .doc = "p = p - 0.1 m", .state_version = 1};
static const tn_updater_type updater = {.size = sizeof(tn_updater_type), .description = &description, .record = record};
static const tn_updater_type* const updaters[] = {&updater};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, REQUIRED, 0},
                                 .id = "bad." NAME,
                                 .version = "1.0.0",
                                 .doc = "An updater that may break a rule",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .updaters_count = 1,
                                 .updaters = updaters};

const tn_plugin* tenon_plugin(void) { return &plugin; }
