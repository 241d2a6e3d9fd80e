/* A reader of lines of numbers: the features of a sample, then its class, from 0, with spaces between them. Empty lines
 * and those that begin with # are left out. It reads samples by number, so the host can shuffle them, and knows its
 * position, so that a training resumes exactly. SPDX-License-Identifier: MIT */
#define TN_TARGET_MINOR 2 /* runs on hosts from 0.2 on; what is newer does not compile */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/decimal.h>
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096); /* room for the manifest, if the plugin is built without CMake */

enum { MOST_BYTES = 1 << 16, MOST_NUMBERS = 1024, MOST_CLASSES = 1 << 20, MOST_PATH = 4096 }; /* of a line, of a file */

/* The declarations. */
static const tn_attribute file_attribute = {
    .size = sizeof(tn_attribute),
    .kind = TN_ATTR_STRING,
    .name = "file",
    .doc = "the file to read",
    .flags = TN_ATTR_REQUIRED,
};
static const tn_attribute* const attributes[] = {&file_attribute};
static const tn_reader_description description = {
    .size = sizeof(tn_reader_description),
    .attributes_count = 1,
    .type = "example.my_plugin",
    .doc = "lines of numbers with spaces between them: features, then a class from 0",
    .attributes = attributes,
};

/* An open reader, at the beginning of its one block of memory. */
typedef struct reader {
  const tn_errors* errors;
  const tn_memory* memory;
  uint64_t bytes;
  int64_t width, classes; /* numbers in front of the class; classes */
  int64_t samples;        /* of this shard */
  int64_t position;
  int64_t* labels; /* [samples] */
  float* features; /* [samples, width] */
  tn_slot slots[2];
  const tn_slot* slot_list[2];
  tn_reader_schema schema;
} reader;

/* A file that is being parsed. */
typedef struct text {
  const tn_errors* errors;
  char path[MOST_PATH];
  FILE* file;
  int64_t line;
  char* bytes; /* [MOST_BYTES] */
  double numbers[MOST_NUMBERS];
  int64_t count;
} text;

static tn_status fail_at(const text* in, tn_status code, const char* message) {
  char place[MOST_PATH + 32];
  snprintf(place, sizeof place, "%s, line %lld", in->path, (long long)in->line);
  return tn_fail(in->errors, code, place, message);
}

/* Parses the next sample. Returns TN_END after the last one. `width`: numbers in front of the class, 0 if unknown. */
static tn_status next_sample(text* in, int64_t width) {
  const char* at;
  do {
    if (fgets(in->bytes, MOST_BYTES, in->file) == NULL)
      return ferror(in->file) ? fail_at(in, TN_IO, "cannot be read") : TN_END;
    ++in->line;
    if (strchr(in->bytes, '\n') == NULL && !feof(in->file)) return fail_at(in, TN_BAD_DATA, "the line is too long");
  } while (in->bytes[strspn(in->bytes, " \t\r\n")] == '\0' || in->bytes[0] == '#');
  in->count = 0;
  for (at = in->bytes; at[strspn(at, " \t\r\n")] != '\0';) {
    const char* const from = at + strspn(at, " \t\r\n");
    double value = 0;
    const char* const end = tn_parse_double(from, &value); /* unlike strtod in every locale the same */
    if (end == from) return fail_at(in, TN_BAD_DATA, "expected numbers with spaces between them");
    if (in->count == MOST_NUMBERS) return fail_at(in, TN_BAD_DATA, "has more than 1024 numbers");
    in->numbers[in->count++] = value;
    at = end;
  }
  if (in->count < 2 || (width != 0 && in->count != width + 1)) {
    char message[96];
    snprintf(message, sizeof message, "expected %lld numbers, got %lld", (long long)(width ? width + 1 : 2),
             (long long)in->count);
    return fail_at(in, TN_BAD_DATA, message);
  }
  const double label = in->numbers[in->count - 1];
  if (!(label >= 0 && label < MOST_CLASSES) || label != floor(label))
    return fail_at(in, TN_BAD_DATA, "expected a class, a whole number from 0, at the end");
  return TN_OK;
}

/* Counts the samples of the shard, or with an object to fill (`to` not null) copies them into it. */
static tn_status parse(text* in, const tn_reader_open* open, reader* counts, reader* to) {
  int64_t number = 0, kept = 0;
  tn_status status;
  rewind(in->file);
  in->line = 0;
  counts->classes = 0;
  for (; (status = next_sample(in, counts->width)) == TN_OK; ++number) {
    const int64_t label = (int64_t)in->numbers[in->count - 1];
    counts->width = in->count - 1;
    if (label >= counts->classes) counts->classes = label + 1;
    if (number % open->shards != open->shard) continue;
    if (to != NULL) {
      if (kept == to->samples) return fail_at(in, TN_BAD_DATA, "the file has changed");
      for (int64_t i = 0; i < to->width; ++i) to->features[kept * to->width + i] = (float)in->numbers[i];
      to->labels[kept] = label;
    }
    ++kept;
  }
  if (status != TN_END) return status;
  if (number == 0) return fail_at(in, TN_BAD_DATA, "the file has no samples");
  counts->samples = kept;
  return TN_OK;
}

