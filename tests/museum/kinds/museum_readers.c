/* An exhibit in C: a reader of dense integers with names, sequences, sequences of sequences and sparse vectors, all
 * made from the number of a sample, and an updater over rows. SPDX-License-Identifier: Apache-2.0 */
#include "layer.h"

/* ---- museum.samples: sample i has the label i % 3; i % 3 rows of {i, row}; i % 2 + 1 inner sequences of 1, then 2
 * rows with the number of the pass; the sparse entries {1, i + 0.5} and, of odd samples, {4, -1} */

enum { LABEL, ROWS, INNER, SPARSE, SLOTS };

static const int64_t two[] = {2}, one[] = {1}, five[] = {5};
static const tn_text texts[] = {{"red", 3}, {"green", 5}, {"blue", 4}};
static const tn_names names = {.size = sizeof(tn_names), .count = 3, .texts = texts};
static const tn_slot label_slot = {
    .size = sizeof(tn_slot), .dtype = TN_I32, .name = "label", .index_limit = 3, .names = &names};
static const tn_slot rows_slot = {.size = sizeof(tn_slot),
                                  .dtype = TN_F32,
                                  .name = "rows",
                                  .storage = TN_RAGGED,
                                  .rank = 1,
                                  .shape = two,
                                  .index_limit = -1,
                                  .levels = 1};
static const tn_slot inner_slot = {.size = sizeof(tn_slot),
                                   .dtype = TN_F32,
                                   .name = "inner",
                                   .storage = TN_RAGGED,
                                   .rank = 1,
                                   .shape = one,
                                   .index_limit = -1,
                                   .levels = 2};
static const tn_slot sparse_slot = {.size = sizeof(tn_slot),
                                    .dtype = TN_F32,
                                    .name = "sparse",
                                    .storage = TN_CSR,
                                    .rank = 1,
                                    .shape = five,
                                    .index_limit = -1};
static const tn_slot* const slots[] = {&label_slot, &rows_slot, &inner_slot, &sparse_slot};
static const tn_reader_schema the_schema = {sizeof(tn_reader_schema), SLOTS, slots};

typedef struct reader {
  const tn_memory* memory;
  const volatile int32_t* cancel;
  int64_t count, next, shard, shards, pass;
} reader;

static tn_status open_reader(const tn_reader_open* open, void** instance) {
  const tn_memory* memory = (const tn_memory*)open->services->extension(open->services->self, TN_MEMORY);
  reader* it;
  if (memory == NULL) return tn_fail(open->errors, TN_UNSUPPORTED, NULL, "needs " TN_MEMORY);
  it = (reader*)memory->allocate(memory->self, sizeof *it);
  if (it == NULL) return tn_fail(open->errors, TN_OUT_OF_MEMORY, NULL, "no memory for a reader");
  it->memory = memory;
  it->cancel = open->cancel;
  it->shard = open->shard;
  it->shards = open->shards;
  it->count = (tn_int(open->attributes, "samples", 0) - it->shard + it->shards - 1) / it->shards;
  it->next = it->pass = 0;
  *instance = it;
  return TN_OK;
}
static void close_reader(void* self) {
  reader* it = (reader*)self;
  it->memory->release(it->memory->self, it, sizeof *it);
}
static const tn_reader_schema* schema(void* self) {
  (void)self;
  return &the_schema;
}
static int64_t samples(void* self) { return ((reader*)self)->count; }

