/* A plugin that breaks the rule of thread tags that the attribute "how" names; with "good" it keeps all rules. Pointers
 * that it must not keep are stored in statics, as a careless author would do.
 *   test_threads         y = x by a native kernel
 *   test_threads_body    y = x as a recorded body, or as an expansion if "how" contains "expander"
 *   test_threads_reader  four samples of the slot "x", float32 []
 *   test_threads_updater new parameter = parameter - gradient
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <tenon/plugin.h>

static struct {
  const tn_planner* planner;
  const tn_expander* expander;
  const tn_builder* builder;
  const tn_update_recorder* recorder;
  const tn_errors* errors;
  const tn_parallel* parallel;
} kept;

static const tn_attribute how_attribute = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_STRING,
    .name = "how",
    .doc = "what is done wrong",
    .initial = {.kind = TN_ATTR_STRING, .count = 1, .as = {.s = "good"}},
};
static const tn_attribute* const attributes[] = {&how_attribute};

static int is(const char* how, const char* name) { return strcmp(how, name) == 0; }
static const char* how_of(const tn_attributes* given) { return tn_string(given, "how", "good"); }

static void nothing(void* argument, int64_t index, int32_t worker) {
  (void)argument;
  (void)index;
  (void)worker;
}
static void for_each_nothing(const tn_parallel* parallel) { parallel->for_each(parallel->self, 2, nothing, NULL); }

static void nothing_yet(void* argument, int32_t phase, int64_t index, int32_t worker) {
  (void)phase;
  nothing(argument, index, worker);
}
static void phases_of_nothing(const tn_parallel* parallel) {
  const int64_t sizes[] = {2, 1};
  parallel->phases(parallel->self, 2, sizes, nothing_yet, NULL);
}

/* Calls work(argument) on another thread and waits for it. */
static void elsewhere(void* (*work)(void*), const void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, (void*)argument) == 0) pthread_join(thread, NULL);
}

/* ---- layers */

static const tn_port in_port = {.size = sizeof(tn_port), .name = "x", .doc = "any shape"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "y", .doc = "as x"};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};

static tn_status give_output(const tn_planner* planner) {
  return planner->output(planner->self, 0, planner->inputs[0]);
}
static void* plan_elsewhere(void* planner) {
  give_output((const tn_planner*)planner);
  return NULL;
}

static tn_status plan(const tn_planner* planner) {
  const char* how = how_of(planner->attributes);
  if (is(how, "keep_planner")) kept.planner = planner;
  if (is(how, "use_planner")) kept.planner->output(kept.planner->self, 0, planner->inputs[0]);
  if (is(how, "planner_elsewhere")) elsewhere(plan_elsewhere, planner);
  if (is(how, "keep_errors")) kept.errors = planner->errors;
  if (is(how, "use_errors")) tn_fail(kept.errors, TN_INVALID, NULL, "too late");
  return give_output(planner);
}

static tn_status expand(const tn_expander* expander) {
  const char* how = how_of(expander->attributes);
  if (strstr(how, "expander") == NULL) return TN_UNSUPPORTED;
  if (is(how, "keep_expander")) kept.expander = expander;
  if (is(how, "use_expander")) kept.expander->input(kept.expander->self, 0);
  const tn_ref x = expander->input(expander->self, 0);
  const tn_expansion_layer inner = {.size = sizeof inner, .inputs_count = 1, .type = "test_threads_body", .inputs = &x};
  return expander->output(expander->self, 0, expander->layer(expander->self, &inner));
}

static tn_status lower(const tn_attributes* given, const tn_builder* builder) {
  const char* how = how_of(given);
  if (is(how, "keep_builder")) kept.builder = builder;
  if (is(how, "use_builder")) kept.builder->status(kept.builder->self);
  builder->output(builder->self, 0, builder->input(builder->self, 0, 0));
  return builder->status(builder->self);
}

static const tn_layer_description native_description = {
    .size = sizeof(tn_layer_description),
    .type = "test_threads",
    .doc = "y = x by a native kernel",
    .inputs_count = 1,
    .outputs_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .attributes_count = 1,
    .attributes = attributes,
    .state_version = 1,
};
static const tn_layer_description body_description = {
    .size = sizeof(tn_layer_description),
    .type = "test_threads_body",
    .doc = "y = x as a recorded body",
    .inputs_count = 1,
    .outputs_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .attributes_count = 1,
    .attributes = attributes,
    .state_version = 1,
};
static const tn_layer_type native_layer = {
    .size = sizeof(tn_layer_type), .description = &native_description, .plan = plan};
static const tn_layer_type body_layer = {
    .size = sizeof(tn_layer_type), .description = &body_description, .plan = plan, .expand = expand, .lower = lower};