static void fill_schema(reader* made) {
  const tn_slot feature = {.size = sizeof feature, .dtype = TN_F32, .name = "feature", .rank = 1, .index_limit = -1};
  const tn_slot label = {.size = sizeof label, .dtype = TN_I64, .name = "label"};
  made->slots[0] = feature;
  made->slots[0].shape = &made->width;
  made->slots[1] = label;
  made->slots[1].index_limit = made->classes;
  made->slot_list[0] = &made->slots[0];
  made->slot_list[1] = &made->slots[1];
  made->schema.size = sizeof made->schema;
  made->schema.slots_count = 2;
  made->schema.slots = made->slot_list;
}

/* Makes the object from a file that is open. */
static tn_status load(text* in, const tn_reader_open* open, void** instance) {
  const tn_memory* memory = (const tn_memory*)open->services->extension(open->services->self, TN_MEMORY);
  reader counts = {0}, *made;
  tn_status status;
  if (memory == NULL) return tn_fail(open->errors, TN_UNSUPPORTED, NULL, "needs the service " TN_MEMORY);
  status = parse(in, open, &counts, NULL);
  if (status != TN_OK) return status;
  counts.errors = open->errors;
  counts.memory = memory;
  counts.bytes = sizeof counts + (uint64_t)counts.samples * (sizeof(int64_t) + (uint64_t)counts.width * sizeof(float));
  made = (reader*)memory->allocate(memory->self, counts.bytes);
  if (made == NULL) return tn_fail(open->errors, TN_OUT_OF_MEMORY, in->path, "no memory for the samples");
  *made = counts;
  made->labels = (int64_t*)(made + 1);
  made->features = (float*)(made->labels + made->samples);
  fill_schema(made);
  status = parse(in, open, &counts, made);
  if (status == TN_OK)
    *instance = made;
  else
    memory->release(memory->self, made, made->bytes);
  return status;
}

static tn_status open_reader(const tn_reader_open* open, void** instance) {
  const char* name = tn_string(open->attributes, "file", "");
  const char* folder = name[0] == '/' || open->directory == NULL ? "" : open->directory;
  tn_status status = TN_OUT_OF_MEMORY;
  text* in = (text*)calloc(1, sizeof(text) + MOST_BYTES);
  if (in == NULL) return tn_fail(open->errors, TN_OUT_OF_MEMORY, name, "no memory for a line");
  in->errors = open->errors;
  in->bytes = (char*)(in + 1);
  if (snprintf(in->path, sizeof in->path, "%s%s%s", folder, folder[0] == '\0' ? "" : "/", name) >= MOST_PATH)
    status = tn_fail(open->errors, TN_INVALID, "file", "the path is too long");
  else if ((in->file = fopen(in->path, "re")) == NULL)
    status = tn_fail(open->errors, TN_NOT_FOUND, in->path, "cannot be opened");
  else
    status = load(in, open, instance);
  if (in->file != NULL) fclose(in->file);
  free(in);
  return status;
}

static void close_reader(void* self) {
  reader* it = (reader*)self;
  it->memory->release(it->memory->self, it, it->bytes);
}

static const tn_reader_schema* schema(void* self) { return &((reader*)self)->schema; }
static int64_t samples(void* self) { return ((reader*)self)->samples; }
static int64_t position(void* self) { return ((reader*)self)->position; }

static tn_status seek_to(void* self, int64_t to) {
  reader* it = (reader*)self;
  if (to < 0 || to > it->samples) return tn_fail(it->errors, TN_INVALID, "position", "is not in the data");
  it->position = to;
  return TN_OK;
}

/* Writes sample number `from` as sample number `to` of the buffers. */
static void copy_sample(const reader* it, int64_t from, const tn_reader_buffers* buffers, int64_t to) {
  const uint64_t bytes = (uint64_t)it->width * sizeof(float);
  memcpy((float*)buffers->data[0] + to * it->width, it->features + from * it->width, bytes);
  ((int64_t*)buffers->data[1])[to] = it->labels[from];
}

static tn_status read_at(void* self, const int64_t* indices, int64_t count, const tn_reader_buffers* buffers) {
  const reader* it = (const reader*)self;
  if (count > buffers->capacity) return TN_NEED_CAPACITY;
  for (int64_t i = 0; i < count; ++i) copy_sample(it, indices[i], buffers, i);
  return TN_OK;
}

static tn_status next(void* self, const tn_reader_buffers* buffers, int64_t* count) {
  reader* it = (reader*)self;
  *count = 0;
  if (it->position == it->samples) {
    it->position = 0; /* the next call begins the next pass */
    return TN_END;
  }
  if (buffers->capacity < 1) return TN_NEED_CAPACITY;
  while (*count < buffers->capacity && it->position < it->samples) copy_sample(it, it->position++, buffers, (*count)++);
  return TN_OK;
}

static const tn_reader_type reader_type = {
    .size = sizeof(tn_reader_type),
    .description = &description,
    .open = open_reader,
    .close = close_reader,
    .schema = schema,
    .samples = samples,
    .read_at = read_at,
    .next = next,
    .position = position,
    .seek = seek_to,
};
static const tn_reader_type* const readers[] = {&reader_type};
static const tn_plugin plugin = {
    .size = sizeof(tn_plugin),
    .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_TARGET_MINOR, 0},
    .id = "example.my_plugin",
    .version = "0.1.0",
    .doc = "Reads lines of numbers",
    .license = "MIT",
    .isa = "",
    .readers_count = 1,
    .readers = readers,
};

const tn_plugin* tenon_plugin(void) { return &plugin; }