/* Where the next sample goes in the buffers. */
typedef struct place {
  int64_t sample, rows, inner, inner_rows, entries;
} place;
/* Sets what does not fit as needed. */
static tn_status need(const tn_reader_buffers* buffers, const place* after) {
  tn_sequence_room* rows = (tn_sequence_room*)buffers->data[ROWS];
  tn_sequence_room* inner = (tn_sequence_room*)buffers->data[INNER];
  tn_sequence_room* sparse = (tn_sequence_room*)buffers->data[SPARSE];
  if (after->rows <= rows->rows_capacity && after->inner <= inner->inner_capacity &&
      after->inner_rows <= inner->rows_capacity && after->entries <= sparse->rows_capacity)
    return TN_OK;
  rows->rows_needed = after->rows;
  inner->rows_needed = after->inner_rows;
  inner->inner_needed = after->inner;
  sparse->rows_needed = after->entries;
  return TN_NEED_CAPACITY;
}
static place after_sample(place at, int64_t i) {
  const place result = {at.sample + 1, at.rows + i % 3, at.inner + i % 2 + 1, at.inner_rows + (i % 2 == 0 ? 1 : 3),
                        at.entries + 1 + i % 2};
  return result;
}
static void write_sample(const reader* it, const tn_reader_buffers* buffers, const place* at, int64_t i) {
  tn_sequence_room* rows = (tn_sequence_room*)buffers->data[ROWS];
  tn_sequence_room* inner = (tn_sequence_room*)buffers->data[INNER];
  tn_sequence_room* sparse = (tn_sequence_room*)buffers->data[SPARSE];
  ((int32_t*)buffers->data[LABEL])[at->sample] = (int32_t)(i % 3);
  rows->lengths[at->sample] = i % 3;
  for (int64_t r = 0; r < i % 3; ++r) {
    ((float*)rows->rows)[2 * (at->rows + r)] = (float)i;
    ((float*)rows->rows)[2 * (at->rows + r) + 1] = (float)r;
  }
  inner->lengths[at->sample] = i % 2 + 1;
  for (int64_t s = 0; s < i % 2 + 1; ++s) inner->inner_lengths[at->inner + s] = s + 1;
  for (int64_t r = 0; r < (i % 2 == 0 ? 1 : 3); ++r)
    ((float*)inner->rows)[at->inner_rows + r] = (float)(100 * it->pass + r);
  sparse->lengths[at->sample] = 1 + i % 2;
  sparse->ids[at->entries] = 1;
  ((float*)sparse->rows)[at->entries] = (float)i + 0.5F;
  if (i % 2 == 0) return;
  sparse->ids[at->entries + 1] = 4;
  ((float*)sparse->rows)[at->entries + 1] = -1;
}
static tn_status read_at(void* self, const int64_t* indices, int64_t count, const tn_reader_buffers* buffers) {
  const reader* it = (const reader*)self;
  place at = {0, 0, 0, 0, 0};
  for (int64_t s = 0; s < count; ++s) at = after_sample(at, indices[s] * it->shards + it->shard);
  if (need(buffers, &at) != TN_OK) return TN_NEED_CAPACITY;
  memset(&at, 0, sizeof at);
  for (int64_t s = 0; s < count; ++s) {
    const int64_t i = indices[s] * it->shards + it->shard;
    write_sample(it, buffers, &at, i);
    at = after_sample(at, i);
  }
  return TN_OK;
}
static tn_status next(void* self, const tn_reader_buffers* buffers, int64_t* count) {
  reader* it = (reader*)self;
  place at = {0, 0, 0, 0, 0};
  for (; at.sample < buffers->capacity && it->next < it->count; ++it->next) {
    const int64_t i = it->next * it->shards + it->shard;
    const place after = after_sample(at, i);
    if (*it->cancel != 0) return TN_CANCELLED;
    if (need(buffers, &after) != TN_OK) break;
    write_sample(it, buffers, &at, i);
    at = after;
  }
  *count = at.sample;
  if (at.sample > 0) return TN_OK;
  if (it->next < it->count) return TN_NEED_CAPACITY;
  it->next = 0;
  ++it->pass;
  return TN_END;
}
static int64_t position(void* self) { return ((reader*)self)->next; }
static tn_status seek(void* self, int64_t to) {
  ((reader*)self)->next = to;
  return TN_OK;
}
static tn_status begin_pass(void* self, int64_t pass) {
  ((reader*)self)->pass = pass;
  return TN_OK;
}
static const tn_pass passes = {.size = sizeof(tn_pass), .begin = begin_pass};
static const void* extension(void* user, const char* id) {
  (void)user;
  return strcmp(id, TN_PASS) == 0 ? &passes : NULL;
}

static const tn_attribute samples_attribute = NUMBER("samples", TN_ATTR_INT, i, 6);
static const tn_attribute* const reader_attributes[] = {&samples_attribute};
static const tn_reader_description reader_description = {.size = sizeof(tn_reader_description),
                                                         .attributes_count = 1,
                                                         .type = "museum.samples",
                                                         .doc = "samples of every storage",
                                                         .attributes = reader_attributes};
static const tn_reader_type reader_type = {.size = sizeof(tn_reader_type),
                                           .description = &reader_description,
                                           .open = open_reader,
                                           .close = close_reader,
                                           .schema = schema,
                                           .samples = samples,
                                           .read_at = read_at,
                                           .next = next,
                                           .position = position,
                                           .seek = seek,
                                           .extension = extension};

