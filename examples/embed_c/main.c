/* An application in C that holds Tenon: learns whether a point lies inside a circle, from points that it makes
 * itself, step by step without a reader; saves the model, loads it, and predicts.
 *   embed_c MODEL
 * MODEL is the file to write. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <tenon/tenon.h>

enum { kBatch = 64, kSteps = 1000 };

static tn_error error = {.size = sizeof error};

/* Ends the caller with the reason when a call failed; everything of the host goes with the host. */
#define TRY(call)                         \
  do {                                    \
    if ((call) != TN_OK) return failed(); \
  } while (0)

static int failed(void) {
  fprintf(stderr, "embed_c: %s (%s)\n", error.message, tn_status_text(error.code));
  return 1;
}

/* Points of the square from -1 to 1, and whether each lies inside the circle of radius 0.8. */
static void make_points(float* point, int64_t* inside, int count) {
  static unsigned long state = 1; /* of a small generator */
  for (int i = 0; i < 2 * count; ++i) {
    state = (state * 1103515245UL + 12345UL) & 0x7fffffffUL;
    point[i] = (float)(state >> 8) / (float)0x3fffff - 1.0F;
  }
  for (int i = 0; i < count; ++i) inside[i] = point[2 * i] * point[2 * i] + point[2 * i + 1] * point[2 * i + 1] < 0.64F;
}

/* docs: layers */
/* A layer with one or two inputs and any attributes. */
static tn_status add_layer(tn_host* host, const char* type, const char* name, const tn_layer* inputs, uint32_t count,
                           const tn_named_value* attributes, uint32_t attributes_count, tn_layer* layer) {
  const tn_layer_options options = {.size = sizeof options,
                                    .type = type,
                                    .name = name,
                                    .inputs = inputs,
                                    .inputs_count = count,
                                    .attributes = attributes,
                                    .attributes_count = attributes_count};
  return tn_layer_create(host, &options, layer, &error);
}

/* point -> fc 16, tanh -> fc 2 -> the cost, and the probability of outside and inside. outputs: cost, probability. */
static tn_status make_model(tn_host* host, tn_layer outputs[2]) {
  const int64_t two = 2;
  const tn_data_options point_data = {
      .size = sizeof point_data, .dtype = TN_F32, .name = "point", .shape = &two, .rank = 1, .index_limit = -1};
  const tn_data_options inside_data = {.size = sizeof inside_data, .dtype = TN_I64, .name = "inside", .index_limit = 2};
  const tn_named_value hidden[2] = {{"size", {TN_ATTR_INT, 1, {.i = 16}}}, {"act", {TN_ATTR_STRING, 1, {.s = "tanh"}}}};
  const tn_named_value classes[1] = {{"size", {TN_ATTR_INT, 1, {.i = 2}}}};
  const tn_named_value logits[1] = {{"from_logits", {TN_ATTR_BOOL, 1, {.i = 1}}}};
  tn_layer point, inner, pair[2]; /* pair: scores, truth */
  tn_status status = tn_data_create(host, &point_data, &point, &error);
  if (status == TN_OK) status = tn_data_create(host, &inside_data, &pair[1], &error);
  if (status == TN_OK) status = add_layer(host, "fc", "hidden", &point, 1, hidden, 2, &inner);
  if (status == TN_OK) status = add_layer(host, "fc", "score", &inner, 1, classes, 1, &pair[0]);
  if (status == TN_OK) status = add_layer(host, "cross_entropy", "cost", pair, 2, logits, 1, &outputs[0]);
  if (status == TN_OK) status = add_layer(host, "softmax", "probability", pair, 1, NULL, 0, &outputs[1]);
  return status;
}
/* docs: end */

/* docs: train */
static int train(tn_host* host, const char* file) {
  const tn_machine_options wanted = {.size = sizeof wanted, .max_samples = kBatch, .training = 1};
  const tn_named_value rate = {"learning_rate", {TN_ATTR_FLOAT, 1, {.f = 0.01}}};
  float point[2 * kBatch];
  int64_t inside[kBatch];
  const tn_feed feeds[2] = {
      {"point", {.dtype = TN_F32, .rank = 2, .shape = {kBatch, 2}, .data = point}},
      {"inside", {.dtype = TN_I64, .rank = 1, .shape = {kBatch}, .data = inside}},
  };
  tn_layer outputs[2];
  tn_parameters parameters;
  tn_machine machine;
  tn_updater updater;
  TRY(make_model(host, outputs));
  TRY(tn_parameters_create(host, outputs, 2, 1, &parameters, &error));
  TRY(tn_machine_create(host, parameters, outputs, 1, &wanted, &machine, &error));
  TRY(tn_updater_create(host, "adam", &rate, 1, &updater, &error));
  for (int step = 1; step <= kSteps; ++step) {
    double cost;
    make_points(point, inside, kBatch);
    TRY(tn_machine_forward(host, machine, feeds, 2, &error)); /* copies the feeds */
    TRY(tn_machine_backward(host, machine, &error));
    TRY(tn_updater_update(host, updater, machine, &error));
    TRY(tn_machine_cost(host, machine, &cost, &error));
    if (step % 200 == 0) printf("step %d  cost %.4f\n", step, cost);
  }
  TRY(tn_model_save(host, parameters, outputs, 2, file, &error));
  return 0; /* the handles go with the host */
}
/* docs: end */

/* docs: predict */
static int predict(tn_host* host, const char* file) {
  const tn_machine_options wanted = {.size = sizeof wanted, .max_samples = kBatch};
  float point[2 * kBatch], column[2][kBatch]; /* the points in rows, and the same in columns */
  int64_t inside[kBatch];
  const int64_t by_column[2] = {1, kBatch}; /* from point to point, and from its first number to its second */
  const tn_feed feed = {"point",
                        {.dtype = TN_F32, .rank = 2, .shape = {kBatch, 2}, .data = column, .strides = by_column}};
  tn_layer outputs[2];
  uint32_t outputs_count = 2;
  tn_parameters parameters;
  tn_machine machine;
  tn_array probability;
  int right = 0;
  TRY(tn_model_load(host, file, outputs, &outputs_count, &parameters, &error));
  TRY(tn_machine_create(host, parameters, &outputs[1], 1, &wanted, &machine, &error));
  make_points(point, inside, kBatch);
  for (int i = 0; i < 2 * kBatch; ++i) column[i % 2][i / 2] = point[i];
  TRY(tn_machine_forward(host, machine, &feed, 1, &error));
  TRY(tn_machine_output(host, machine, outputs[1], &probability, &error)); /* [kBatch, 2], borrowed */
  for (int i = 0; i < kBatch; ++i) {
    const float* p = (const float*)probability.data + 2 * i;
    right += (p[1] > p[0]) == (inside[i] == 1);
  }
  printf("%d of %d new points were told right\n", right, kBatch);
  return 0;
}
/* docs: end */

int main(int argc, char** argv) {
  tn_host* host = NULL;
  int result;
  if (argc != 2) {
    fprintf(stderr, "usage: embed_c MODEL\n");
    return 64;
  }
  TRY(tn_host_create(NULL, &host, &error)); /* all cores, the installed plugins */
  result = train(host, argv[1]);
  if (result == 0) result = predict(host, argv[1]);
  tn_host_release(host);
  return result;
}
