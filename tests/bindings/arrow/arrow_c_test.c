/* Tables of Arrow from C99: arrow_c_test FOLDER_OF_PLUGINS. A batch that is static feeds a machine, and the output is
 * a batch; a stream of it is a reader. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <tenon/tenon_arrow.h>

static tn_error error = {sizeof error, TN_OK, "", "", ""};
static int faults, released, lent;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "failed: %s (%s)\n", what, error.message);
  ++faults;
}
#define EXPECT(holds) expect(holds, #holds)
#define OK(call) expect((call) == TN_OK, #call)

static void release_array(struct ArrowArray* array) { ++released, array->release = NULL; }
static void release_schema(struct ArrowSchema* schema) { schema->release = NULL; }
static void release_lent(void* user) { ++*(int*)user; }

static const float numbers[] = {0, 1, 2, 3};
static const void *absent[] = {NULL}, *values[] = {NULL, numbers};
static struct ArrowSchema types = {"f", "x", NULL, 0, 0, NULL, NULL, release_schema, NULL};
static struct ArrowSchema* type_list[] = {&types};
static struct ArrowArray column = {4, 0, 0, 2, 0, values, NULL, NULL, release_array, NULL};
static struct ArrowArray* column_list[] = {&column};

static struct ArrowSchema table_type(void) {
  const struct ArrowSchema type = {"+s", "", NULL, 0, 1, type_list, NULL, release_schema, NULL};
  return type;
}
static struct ArrowArray table(int64_t rows) {
  const struct ArrowArray array = {rows, 0, 0, 1, 1, absent, column_list, NULL, release_array, NULL};
  return array;
}

static int get_schema(struct ArrowArrayStream* stream, struct ArrowSchema* out) {
  (void)stream;
  *out = table_type();
  return 0;
}
static int get_next(struct ArrowArrayStream* stream, struct ArrowArray* out) {
  int* const left = stream->private_data;
  *out = table(4);
  if ((*left)-- == 0) out->release = NULL;
  return 0;
}
static const char* get_last_error(struct ArrowArrayStream* stream) {
  (void)stream;
  return NULL;
}
static void release_stream(struct ArrowArrayStream* stream) { stream->release = NULL; }

static void read_stream(tn_host* host, tn_layer output) {
  struct ArrowArrayStream stream = {get_schema, get_next, get_last_error, release_stream, NULL};
  tn_arrow_reader_options reader_options = {0};
  tn_reader reader = {0, 0};
  tn_array array;
  int chunks = 2, samples = 0;
  stream.private_data = &chunks;
  reader_options.size = sizeof reader_options, reader_options.stream = &stream;
  reader_options.outputs = &output, reader_options.outputs_count = 1;
  OK(tn_arrow_reader_create(host, &reader_options, &reader, &error));
  EXPECT(stream.release == NULL);
  while (tn_reader_next(host, reader, &array, 1, &error) == TN_OK) samples += (int)array.shape[0];
  EXPECT(samples == 8);
  EXPECT(tn_reader_next(host, reader, &array, 1, &error) == TN_UNSUPPORTED);
  reader_options.flags = 2;
  EXPECT(tn_arrow_reader_create(host, &reader_options, &reader, &error) == TN_INVALID);
}

int main(int arguments, char** argument) {
  const char* folders[] = {NULL};
  const int64_t shape[] = {1};
  tn_host* host = NULL;
  tn_host_options options = {0};
  tn_data_options data = {0};
  tn_layer_options softmax = {0};
  tn_machine_options machine_options = {0};
  tn_layer x = {0, 0}, output = {0, 0};
  tn_parameters parameters = {0, 0}, none = {0, 0};
  tn_machine machine = {0, 0};
  tn_array array;
  tn_arrow_column result;
  const tn_arrow_feeds* feeds = NULL;
  struct ArrowSchema schema = table_type();
  struct ArrowArray batch = table(3);
  if (arguments < 2) return 64;
  folders[0] = argument[1];
  options.size = sizeof options, options.threads = 1, options.plugin_paths = folders, options.plugin_paths_count = 1;
  OK(tn_host_create(&options, &host, &error));
  data.size = sizeof data, data.dtype = TN_F32, data.name = "x", data.shape = shape, data.rank = 1,
  data.index_limit = -1;
  OK(tn_data_create(host, &data, &x, &error));
  softmax.size = sizeof softmax, softmax.type = "softmax", softmax.inputs = &x, softmax.inputs_count = 1;
  OK(tn_layer_create(host, &softmax, &output, &error));
  OK(tn_parameters_create(host, &output, 1, 1, &parameters, &error));
  machine_options.size = sizeof machine_options, machine_options.max_samples = 4;
  OK(tn_machine_create(host, parameters, &output, 1, &machine_options, &machine, &error));

  OK(tn_arrow_feeds_create(host, &output, 1, none, &schema, &batch, &feeds, &error));
  if (feeds == NULL) return 1;
  EXPECT(batch.release == NULL && schema.release != NULL && feeds->feeds_count == 1 && feeds->samples == 3);
  EXPECT(feeds->feeds[0].values.data == (const void*)numbers);
  OK(tn_machine_forward(host, machine, feeds->feeds, feeds->feeds_count, &error));
  EXPECT(released == 0);
  tn_arrow_feeds_release(feeds);
  EXPECT(released == 1);

  OK(tn_machine_output(host, machine, output, &array, &error));
  memset(&result, 0, sizeof result);
  result.name = "score", result.values = array;
  OK(tn_arrow_export(&result, 1, release_lent, &lent, &schema, &batch, &error));
  EXPECT(batch.length == 3 && strcmp(schema.children[0]->format, "+w:1") == 0);
  EXPECT(((const float*)batch.children[0]->children[0]->buffers[1])[2] == 1);
  batch.release(&batch);
  EXPECT(lent == 0);
  schema.release(&schema);
  EXPECT(lent == 1);
  EXPECT(tn_arrow_export(&result, 1, release_lent, &lent, NULL, &batch, &error) == TN_MISUSE && lent == 1);

  read_stream(host, output);
  tn_host_release(host);
  EXPECT(released == 3);
  return faults == 0 ? 0 : 1;
}
