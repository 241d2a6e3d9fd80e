/* An exhibit of interface 0.4, in C: the layer museum.images, over images [samples, 4, 4, 1]: the maxima of windows of
 * 2 x 2 in a convolution with the parameter weight, [1, 2, 2, 1], each repeated twice along both dimensions.
 * SPDX-License-Identifier: Apache-2.0 */
#include <tenon/plugin.h>

static const tn_port in_port = {.size = sizeof(tn_port), .name = "in", .doc = "[samples, 4, 4, 1]"};
static const tn_port out_port = {.size = sizeof(tn_port), .name = "out", .doc = "as in"};
static const tn_port* const inputs[] = {&in_port};
static const tn_port* const outputs[] = {&out_port};
static const char* const suffixes[] = {"weight"};
static const tn_layer_description description = {.size = sizeof(tn_layer_description),
                                                 .role = TN_ROLE_LAYER,
                                                 .type = "museum.images",
                                                 .doc = "a convolution, a pooling and a resizing of small images",
                                                 .inputs_count = 1,
                                                 .outputs_count = 1,
                                                 .inputs = inputs,
                                                 .outputs = outputs,
                                                 .parameters_count = 1,
                                                 .parameters = suffixes,
                                                 .state_version = 1};

static int is(const tn_dim* dim, int64_t size) { return dim->symbol == TN_SYMBOL_NONE && dim->offset == size; }

static tn_status plan(const tn_planner* planner) {
  const tn_spec* in = planner->inputs[0];
  tn_dim sizes[4];
  const tn_spec weight = {.size = sizeof(tn_spec), .dtype = TN_COMPUTE, .storage = TN_DENSE, .rank = 4, .dims = sizes};
  const tn_parameter parameter = {.size = sizeof(tn_parameter),
                                  .suffix = "weight",
                                  .spec = &weight,
                                  .initializer = {.kind = TN_INIT_CONSTANT, .a = 0.25}};
  if (in->storage != TN_DENSE || in->rank != 4 || !is(&in->dims[1], 4) || !is(&in->dims[2], 4) || !is(&in->dims[3], 1))
    return tn_fail(planner->errors, TN_INVALID, "in", "must be [samples, 4, 4, 1]");
  sizes[0] = sizes[1] = sizes[2] = sizes[3] = in->dims[3];
  sizes[1].offset = sizes[2].offset = 2;
  if (planner->parameter(planner->self, &parameter) < 0) return TN_INVALID;
  return planner->output(planner->self, 0, in);
}

/* Windows of 2 x 2, one element apart, over images of size x size. */
static tn_window windows(int64_t size) {
  const tn_window result = {.size = sizeof(tn_window),
                            .rank = 2,
                            .images = {size, size},
                            .kernel = {2, 2},
                            .stride = {1, 1},
                            .dilation = {1, 1}};
  return result;
}

static tn_status lower(const tn_attributes* attributes, const tn_builder* builder) {
  const tn_window over_images = windows(4), over_results = windows(3);
  const tn_resize twice = {
      .size = sizeof(tn_resize), .rank = 2, .from = {2, 2}, .to = {4, 4}, .scale = {0.5, 0.5}, .offset = {0, 0}};
  const tn_ref in = builder->input(builder->self, 0, 0), weight = builder->parameter(builder->self, 0);
  const tn_ref made = builder->conv(builder->self, TN_CONV_RESULTS, &over_images, 1, in, weight);
  tn_ref maxima[2] = {-1, -1};
  (void)attributes;
  builder->pool(builder->self, TN_POOL_MAX, &over_results, made, -1, maxima);
  builder->output(builder->self, 0, builder->resize(builder->self, &twice, maxima[0]));
  return builder->status(builder->self);
}

static const tn_layer_type layer = {
    .size = sizeof(tn_layer_type), .description = &description, .plan = plan, .lower = lower};
static const tn_layer_type* const layers[] = {&layer};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
                                 .id = "tenon.museum.images",
                                 .version = "0.4.0",
                                 .doc = "An exhibit of interface 0.4 in C, over images",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .layers_count = 1,
                                 .layers = layers};

const tn_plugin* tenon_plugin(void) { return &plugin; }
