/* A plugin of a later minor version that this host can run, and of which some components have values that this host
 * does not know: a role, a kind of attribute, a flag of a port, a trait, a compute type, a long chain; and one needs a
 * later host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

#define NEWER_ABI "{\"major\":0,\"built\":" TEST_MINOR "1,\"required\":" TEST_MINOR "}"
#define NEWER_PORTS(flags)                                     \
  "\"inputs\":[{\"name\":\"x\",\"doc\":\"any\",\"flags\":0}]," \
  "\"outputs\":[{\"name\":\"y\",\"doc\":\"as x\",\"flags\":" flags "}],"
#define NEWER_OPEN_LAYER(type, role, flags, attributes) \
  "{\"type\":\"" type "\",\"role\":" role               \
  ",\"doc\":\"a layer\"," NEWER_PORTS(flags) "\"attributes\":[" attributes "],\"parameters\":[],\"state_version\":1"
#define NEWER_LAYER(type, role, flags, attributes) NEWER_OPEN_LAYER(type, role, flags, attributes) "}"
#define NEWER_ATTRIBUTE "{\"name\":\"tree\",\"doc\":\"new\",\"kind\":12,\"initial\":{\"a\":[1]},\"required\":\"no\"}"
#define NEWER_KERNEL(type, name, rest) \
  "{\"type\":\"" type "\",\"device\":\"cpu\",\"name\":\"" name "\",\"score\":1," rest "}"

TEST_MARKER("newer")
TEST_NOTE("{\"note\":1,\"abi\":" NEWER_ABI
          ",\"id\":\"tenon.test.newer\",\"version\":\"1.2.3\",\"doc\":\"a test\",\"license\":\"MIT\",\"isa\":\"\",\"layers\":["
          NEWER_LAYER("newer_role", "9", "0", "") "," NEWER_LAYER("newer_good", "0", "0", "") ","
          NEWER_LAYER("newer_kind", "0", "0", NEWER_ATTRIBUTE) "," NEWER_LAYER("newer_flags", "0", "1048576", "") ","
          NEWER_OPEN_LAYER("newer_host", "0", "0", "") ",\"required\":" TEST_MINOR "1}"
          "],\"updaters\":[{\"type\":\"newer_kind\",\"doc\":\"u\",\"attributes\":[" NEWER_ATTRIBUTE
          "],\"state_version\":1}],\"readers\":[{\"type\":\"newer_traits\",\"doc\":\"r\",\"attributes\":[],\"traits\":4097}],"
          "\"kernels\":[" NEWER_KERNEL("newer_good", "eighth", "\"dtypes\":[\"float8_e4m3\"]") ","
          NEWER_KERNEL("newer_good", "plain", "\"dtypes\":[\"float32\",\"float8_e4m3\"]") ","
          NEWER_KERNEL("newer_good", "whole", "\"dtypes\":[\"int8\"]") ","
          NEWER_KERNEL("newer_good", "long", "\"dtypes\":[\"float32\"],\"fuses\":[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\","
                       "\"newer_good\"]")
          "]}")
TEST_PLAN

static const tn_port input = {sizeof(tn_port), 0, "x", "any"};
static const tn_port output = {sizeof(tn_port), 0, "y", "as x"};
static const tn_port flagged = {sizeof(tn_port), 1048576, "y", "as x"};
static const tn_port* const inputs[] = {&input};
static const tn_port* const outputs[] = {&output};
static const tn_port* const flagged_outputs[] = {&flagged};
static const tn_attribute tree = {.size = sizeof(tn_attribute), .kind = 12, .name = "tree", .doc = "new"};
static const tn_attribute* const attributes[] = {&tree};

#define DESCRIBED(variable, name, its_role, its_outputs, count)                                     \
  static const tn_layer_description variable##_description = {.size = sizeof(tn_layer_description), \
                                                              .role = its_role,                     \
                                                              .type = name,                         \
                                                              .doc = "a layer",                     \
                                                              .inputs_count = 1,                    \
                                                              .outputs_count = 1,                   \
                                                              .inputs = inputs,                     \
                                                              .outputs = its_outputs,               \
                                                              .attributes_count = count,            \
                                                              .attributes = attributes,             \
                                                              .state_version = 1};                  \
  static const tn_layer_type variable = {                                                           \
      .size = sizeof(tn_layer_type), .description = &variable##_description, .plan = plan};
DESCRIBED(role, "newer_role", 9, outputs, 0)
DESCRIBED(good, "newer_good", TN_ROLE_LAYER, outputs, 0)
DESCRIBED(kind, "newer_kind", TN_ROLE_LAYER, outputs, 1)
DESCRIBED(flags, "newer_flags", TN_ROLE_LAYER, flagged_outputs, 0)
DESCRIBED(host, "newer_host", TN_ROLE_LAYER, outputs, 0)
static const tn_layer_type* const layers[] = {&role, &good, &kind, &flags, &host};
static const tn_requirement requirement = {
    .size = sizeof(tn_requirement), .minor = TN_ABI_MINOR * 10 + 1, .component = &host};
static const tn_requirement* const requirements[] = {&requirement};

static tn_status record(const tn_update_recorder* recorder) {
  return tn_fail(recorder->errors, TN_UNSUPPORTED, NULL, "for tests alone");
}
static const tn_updater_description updater_description = {.size = sizeof(tn_updater_description),
                                                           .attributes_count = 1,
                                                           .type = "newer_kind",
                                                           .doc = "u",
                                                           .attributes = attributes,
                                                           .state_version = 1};
static const tn_updater_type updater = {
    .size = sizeof(tn_updater_type), .description = &updater_description, .record = record};
static const tn_updater_type* const updaters[] = {&updater};

static const tn_reader_description reader_description = {
    .size = sizeof(tn_reader_description), .type = "newer_traits", .doc = "r", .traits = 4097};
static const tn_reader_type reader = {.size = sizeof(tn_reader_type), .description = &reader_description};
static const tn_reader_type* const readers[] = {&reader};

static const tn_dtype plain_types[] = {TN_F32, TN_DTYPE(10, 8)}, eighth_types[] = {TN_DTYPE(10, 8)},
                      whole_types[] = {TN_I8};
static const char* const chain_types[] = {"a", "a", "a", "a", "a", "a", "a", "a", "newer_good"};
static const tn_fusion_pattern chain = {.size = sizeof(tn_fusion_pattern), .types_count = 9, .types = chain_types};
#define KERNEL(variable, types, count, pattern)                 \
  static const tn_kernel variable = {.size = sizeof(tn_kernel), \
                                     .score = 1,                \
                                     .type = "newer_good",      \
                                     .device = "cpu",           \
                                     .name = #variable,         \
                                     .dtypes_count = count,     \
                                     .dtypes = types,           \
                                     .fusion = pattern};
KERNEL(eighth, eighth_types, 1, NULL)
KERNEL(plain, plain_types, 2, NULL)
KERNEL(whole, whole_types, 1, NULL)
static const tn_kernel many = {.size = sizeof(tn_kernel),
                               .score = 1,
                               .type = "newer_good",
                               .device = "cpu",
                               .name = "long",
                               .dtypes_count = 1,
                               .dtypes = plain_types,
                               .fusion = &chain};
static const tn_kernel* const kernels[] = {&eighth, &plain, &whole, &many};

static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR * 10 + 1, TN_ABI_MINOR, 0},
                                 .id = "tenon.test.newer",
                                 .version = "1.2.3",
                                 .doc = "a test",
                                 .license = "MIT",
                                 .isa = "",
                                 .layers_count = 5,
                                 .kernels_count = 4,
                                 .layers = layers,
                                 .kernels = kernels,
                                 .updaters_count = 1,
                                 .readers_count = 1,
                                 .updaters = updaters,
                                 .readers = readers,
                                 .requirements_count = 1,
                                 .requirements = requirements};
TEST_ENTRY
