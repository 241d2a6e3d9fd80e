#include <stdio.h>
#include <tenon/tenon_scan.h>

static int failed(tn_status status, const tn_error* error) {
  if (status != TN_OK) fprintf(stderr, "%s\n", error->message);
  return status != TN_OK;
}

int main(void) {
  tn_error error = {.size = sizeof error};
  tn_host* host = NULL;
  if (failed(tn_host_create(NULL, &host, &error), &error)) return 1;

  const int64_t width = 4;
  tn_data_options rows = {.size = sizeof rows, .name = "x", .dtype = TN_F32, .shape = &width, .rank = 1};
  rows.storage = TN_RAGGED;
  tn_layer x, row, sum, next, sums;
  tn_scan scan;
  tn_status status = tn_data_create(host, &rows, &x, &error);

  tn_scan_options options = {.size = sizeof options, .over = x, .name = "sums"};
  if (status == TN_OK) status = tn_scan_begin(host, &options, &scan, &error);
  if (status == TN_OK) status = tn_scan_input(host, scan, x, "row", &row, &error);
  tn_scan_memory_options memory = {.size = sizeof memory, .rank = 1, .shape = &width, .name = "sum"};
  if (status == TN_OK) status = tn_scan_memory(host, scan, &memory, &sum, &error);
  if (status == TN_OK) {
    const tn_layer inputs[] = {row, sum};
    tn_layer_options add = {.size = sizeof add, .type = "add", .inputs = inputs, .inputs_count = 2};
    status = tn_layer_create(host, &add, &next, &error);
  }
  if (status == TN_OK) status = tn_scan_next(host, scan, sum, next, &error);
  if (status == TN_OK) status = tn_scan_end(host, scan, &next, 1, &sums, &error); /* output 1: the last sums */
  const int result = failed(status, &error);
  tn_host_destroy(host);
  return result;
}