/* ---- the kernel of test_threads */

typedef struct binding {
  char how[32];
  const tn_memory* memory;
  const tn_log* log;
  const tn_errors* errors; /* of prepare */
} binding;

/* The argument of the tasks of one run. */
typedef struct step {
  const binding* bound;
  const tn_tensor* x;
  tn_tensor* y;
} step;

static void allocate_here(const tn_memory* memory) {
  memory->release(memory->self, memory->allocate(memory->self, 8), 8);
}

static void copy_sample(void* argument, int64_t index, int32_t worker) {
  const step* now = (const step*)argument;
  const uint64_t bytes = now->y->dl.dtype.bits / 8u;
  uint64_t width = bytes;
  for (int32_t i = 1; i < now->y->dl.ndim; ++i) width *= (uint64_t)now->y->dl.shape[i];
  memcpy((char*)now->y->dl.data + (uint64_t)index * width, (const char*)now->x->dl.data + (uint64_t)index * width,
         width);
  (void)worker;
  if (is(now->bound->how, "task_allocates") || is(now->bound->how, "phase_allocates"))
    allocate_here(now->bound->memory);
}

static void copy_in_phase(void* argument, int32_t phase, int64_t index, int32_t worker) {
  if (phase == 1) copy_sample(argument, index, worker);
}

static void* parallel_elsewhere(void* parallel) {
  for_each_nothing((const tn_parallel*)parallel);
  return NULL;
}

static tn_status run(void* self, const tn_execution* execution, const tn_call* call) {
  const binding* bound = (const binding*)self;
  const tn_parallel* parallel = execution->parallel;
  step now = {bound, call->inputs[0], call->outputs[0]};
  const int64_t sizes[] = {1, call->outputs[0]->dl.shape[0]};
  if (is(bound->how, "phase_allocates") || is(bound->how, "good"))
    parallel->phases(parallel->self, 2, sizes, copy_in_phase, &now);
  else
    parallel->for_each(parallel->self, now.y->dl.shape[0], copy_sample, &now);
  if (is(bound->how, "run_allocates")) allocate_here(bound->memory);
  if (is(bound->how, "for_each_elsewhere")) elsewhere(parallel_elsewhere, parallel);
  if (is(bound->how, "use_prepare_errors")) tn_fail(bound->errors, TN_INVALID, NULL, "too late");
  if (is(bound->how, "run_logs")) bound->log->write(bound->log->self, 1, "running");
  kept.parallel = parallel;
  return TN_OK;
}

static void destroy(void* self) {
  const tn_memory* memory = ((binding*)self)->memory;
  if (is(((binding*)self)->how, "destroy_for_each")) for_each_nothing(kept.parallel);
  memory->release(memory->self, self, sizeof(binding));
}

static tn_status supports(const tn_kernel_site* site, int32_t* score) {
  (void)score;
  return site->inputs[0]->dtype == site->compute ? TN_OK : TN_UNSUPPORTED;
}
static tn_status query(const tn_kernel_site* site, tn_kernel_needs* needs) {
  (void)site;
  (void)needs;
  return TN_OK;
}
static tn_status prepare(const tn_kernel_site* site, int32_t direction, tn_prepared* prepared) {
  const tn_services* services = site->services;
  const tn_errors* errors = site->errors;
  const char* how = how_of(site->attributes);
  const tn_memory* memory = (const tn_memory*)services->extension(services->self, TN_MEMORY);
  const tn_log* log = (const tn_log*)services->extension(services->self, TN_LOG);
  binding* made = (binding*)memory->allocate(memory->self, sizeof(binding));
  (void)direction;
  if (made == NULL) return tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a binding");
  strncpy(made->how, how, sizeof made->how - 1);
  made->how[sizeof made->how - 1] = 0;
  made->memory = memory;
  made->log = log;
  made->errors = errors;
  prepared->binding = made;
  prepared->run = run;
  prepared->destroy = destroy;
  if (is(how, "prepare_for_each")) for_each_nothing(kept.parallel);
  if (is(how, "prepare_phases")) phases_of_nothing(kept.parallel);
  if (is(how, "prepare_logs")) log->write(log->self, 1, "preparing");
  return TN_OK;
}

static const tn_dtype dtypes[] = {TN_F32};
static const tn_kernel kernel = {
    .size = sizeof(tn_kernel),
    .score = 10,
    .type = "test_threads",
    .device = "cpu",
    .name = "bad_threads",
    .dtypes_count = 1,
    .dtypes = dtypes,
    .supports = supports,
    .query = query,
    .prepare = prepare,
};

/* ---- the reader */

