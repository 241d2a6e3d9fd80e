/* A topology as operators in blocks, from C99: topology_walk_test FOLDER_OF_PLUGINS FILE. Makes a scan, walks over its
 * layers, writes and reads it. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <tenon/tenon_scan.h>
#include <tenon/tenon_topology.h>

static tn_host* host;
static tn_error error = {sizeof error, TN_OK, "", "", ""};
static int faults;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "failed: %s (%s)\n", what, error.message);
  ++faults;
}
#define OK(call) expect((call) == TN_OK, #call)
#define REFUSED(call, code) expect((call) == (code), #call)

static tn_layer layer(const char* type, const char* name, tn_layer input, const char* port,
                      const tn_named_value* values, uint32_t count) {
  tn_layer made = {0, 0};
  tn_layer_options options = {sizeof options, 1, type, name, &input, values, count, 0, {0, 0}, port ? &port : NULL};
  OK(tn_layer_create(host, &options, &made, &error));
  return made;
}

static tn_layer make(void) {
  const int64_t width[] = {3}, size[] = {2};
  tn_data_options data = {0};
  tn_scan_options options = {0};
  tn_scan_memory_options memory = {0};
  tn_named_value values[3] = {{"size", {TN_ATTR_INT, 1, {2}}}, {"bias", {TN_ATTR_BOOL, 1, {0}}}, {"", {0, 0, {0}}}};
  tn_layer words, row, state, next, made = {0, 0};
  tn_scan scan;
  data.size = sizeof data, data.dtype = TN_F32, data.name = "words", data.shape = width, data.rank = 1;
  data.index_limit = -1, data.storage = TN_RAGGED, data.levels = 1;
  OK(tn_data_create(host, &data, &words, &error));
  options.size = sizeof options, options.over = words, options.name = "rnn";
  OK(tn_scan_begin(host, &options, &scan, &error));
  OK(tn_scan_input(host, scan, words, "row", &row, &error));
  memory.size = sizeof memory, memory.rank = 1, memory.shape = size, memory.name = "state";
  OK(tn_scan_memory(host, scan, &memory, &state, &error));
  values[2].name = "param.weight.name", values[2].value.kind = TN_ATTR_STRING, values[2].value.count = 1;
  values[2].value.as.s = "w";
  next = layer("fc", "next", row, "inputs", values, 3);
  OK(tn_scan_next(host, scan, state, next, &error));
  OK(tn_scan_end(host, scan, &next, 1, &made, &error));
  return made;
}

/* Writes "name type block ports" of each layer. */
static void walk(tn_layer output, char* to, size_t room) {
  tn_layer layers[8];
  uint32_t count = 8, i, k;
  OK(tn_topology_layers(host, &output, 1, layers, &count, &error));
  for (i = 0; i < count; ++i) {
    tn_layer_info info = {0};
    tn_block_info block = {0};
    info.size = sizeof info, block.size = sizeof block;
    OK(tn_layer_inspect(host, layers[i], &info, &error));
    OK(tn_layer_block(host, layers[i], &block, &error));
    snprintf(to + strlen(to), room - strlen(to), "%s %s %u %s", info.name, info.type, (unsigned)block.kind, block.name);
    for (k = 0; k < info.inputs_count; ++k) {
      const char* port = NULL;
      OK(tn_layer_port(host, layers[i], k, &port, &error));
      snprintf(to + strlen(to), room - strlen(to), " %s", port);
    }
    snprintf(to + strlen(to), room - strlen(to), "\n");
    OK(tn_layer_release(host, layers[i], NULL));
  }
}

static void take(void* user, const char* text, size_t length) { strncat(user, text, length); }

int main(int arguments, char** argument) {
  tn_host_options options = {0};
  tn_parameter_info parameter = {0};
  tn_clone_options clone = {0};
  tn_rename rename = {"next", "then"}, parameters = {"w", "v"};
  tn_layer made, read[2], copy, next;
  uint32_t count = 2;
  char found[2048] = "", again[2048] = "", text[4096] = "";
  const char* folder;
  if (arguments != 3) return 2;
  folder = argument[1];
  options.size = sizeof options, options.threads = 1, options.plugin_paths = &folder, options.plugin_paths_count = 1;
  if (tn_host_create(&options, &host, &error) != TN_OK) return 2;
  made = make();
  walk(made, found, sizeof found);
  expect(strcmp(found,
                "words data 0 \n"
                "row scan_input 1 rnn sequences\n"
                "next fc 1 rnn inputs\n"
                "state scan_memory 1 rnn initial over\n"
                "rnn scan 0  over results memories next\n") == 0,
         found);
  OK(tn_topology_print(host, &made, 1, take, text, &error));
  expect(strstr(text, "block 1, each step of rnn {") != NULL, text);
  OK(tn_topology_save(host, &made, 1, argument[2], &error));
  OK(tn_topology_load(host, argument[2], read, &count, &error));
  expect(count == 1, "one output");
  walk(read[0], again, sizeof again);
  expect(strcmp(found, again) == 0, again);
  clone.size = sizeof clone, clone.layers = &rename, clone.layers_count = 1;
  clone.parameters = &parameters, clone.parameters_count = 1;
  OK(tn_topology_clone(host, &made, 1, &clone, &copy, &error));
  OK(tn_layer_find(host, copy, "then", &next, &error));
  parameter.size = sizeof parameter;
  OK(tn_layer_parameter(host, next, 0, &parameter, &error));
  expect(strcmp(parameter.name, "v") == 0 && strcmp(parameter.path, "weight") == 0, parameter.name);
  rename.from = "none";
  REFUSED(tn_topology_clone(host, &made, 1, &clone, &copy, &error), TN_NOT_FOUND);
  expect(strcmp(error.subject, "none") == 0, "the unknown layer is named");
  REFUSED(tn_topology_load(host, "none.json", read, &count, &error), TN_NOT_FOUND);
  tn_host_release(host);
  return faults == 0 ? 0 : 1;
}
