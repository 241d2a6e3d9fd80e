/* The base of devices whose streams keep copies and fills until they are waited for, as those of an accelerator may.
 * A source defines NAME, and EVENT_WAIT or STREAM_WAIT for a fault. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <tenon/device.h>

/* A copy, or a fill where `from` is null. */
typedef struct work {
  void* to;
  const void* from;
  uint64_t bytes;
  uint8_t value;
} work;
enum { MOST = 64 };
typedef struct stream {
  work list[MOST];
  int count;
} stream;

static void do_work(const work* each) {
  if (each->bytes == 0) return;
  if (each->from == NULL)
    memset(each->to, each->value, each->bytes);
  else
    memmove(each->to, each->from, each->bytes);
}
static void finish(stream* of) {
  for (int i = 0; of != NULL && i < of->count; ++i) do_work(&of->list[i]);
  if (of != NULL) of->count = 0;
}
static void enqueue(stream* to, work each) {
  if (to != NULL && to->count == MOST) finish(to);
  if (to == NULL)
    do_work(&each);
  else
    to->list[to->count++] = each;
}

#ifndef STREAM_WAIT
#define STREAM_WAIT(of) finish(of)
#endif
#ifndef EVENT_WAIT /* what a stream does for the one whose event it waits for */
#define EVENT_WAIT(of) finish(of)
#endif

static tn_status late_copy(void* device, const tn_errors* errors, const tn_copy* what) {
  const work each = {what->to, what->from, what->bytes, 0};
  (void)device, (void)errors;
  enqueue(what->stream, each);
  return TN_OK;
}
static tn_status late_fill(void* device, const tn_errors* errors, void* on, void* memory, uint8_t value,
                           uint64_t bytes) {
  const work each = {memory, NULL, bytes, value};
  (void)device, (void)errors;
  enqueue(on, each);
  return TN_OK;
}
static tn_status make_object(void* device, const tn_errors* errors, void** made) {
  (void)device;
  *made = calloc(1, sizeof(stream)); /* of an event only the first bytes are used */
  return *made != NULL ? TN_OK : tn_fail(errors, TN_OUT_OF_MEMORY, NULL, "no memory for a stream or an event");
}
static void drop_object(void* device, void* object) {
  (void)device;
  free(object);
}
static tn_status wait_for(void* device, const tn_errors* errors, void* on) {
  (void)device, (void)errors;
  STREAM_WAIT((stream*)on);
  return TN_OK;
}
static tn_status record_event(void* device, const tn_errors* errors, void* event, void* on) {
  (void)device, (void)errors;
  memcpy(event, &on, sizeof on);
  return TN_OK;
}
static tn_status wait_event(void* device, const tn_errors* errors, void* event, void* on) {
  stream* of = NULL;
  (void)device, (void)errors, (void)on;
  memcpy(&of, event, sizeof of);
  EVENT_WAIT(of);
  return TN_OK;
}

#define COPIES late_copy, late_fill
#define STREAMS make_object, drop_object, wait_for, make_object, drop_object, record_event, wait_event
#include "device.h"