typedef struct instance {
  const tn_memory* memory;
  int64_t position;
  int bad;
} instance;

static const tn_slot slot = {.size = sizeof(tn_slot), .dtype = TN_F32, .name = "x", .index_limit = -1};
static const tn_slot* const slots[] = {&slot};
static const tn_reader_schema the_schema = {sizeof(tn_reader_schema), 1, slots};

static tn_status open(const tn_reader_open* given, void** made) {
  const tn_memory* memory = (const tn_memory*)given->services->extension(given->services->self, TN_MEMORY);
  instance* it = (instance*)memory->allocate(memory->self, sizeof(instance));
  if (it == NULL) return tn_fail(given->errors, TN_OUT_OF_MEMORY, NULL, "no memory for an instance");
  it->memory = memory;
  it->position = 0;
  it->bad = is(how_of(given->attributes), "next_for_each");
  *made = it;
  if (is(how_of(given->attributes), "open_for_each")) for_each_nothing(kept.parallel);
  return TN_OK;
}
static void close(void* self) {
  const tn_memory* memory = ((instance*)self)->memory;
  memory->release(memory->self, self, sizeof(instance));
}
static const tn_reader_schema* schema(void* self) {
  (void)self;
  return &the_schema;
}
static int64_t samples(void* self) {
  (void)self;
  return 4;
}
static tn_status next(void* self, const tn_reader_buffers* buffers, int64_t* count) {
  instance* it = (instance*)self;
  *count = 0;
  if (it->bad) for_each_nothing(kept.parallel);
  if (it->position == 4) {
    it->position = 0;
    return TN_END;
  }
  *(float*)buffers->data[0] = (float)it->position++;
  *count = 1;
  return TN_OK;
}
static int64_t position(void* self) { return ((instance*)self)->position; }
static tn_status seek(void* self, int64_t to) {
  ((instance*)self)->position = to;
  return TN_OK;
}

static const tn_reader_description reader_description = {
    .size = sizeof(tn_reader_description),
    .attributes_count = 1,
    .type = "test_threads_reader",
    .doc = "four numbers",
    .attributes = attributes,
};
static const tn_reader_type reader = {
    .size = sizeof(tn_reader_type),
    .description = &reader_description,
    .open = open,
    .close = close,
    .schema = schema,
    .samples = samples,
    .next = next,
    .position = position,
    .seek = seek,
};

/* ---- the updater */

static tn_status record(const tn_update_recorder* recorder) {
  static const tn_instruction code[] = {{TN_OP_INPUT, TN_FLOAT, 0, 0, -1, -1, 0},
                                        {TN_OP_INPUT, TN_FLOAT, 0, 1, -1, -1, 0},
                                        {TN_OP_SUB, TN_FLOAT, 0, 0, 1, -1, 0}};
  static const tn_program_input program_inputs[] = {{TN_FULL, TN_FLOAT, 0}, {TN_FULL, TN_FLOAT, 0}};
  static const tn_program_output program_outputs[] = {{2, TN_F32}};
  static const tn_program program = {sizeof program, 3, code, 2, 1, program_inputs, program_outputs};
  static const tn_state late = {.size = sizeof late, .extent = TN_FULL, .dtype = TN_F32, .name = "late"};
  static const tn_update update = {.size = sizeof update, .grain = TN_GRAIN_ELEMENT, .program = &program};
  const char* how = how_of(recorder->attributes);
  if (is(how, "keep_recorder")) kept.recorder = recorder;
  if (is(how, "use_recorder")) kept.recorder->state(kept.recorder->self, &late);
  return recorder->program(recorder->self, &update);
}

static const tn_updater_description updater_description = {
    .size = sizeof(tn_updater_description),
    .attributes_count = 1,
    .type = "test_threads_updater",
    .doc = "parameter - gradient",
    .attributes = attributes,
    .state_version = 1,
};
static const tn_updater_type updater = {
    .size = sizeof(tn_updater_type), .description = &updater_description, .record = record};

/* ---- the plugin */

static const tn_layer_type* const layers[] = {&native_layer, &body_layer};
static const tn_kernel* const kernels[] = {&kernel};
static const tn_updater_type* const updaters[] = {&updater};
static const tn_reader_type* const readers[] = {&reader};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
    .id = "tenon.test.bad_threads",
    .version = "1.0.0",
    .doc = "Breaks the rules of thread tags",
    .license = "Apache-2.0",
    .isa = "",
    .layers_count = 2,
    .kernels_count = 1,
    .layers = layers,
    .kernels = kernels,
    .updaters_count = 1,
    .readers_count = 1,
    .updaters = updaters,
    .readers = readers,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }
