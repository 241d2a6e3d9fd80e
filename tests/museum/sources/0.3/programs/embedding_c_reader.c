#include <stdio.h>
#include <tenon/tenon.h>

enum { kMost = 16 };

/* Sentences of 0, 1, 2, ... words, and whether the number of words is odd. */
typedef struct sentences {
  int64_t count, next;
  int32_t words[kMost * kMost];
  int64_t offsets[kMost + 1], odd[kMost];
} sentences;

/* Returns up to `most` samples, and none at the end of a pass; the next call then starts the next pass. */
static tn_status next(void* user, int64_t most, tn_array* values, int64_t* count, tn_error* error) {
  sentences* from = (sentences*)user;
  int64_t rows = 0;
  if (from->count > kMost) {
    snprintf(error->message, sizeof error->message, "%d sentences are too many", (int)from->count);
    return TN_INVALID;
  }
  for (*count = 0; *count < most && from->next < from->count; ++*count, ++from->next) {
    for (int64_t i = 0; i < from->next; ++i) from->words[rows++] = (int32_t)i;
    from->offsets[*count + 1] = rows; /* offsets[0] is 0 */
    from->odd[*count] = from->next % 2;
  }
  if (*count == 0) from->next = 0;
  values[0].data = from->words;
  values[0].offsets[0] = from->offsets;
  values[0].shape[0] = rows;
  values[1].data = from->odd;
  return TN_OK;
}

int main(void) {
  const tn_slot words = {
      .size = sizeof words, .dtype = TN_I32, .name = "words", .storage = TN_RAGGED, .index_limit = kMost, .levels = 1};
  const tn_slot odd = {.size = sizeof odd, .dtype = TN_I64, .name = "odd", .index_limit = 2};
  const tn_slot* const slots[] = {&words, &odd};
  sentences source = {.count = 10};
  const tn_source_options options = {
      .size = sizeof options, .slots_count = 2, .slots = slots, .samples = source.count, .user = &source, .next = next};
  static tn_error error = {.size = sizeof error};
  tn_host* host = NULL;
  tn_reader single, reader;
  tn_array values[2];
  int64_t rows = 0;
  tn_status status = tn_host_create(NULL, &host, &error);
  if (status == TN_OK) status = tn_reader_create_from(host, &options, &single, &error);
  if (status == TN_OK) status = tn_reader_batch(host, single, 4, 0, &reader, &error); /* consumes `single` */
  while (status == TN_OK) {
    status = tn_reader_next(host, reader, values, 2, &error); /* borrowed until the next call on `reader` */
    if (status != TN_OK) break;
    printf("%d sentences, %d words\n", (int)values[0].samples, (int)values[0].shape[0]);
    rows += values[0].shape[0];
  }
  if (status != TN_END) fprintf(stderr, "%s\n", error.message);
  tn_host_destroy(host);
  return status == TN_END && rows == 45 ? 0 : 1;
}
