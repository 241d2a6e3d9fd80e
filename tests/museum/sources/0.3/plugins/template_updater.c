/* An updater: descent along the sign of a momentum, after J. Bernstein, Y. Wang, K. Azizzadenesheli, A. Anandkumar,
 * "signSGD: compressed optimisation for non-convex problems", 2018, algorithm 2 ("Signum").
 * SPDX-License-Identifier: MIT */
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096); /* room for the manifest, if the plugin is built without CMake */

/* The declarations. */
static const tn_attribute learning_rate = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_FLOAT,
    .name = "learning_rate",
    .doc = "step size",
    .has_range = 1,
    .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 1e-3}},
};
static const tn_attribute momentum = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_FLOAT,
    .name = "momentum",
    .doc = "share of m that is kept",
    .has_range = 3,
    .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 0.9}},
    .maximum = 1,
};
static const tn_attribute weight_decay = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_FLOAT,
    .name = "weight_decay",
    .doc = "pull towards 0",
    .has_range = 1,
    .initial = {.kind = TN_ATTR_FLOAT, .count = 1, .as = {.f = 0}},
};
static const tn_attribute* const attributes[] = {&learning_rate, &momentum, &weight_decay};
static const tn_updater_description description = {
    .size = sizeof(tn_updater_description),
    .attributes_count = 3,
    .type = "example.my_plugin",
    .doc = "m = momentum * m + (1 - momentum) * g; p = p - learning_rate * (sign(m) + weight_decay * p)",
    .attributes = attributes,
    .state_version = 1,
};

/* The inputs of the program, in the order of tenon/updater.h. */
enum { P, G, M, RATE, RATE_MULTIPLIER, DECAY_MULTIPLIER, INPUTS };

/* Instruction i makes value i from the earlier values whose numbers it names. */
static tn_status record(const tn_update_recorder* recorder) {
  const double keep = tn_float(recorder->attributes, "momentum", 0.9);
  const double decay = tn_float(recorder->attributes, "weight_decay", 0);
  const tn_instruction instructions[] = {
      {TN_OP_INPUT, TN_FLOAT, 0, P, 0, 0, 0},                /* 0: p */
      {TN_OP_INPUT, TN_FLOAT, 0, G, 0, 0, 0},                /* 1: g */
      {TN_OP_INPUT, TN_FLOAT, 0, M, 0, 0, 0},                /* 2: m */
      {TN_OP_INPUT, TN_FLOAT, 0, RATE, 0, 0, 0},             /* 3 */
      {TN_OP_INPUT, TN_FLOAT, 0, RATE_MULTIPLIER, 0, 0, 0},  /* 4 */
      {TN_OP_INPUT, TN_FLOAT, 0, DECAY_MULTIPLIER, 0, 0, 0}, /* 5 */
      {TN_OP_CONSTANT, TN_FLOAT, 0, 0, 0, 0, keep},          /* 6 */
      {TN_OP_CONSTANT, TN_FLOAT, 0, 0, 0, 0, 1 - keep},      /* 7 */
      {TN_OP_CONSTANT, TN_FLOAT, 0, 0, 0, 0, decay},         /* 8 */
      {TN_OP_MUL, TN_FLOAT, 0, 6, 2, 0, 0},                  /* 9: momentum * m */
      {TN_OP_MUL, TN_FLOAT, 0, 7, 1, 0, 0},                  /* 10: (1 - momentum) * g */
      {TN_OP_ADD, TN_FLOAT, 0, 9, 10, 0, 0},                 /* 11: the next m */
      {TN_OP_SIGN, TN_FLOAT, 0, 11, 0, 0, 0},                /* 12 */
      {TN_OP_MUL, TN_FLOAT, 0, 8, 5, 0, 0},                  /* 13: weight_decay of this parameter */
      {TN_OP_MUL, TN_FLOAT, 0, 13, 0, 0, 0},                 /* 14: weight_decay * p */
      {TN_OP_ADD, TN_FLOAT, 0, 12, 14, 0, 0},                /* 15: the direction */
      {TN_OP_MUL, TN_FLOAT, 0, 3, 4, 0, 0},                  /* 16: learning_rate of this parameter */
      {TN_OP_MUL, TN_FLOAT, 0, 16, 15, 0, 0},                /* 17 */
      {TN_OP_SUB, TN_FLOAT, 0, 0, 17, 0, 0},                 /* 18: the next p */
  };
  const tn_program_input inputs[INPUTS] = {
      {TN_FULL, TN_FLOAT, 0},   {TN_FULL, TN_FLOAT, 0},   {TN_FULL, TN_FLOAT, 0},
      {TN_SCALAR, TN_FLOAT, 0}, {TN_SCALAR, TN_FLOAT, 0}, {TN_SCALAR, TN_FLOAT, 0},
  };
  const tn_program_output outputs[] = {{18, TN_COMPUTE}, {11, TN_COMPUTE}};
  const int32_t scalars[] = {TN_SCALAR_LEARNING_RATE, TN_SCALAR_RATE_MULTIPLIER, TN_SCALAR_DECAY_MULTIPLIER};
  const tn_program program = {
      .size = sizeof program,
      .instructions_count = sizeof instructions / sizeof instructions[0],
      .instructions = instructions,
      .inputs_count = INPUTS,
      .outputs_count = 2,
      .inputs = inputs,
      .outputs = outputs,
  };
  const tn_state m = {.size = sizeof m, .extent = TN_FULL, .dtype = TN_F32, .name = "m", .initial = 0};
  const tn_update update = {
      .size = sizeof update,
      .grain = TN_GRAIN_ELEMENT,
      .program = &program,
      .scalars = scalars,
      .scalars_count = 3,
  };
  if (recorder->state(recorder->self, &m) < 0) return TN_INVALID; /* the host has the reason */
  return recorder->program(recorder->self, &update);
}

static const tn_updater_type updater = {
    .size = sizeof(tn_updater_type),
    .description = &description,
    .record = record,
};
static const tn_updater_type* const updaters[] = {&updater};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 2, 0}, /* runs on hosts from 0.2 on */
    .id = "example.my_plugin",
    .version = "0.1.0",
    .doc = "Descent along the sign of a momentum",
    .license = "MIT",
    .isa = "",
    .updaters_count = 1,
    .updaters = updaters,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }
