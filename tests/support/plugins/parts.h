/* Macros for the plugins of the registry's test. They are built without the SDK's manifest step, so that note and code
 * can disagree. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TESTS_PLUGINS_PARTS_H
#define TENON_TESTS_PLUGINS_PARTS_H

#include <stdio.h>
#include <stdlib.h>
#include <tenon/plugin.h>

/* Appends the id to the file named by TENON_TEST_MARKER when code of this plugin runs. */
#define TEST_MARKER(id)                                  \
  __attribute__((constructor)) static void mark(void) {  \
    const char* name = getenv("TENON_TEST_MARKER");      \
    FILE* file = name == NULL ? NULL : fopen(name, "a"); \
    if (file == NULL) return;                            \
    fputs(id "\n", file);                                \
    fclose(file);                                        \
  }

#if defined(__clang__)
#define TEST_PLAIN __attribute__((no_sanitize("address"))) /* no red zones between notes; GCC puts none there */
#else
#define TEST_PLAIN
#endif

/* The note, by hand: sizes, owner, text padded to four bytes. */
#define TEST_NOTE(json)                                                                        \
  TEST_PLAIN __attribute__((section(TN_NOTE_SECTION), used, aligned(4))) static const struct { \
    uint32_t owner_bytes, text_bytes, type;                                                    \
    char owner[8];                                                                             \
    char text[(sizeof(json) + 2) / 4 * 4];                                                     \
  } note = {sizeof TN_NOTE_OWNER, sizeof(json) - 1, TN_NOTE_TYPE, TN_NOTE_OWNER, json};

/* The interface version of this build, as a note states it. */
#define TEST_TEXT(value) TEST_TEXT_OF(value)
#define TEST_TEXT_OF(value) #value
#define TEST_MINOR TEST_TEXT(TN_ABI_MINOR)
#define TEST_ABI "{\"major\":0,\"built\":" TEST_MINOR ",\"required\":" TEST_MINOR "}"

/* The text of the note that agrees with TEST_PLUGIN below. */
#define TEST_JSON(abi, id, isa, libraries) TEST_JSON_OF(abi, id, id, isa, libraries)
#define TEST_JSON_OF(abi, id, type, isa, libraries)                                                    \
  "{\"note\":1,\"abi\":" abi ",\"id\":\"tenon.test." id                                                \
  "\",\"version\":\"1.2.3\",\"doc\":\"a test\",\"license\":\"MIT\","                                   \
  "\"isa\":\"" isa "\",\"layers\":[{\"type\":\"" type                                                  \
  "\",\"role\":0,\"doc\":\"y = x\","                                                                   \
  "\"inputs\":[{\"name\":\"x\",\"doc\":\"any\",\"flags\":0}],"                                         \
  "\"outputs\":[{\"name\":\"y\",\"doc\":\"as x\",\"flags\":0}],"                                       \
  "\"attributes\":[{\"name\":\"size\",\"doc\":\"units\",\"kind\":2,\"required\":false,\"initial\":3,"  \
  "\"minimum\":1,\"maximum\":null,\"choices\":[]}],\"parameters\":[\"weight\"],\"state_version\":7}]," \
  "\"libraries\":" libraries "}"

/* One layer type. It agrees with TEST_JSON if size_of_table is that of tn_layer_type and the attribute's default is 3.
 */
#define TEST_LAYER(name, plan_function) TEST_LAYER_OF(name, plan_function, sizeof(tn_layer_type), 3)
#define TEST_LAYER_OF(name, plan_function, size_of_table, initial)                                   \
  static const tn_port input = {sizeof(tn_port), 0, "x", "any"};                                     \
  static const tn_port output = {sizeof(tn_port), 0, "y", "as x"};                                   \
  static const tn_port* const inputs[] = {&input};                                                   \
  static const tn_port* const outputs[] = {&output};                                                 \
  static const tn_attribute size = {sizeof(tn_attribute),        TN_ATTR_INT, "size", "units", 0, 1, \
                                    {TN_ATTR_INT, 1, {initial}}, 1,           0,      NULL};         \
  static const tn_attribute* const attributes[] = {&size};                                           \
  static const char* const parameters[] = {"weight"};                                                \
  static const tn_layer_description description = {sizeof(tn_layer_description),                     \
                                                   TN_ROLE_LAYER,                                    \
                                                   name,                                             \
                                                   "y = x",                                          \
                                                   1,                                                \
                                                   1,                                                \
                                                   inputs,                                           \
                                                   outputs,                                          \
                                                   1,                                                \
                                                   1,                                                \
                                                   attributes,                                       \
                                                   parameters,                                       \
                                                   7,                                                \
                                                   0};                                               \
  static const tn_layer_type layer = {size_of_table, 0, &description, plan_function, NULL, NULL, NULL, NULL, NULL};

/* The descriptor, with the layer type above. */
#define TEST_PLUGIN(abi_major, abi_required, plugin_id, plugin_isa)                   \
  static const tn_layer_type* const layers[] = {&layer};                              \
  static const tn_plugin plugin = {.size = sizeof(tn_plugin),                         \
                                   .abi = {abi_major, TN_ABI_MINOR, abi_required, 0}, \
                                   .id = "tenon.test." plugin_id,                     \
                                   .version = "1.2.3",                                \
                                   .doc = "a test",                                   \
                                   .license = "MIT",                                  \
                                   .isa = plugin_isa,                                 \
                                   .layers_count = 1,                                 \
                                   .layers = layers};

/* A valid plan: the output has the spec of the input. */
#define TEST_PLAN \
  static tn_status plan(const tn_planner* planner) { return planner->output(planner->self, 0, planner->inputs[0]); }

#define TEST_ENTRY \
  const tn_plugin* tenon_plugin(void) { return &plugin; }

#endif
