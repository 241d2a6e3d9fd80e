/* The base of readers that break one rule: "bad.numbers" reads a file of int32: their count, then the numbers, which
 * are below 100. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096);

#ifndef REQUIRED /* the oldest host */
#define REQUIRED TN_ABI_MINOR
#endif
#ifndef INDEX /* the number in the file of sample i of the shard */
#define INDEX(it, i) ((i) * (it)->shards + (it)->shard)
#endif
#ifndef SEEK
#define SEEK(it, to) (it)->next = (to);
#endif
#ifndef DAMAGED /* whether the file has another size than its count says */
#define DAMAGED(read, count) ((read) != (count))
#endif
#ifndef VALUE
#define VALUE(it, i) ((it)->values[i])
#endif
#ifndef SAMPLES
#define SAMPLES(it) samples_of(it)
#endif
#ifndef LAST /* the number of samples that a pass gives */
#define LAST(it) samples_of(it)
#endif
#ifndef EXTENSION
#define EXTENSION NULL
#endif
#ifndef OPENED
#define OPENED(it)
#endif

typedef struct reader {
  int64_t count, next, shard, shards, passes;
  int32_t* values;
} reader;

static const tn_slot slot = {.size = sizeof(tn_slot), .dtype = TN_I32, .name = "number", .index_limit = 100};
static const tn_slot* const slots[] = {&slot};
static const tn_reader_schema the_schema = {sizeof(tn_reader_schema), 1, slots};

static int64_t samples_of(const reader* it) { return (it->count - it->shard + it->shards - 1) / it->shards; }

static tn_status fill(reader* it, const char* path) {
  int32_t head = 0;
  FILE* const file = fopen(path, "rb");
  if (file == NULL) return TN_NOT_FOUND;
  int64_t read = -1;
  if (fread(&head, sizeof head, 1, file) == 1 && head >= 0 && head < 1000) {
    it->count = head;
    it->values = calloc((size_t)head + 1, sizeof *it->values);
    read = it->values == NULL ? -1 : (int64_t)fread(it->values, sizeof *it->values, (size_t)head, file);
    if (read == head && fgetc(file) != EOF) read = -1;
  }
  fclose(file);
  if (read < 0 && head > 0 && head < 1000 && it->values == NULL) return TN_OUT_OF_MEMORY;
  if (it->values == NULL || DAMAGED(read, it->count)) return TN_BAD_DATA;
  for (int64_t i = 0; i < it->count; ++i)
    if (it->values[i] < 0 || it->values[i] >= 100) return TN_BAD_DATA;
  return TN_OK;
}

static void close_reader(void* self) {
  free(((reader*)self)->values);
  free(self);
}
static tn_status open_reader(const tn_reader_open* given, void** instance) {
  char path[4096];
  reader* const it = calloc(1, sizeof *it);
  if (it == NULL) return tn_fail(given->errors, TN_OUT_OF_MEMORY, NULL, "no memory");
  const char* const name = tn_string(given->attributes, "file", "");
  snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : given->directory, name[0] == '/' ? "" : "/", name);
  it->shard = given->shard;
  it->shards = given->shards;
  const tn_status status = fill(it, path);
  if (status != TN_OK) {
    close_reader(it);
    return tn_fail(given->errors, status, "file", "is damaged or not there");
  }
  OPENED(it)
  *instance = it;
  return TN_OK;
}
static const tn_reader_schema* schema(void* self) {
  (void)self;
  return &the_schema;
}
static int64_t samples(void* self) { return SAMPLES((reader*)self); }
static tn_status next(void* self, const tn_reader_buffers* buffers, int64_t* count) {
  reader* const it = (reader*)self;
  for (*count = 0; *count < buffers->capacity && it->next < LAST(it); ++*count, ++it->next)
    ((int32_t*)buffers->data[0])[*count] = VALUE(it, INDEX(it, it->next));
  if (*count > 0) return TN_OK;
  it->next = 0;
  ++it->passes;
  return TN_END;
}
static int64_t position(void* self) { return ((reader*)self)->next; }
static tn_status seek(void* self, int64_t to) {
  SEEK((reader*)self, to)
  return TN_OK;
}

static const tn_attribute file = {
    .size = sizeof(tn_attribute), .kind = TN_ATTR_STRING, .name = "file", .doc = "the file", .flags = TN_ATTR_REQUIRED};
static const tn_attribute* const attributes[] = {&file};
static const tn_reader_description description = {.size = sizeof(tn_reader_description),
                                                  .attributes_count = 1,
                                                  .type = "bad.numbers",
                                                  .doc = "int32 numbers",
                                                  .attributes = attributes};
static const tn_reader_type type = {.size = sizeof(tn_reader_type),
                                    .description = &description,
                                    .open = open_reader,
                                    .close = close_reader,
                                    .schema = schema,
                                    .samples = samples,
                                    .next = next,
                                    .position = position,
                                    .seek = seek,
                                    .extension = EXTENSION};
static const tn_reader_type* const readers[] = {&type};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, REQUIRED, 0},
                                 .id = "bad." NAME,
                                 .version = "1.0.0",
                                 .doc = "A reader that may break a rule",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .readers_count = 1,
                                 .readers = readers};

const tn_plugin* tenon_plugin(void) { return &plugin; }
