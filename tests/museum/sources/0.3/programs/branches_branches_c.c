#include <stdio.h>
#include <tenon/tenon_cond.h>

static int failed(tn_status status, const tn_error* error) {
  if (status != TN_OK) fprintf(stderr, "%s\n", error->message);
  return status != TN_OK;
}

int main(void) {
  tn_error error = {.size = sizeof error};
  tn_host* host = NULL;
  if (failed(tn_host_create(NULL, &host, &error), &error)) return 1;

  const int64_t width = 1;
  tn_data_options data = {.size = sizeof data, .name = "x", .dtype = TN_F32, .shape = &width, .rank = 1};
  tn_layer x, chosen, rows[2], results[2], result;
  tn_status status = tn_data_create(host, &data, &x, &error);
  tn_layer_options choose = {.size = sizeof choose, .type = "choose_rows", .inputs = &x, .inputs_count = 1};
  if (status == TN_OK) status = tn_layer_create(host, &choose, &chosen, &error);
  for (uint32_t i = 0; i < 2 && status == TN_OK; ++i) status = tn_layer_output(host, chosen, i, &rows[i], &error);

  tn_cond cond;
  tn_cond_options options = {.size = sizeof options, .rows_count = 2, .rows = rows, .over = x, .name = "absolute"};
  if (status == TN_OK) status = tn_cond_begin(host, &options, &cond, &error);
  for (uint32_t i = 0; i < 2 && status == TN_OK; ++i)
    status = tn_cond_input(host, cond, i, x, (tn_layer){0}, NULL, &results[i], &error);
  if (status == TN_OK) {
    tn_layer_options negate = {.size = sizeof negate, .type = "scale_shift", .inputs = &results[1], .inputs_count = 1};
    const tn_named_value scale = {"scale", {TN_ATTR_FLOAT, 1, {.f = -1}}};
    negate.attributes = &scale, negate.attributes_count = 1;
    status = tn_layer_create(host, &negate, &results[1], &error);
  }
  if (status == TN_OK) status = tn_cond_end(host, cond, results, 2, &result, &error);
  const int code = failed(status, &error);
  tn_host_destroy(host);
  return code;
}