/* ---- museum.rowwise: mean = mean + sum of the squares of a row / its elements; p = p - rate * multiplier * g /
 * sqrt(mean) - 0.01 * decay multiplier * p, and the number of the update in another state */

static tn_status record(const tn_update_recorder* recorder) {
  static const int32_t scalars[] = {TN_SCALAR_LEARNING_RATE, TN_SCALAR_STEP, TN_SCALAR_RATE_MULTIPLIER,
                                    TN_SCALAR_DECAY_MULTIPLIER, TN_SCALAR_ROW_ELEMENTS};
  const tn_state mean_state = {
      .size = sizeof(tn_state), .extent = TN_PER_ROW, .dtype = TN_F32, .name = "mean", .initial = 0.25};
  const tn_state step_state = {.size = sizeof(tn_state), .extent = TN_FULL, .dtype = TN_F32, .name = "steps"};
  formula f = {0};
  const int32_t p = operand(&f, TN_FULL, TN_FLOAT), g = operand(&f, TN_FULL, TN_FLOAT);
  const int32_t before = operand(&f, TN_PER_ROW, TN_FLOAT), steps = operand(&f, TN_FULL, TN_FLOAT);
  const int32_t rate = operand(&f, TN_SCALAR, TN_FLOAT), step = operand(&f, TN_SCALAR, TN_INT);
  const int32_t rate_multiplier = operand(&f, TN_SCALAR, TN_FLOAT), decay = operand(&f, TN_SCALAR, TN_FLOAT);
  const int32_t elements = operand(&f, TN_SCALAR, TN_FLOAT);
  const int32_t squares = reduced(&f, TN_OP_REDUCE_SUM, TN_PER_ROW, binary(&f, TN_OP_MUL, g, g));
  const int32_t mean = binary(&f, TN_OP_ADD, before, binary(&f, TN_OP_DIV, squares, elements));
  const int32_t move = binary(&f, TN_OP_DIV, binary(&f, TN_OP_MUL, binary(&f, TN_OP_MUL, rate, rate_multiplier), g),
                              unary(&f, TN_OP_SQRT, mean));
  const int32_t small = constant(&f, TN_FLOAT, 0.01);
  const int32_t shrunk = binary(&f, TN_OP_MUL, binary(&f, TN_OP_MUL, small, decay), p);
  const int32_t count = op(&f, TN_OP_CAST, TN_FLOAT, step, 0, 0);
  const int32_t counted = binary(&f, TN_OP_ADD, binary(&f, TN_OP_MUL, steps, constant(&f, TN_FLOAT, 0)), count);
  tn_program program;
  tn_update update = {.size = sizeof(tn_update), .grain = TN_GRAIN_ROW, .scalars = scalars, .scalars_count = 5};
  result(&f, binary(&f, TN_OP_SUB, binary(&f, TN_OP_SUB, p, move), shrunk), TN_COMPUTE);
  result(&f, mean, TN_COMPUTE);
  result(&f, counted, TN_COMPUTE);
  program = program_of(&f);
  update.program = &program;
  if (recorder->state(recorder->self, &mean_state) != 0 || recorder->state(recorder->self, &step_state) != 1)
    return TN_INVALID;
  return recorder->program(recorder->self, &update);
}
static const void* updater_extension(void* user, const char* id) {
  (void)user, (void)id;
  return NULL;
}
static const tn_attribute learning_rate = NUMBER("learning_rate", TN_ATTR_FLOAT, f, 0.5);
static const tn_attribute* const updater_attributes[] = {&learning_rate};
static const tn_updater_description updater_description = {.size = sizeof(tn_updater_description),
                                                           .attributes_count = 1,
                                                           .type = "museum.rowwise",
                                                           .doc = "a rate for each row",
                                                           .attributes = updater_attributes,
                                                           .state_version = 1};
static const tn_updater_type updater = {.size = sizeof(tn_updater_type),
                                        .description = &updater_description,
                                        .record = record,
                                        .extension = updater_extension};

static const tn_reader_type* const readers[] = {&reader_type};
static const tn_updater_type* const updaters[] = {&updater};
PLUGIN("museum.readers", "An exhibit: a reader of every storage, an updater over rows", .updaters_count = 1,
       .readers_count = 1, .updaters = updaters, .readers = readers)
