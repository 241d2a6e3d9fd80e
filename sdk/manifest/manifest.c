/* Checks a descriptor, component by component, and writes its manifest. SPDX-License-Identifier: MIT */
#include "manifest.h"

#include <inttypes.h>
#include <string.h>

#include "attributes.h"
#include "comms.h"
#include "offers.h"
#include "text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The host takes these attributes of every layer or updater for its own. */
static const char* const of_layers[] = {"act", "coefficient", "drop_rate", "parameter_name", NULL};
static const char* const of_updaters[] = {"clip_norm", "clip_value", "l1", "l2", "schedule", NULL};

static void write_ports(text* t, const char* member, const tn_port* const* ports, uint32_t count) {
  const uint32_t known = TN_PORT_OPTIONAL | TN_PORT_VARIADIC | TN_PORT_INTEGER | TN_PORT_ANY | TN_PORT_SPARSE;
  check_list(t, member, ports, count);
  json_open(t, member, '[');
  for (uint32_t i = 0; i < count; ++i) {
    const tn_port* port = ports[i];
    check_entry(t, member, port, i);
    check_size(t, "port", port->size, sizeof *port, sizeof *port);
    check_word(t, member, port->name);
    if (port->doc == NULL || *port->doc == '\0') refuse(t, "port \"%s\" has no doc line", port->name);
    if ((port->flags & ~known) != 0) refuse(t, "port \"%s\" has unknown flags 0x%" PRIx32, port->name, port->flags);
    if ((port->flags & TN_PORT_VARIADIC) != 0 && i + 1 < count)
      refuse(t, "port \"%s\" is variadic, but not the last of its %s", port->name, member);
    for (uint32_t j = 0; j < i; ++j) check_unique(t, "port", port->name, ports[j]->name);
    json_open(t, NULL, '{');
    json_string(t, "name", port->name);
    json_string(t, "doc", port->doc);
    json_integer(t, "flags", port->flags);
    json_close(t, '}');
  }
  json_close(t, ']');
}

static void write_parameters(text* t, const tn_plugin* plugin, const char* const* suffixes, uint32_t count) {
  check_list(t, "parameters", suffixes, count);
  json_open(t, "parameters", '[');
  for (uint32_t i = 0; i < count; ++i) {
    check_words(t, "parameters", suffixes[i]);
    if (strchr(suffixes[i], '.') != NULL) check_minor(t, plugin, "a parameter of an inner layer", 3);
    for (uint32_t j = 0; j < i; ++j) check_unique(t, "parameter", suffixes[i], suffixes[j]);
    json_string(t, NULL, suffixes[i]);
  }
  json_close(t, ']');
}

static int has_kernel(const tn_plugin* plugin, const char* type) {
  for (uint32_t i = 0; i < plugin->kernels_count; ++i)
    if (plugin->kernels[i] != NULL && plugin->kernels[i]->type != NULL && strcmp(plugin->kernels[i]->type, type) == 0)
      return 1;
  return 0;
}

static void check_layer(text* t, const tn_plugin* plugin, const tn_layer_type* table) {
  const tn_layer_description* d = table->description;
  const int metric = d->role == TN_ROLE_METRIC;
  CHECK_FUNCTION(t, table, plan);
  if (table->lower == NULL && table->expand == NULL && !has_kernel(plugin, d->type))
    refuse(t, "it has no body: neither \"lower\" nor \"expand\", nor a kernel in this plugin");
  if (d->role < TN_ROLE_LAYER || d->role > TN_ROLE_METRIC) refuse(t, "its role %" PRId32 " is unknown", d->role);
  if (metric) CHECK_FUNCTION(t, table, finalize);
  if (!metric && table->finalize != NULL) refuse(t, "\"finalize\" is for metrics alone");
  if (metric != (d->outputs_count == 0))
    refuse(t, metric ? "a metric has no outputs, but %" PRIu32 " are declared" : "it has no output (%" PRIu32 ")",
           d->outputs_count);
}

static void write_state_version(text* t, uint32_t version) {
  if (version == 0) refuse(t, "its state_version is 0; expected at least 1");
  json_integer(t, "state_version", version);
}

static void write_layer(text* t, const tn_plugin* plugin, const tn_layer_type* table) {
  check_size(t, "layer type", table->size, sizeof *table, sizeof *table);
  const tn_layer_description* d = table->description;
  if (d == NULL) refuse(t, "the description of a layer type is null");
  check_size(t, "layer description", d->size, sizeof *d, sizeof *d);
  check_own_type(t, plugin, "layer type", d->type);
  set_owner(t, "plugin \"%s\", layer type \"%s\"", plugin->id, d->type);
  check_layer(t, plugin, table);
  json_open(t, NULL, '{');
  json_string(t, "type", d->type);
  json_integer(t, "role", d->role);
  json_string(t, "doc", d->doc);
  write_ports(t, "inputs", d->inputs, d->inputs_count);
  write_ports(t, "outputs", d->outputs, d->outputs_count);
  write_attributes(t, "attributes", d->attributes, d->attributes_count, of_layers);
  write_parameters(t, plugin, d->parameters, d->parameters_count);
  write_state_version(t, d->state_version);
  write_offers(t, plugin, table, TN_OF_LAYERS, table->extension, table->user);
  json_close(t, '}');
}

static void write_updater(text* t, const tn_plugin* plugin, const tn_updater_type* table) {
  check_size(t, "updater type", table->size, sizeof *table, sizeof *table);
  const tn_updater_description* d = table->description;
  if (d == NULL) refuse(t, "the description of an updater type is null");
  check_size(t, "updater description", d->size, sizeof *d, sizeof *d);
  check_own_type(t, plugin, "updater type", d->type);
  set_owner(t, "plugin \"%s\", updater type \"%s\"", plugin->id, d->type);
  CHECK_FUNCTION(t, table, record);
  json_open(t, NULL, '{');
  json_string(t, "type", d->type);
  json_string(t, "doc", d->doc);
  write_attributes(t, "attributes", d->attributes, d->attributes_count, of_updaters);
  write_state_version(t, d->state_version);
  write_requirement(t, plugin, table);
  json_close(t, '}');
}

static void write_reader(text* t, const tn_plugin* plugin, const tn_reader_type* table) {
  check_size(t, "reader type", table->size, sizeof *table, sizeof *table);
  const tn_reader_description* d = table->description;
  if (d == NULL) refuse(t, "the description of a reader type is null");
  check_size(t, "reader description", d->size, sizeof *d, sizeof *d);
  check_own_type(t, plugin, "reader type", d->type);
  set_owner(t, "plugin \"%s\", reader type \"%s\"", plugin->id, d->type);
  CHECK_FUNCTION(t, table, open);
  CHECK_FUNCTION(t, table, close);
  CHECK_FUNCTION(t, table, schema);
  CHECK_FUNCTION(t, table, samples);
  CHECK_FUNCTION(t, table, next);
  CHECK_FUNCTION(t, table, position);
  json_open(t, NULL, '{');
  json_string(t, "type", d->type);
  json_string(t, "doc", d->doc);
  write_attributes(t, "attributes", d->attributes, d->attributes_count, NULL);
  json_integer(t, "traits", d->traits);
  write_offers(t, plugin, table, TN_OF_READERS, table->extension, table->user);
  json_close(t, '}');
}

static void check_device(text* t, const tn_device_type* table) {
  CHECK_FUNCTION(t, table, count);
  CHECK_FUNCTION(t, table, open);
  CHECK_FUNCTION(t, table, close);
  CHECK_FUNCTION(t, table, properties);
  CHECK_FUNCTION(t, table, allocate);
  CHECK_FUNCTION(t, table, release);
  CHECK_FUNCTION(t, table, copy);
  CHECK_FUNCTION(t, table, fill);
  CHECK_FUNCTION(t, table, stream_create);
  CHECK_FUNCTION(t, table, stream_destroy);
  CHECK_FUNCTION(t, table, stream_wait);
  CHECK_FUNCTION(t, table, event_create);
  CHECK_FUNCTION(t, table, event_destroy);
  CHECK_FUNCTION(t, table, event_record);
  CHECK_FUNCTION(t, table, event_wait);
  CHECK_FUNCTION(t, table, extension);
}

static void write_device(text* t, const tn_plugin* plugin, const tn_device_type* table) {
  check_size(t, "device type", table->size, sizeof *table, sizeof *table);
  const tn_device_description* d = table->description;
  if (d == NULL) refuse(t, "the description of a device is null");
  check_size(t, "device description", d->size, sizeof *d, sizeof *d);
  check_own_type(t, plugin, "device kind", d->kind);
  set_owner(t, "plugin \"%s\", device \"%s\"", plugin->id, d->kind);
  check_device(t, table);
  json_open(t, NULL, '{');
  json_string(t, "kind", d->kind);
  json_string(t, "doc", d->doc);
  json_integer(t, "dlpack_type", d->dlpack_type);
  json_open(t, "tables", '[');
  for (const char* const* id = d->tables; id != NULL && *id != NULL; ++id) {
    check_characters(t, "an id of tables", *id, "._/-");
    const void* offered = table->extension(table->user, *id);
    if (offered == NULL) refuse(t, "it lists the table \"%s\", but its extension has none", *id);
    check_table(t, *id, offered);
    for (const char* const* other = d->tables; other != id; ++other) check_unique(t, "table", *id, *other);
    json_string(t, NULL, *id);
  }
  json_close(t, ']');
  json_close(t, '}');
}

static void write_dtype(text* t, tn_dtype dtype) {
  static const struct {
    tn_dtype dtype;
    const char* name;
  } names[] = {{TN_F32, "float32"}, {TN_F64, "float64"}, {TN_F16, "float16"}, {TN_BF16, "bfloat16"}};
  for (size_t i = 0; i < COUNT(names); ++i)
    if (names[i].dtype == dtype) {
      json_string(t, NULL, names[i].name);
      return;
    }
  refuse(t, "0x%" PRIx32 " is not a compute type; known: float32, float64, float16, bfloat16", dtype);
}

static void write_chain(text* t, const tn_kernel* k) {
  const tn_fusion_pattern* fusion = k->fusion;
  if (fusion == NULL) return;
  check_size(t, "fusion", fusion->size, sizeof *fusion, sizeof *fusion);
  check_list(t, "fuses", fusion->types, fusion->types_count);
  if (fusion->types_count < 2 || fusion->types_count > 8)
    refuse(t, "it fuses a chain of %" PRIu32 " layers; 2 to 8 are possible", fusion->types_count);
  json_open(t, "fuses", '[');
  for (uint32_t i = 0; i < fusion->types_count; ++i) {
    check_entry(t, "fuses", fusion->types[i], i);
    check_type(t, "layer type", fusion->types[i]);
    json_string(t, NULL, fusion->types[i]);
  }
  json_close(t, ']');
  if (strcmp(fusion->types[fusion->types_count - 1], k->type) != 0)
    refuse(t, "it is for the layer type \"%s\", but the chain that it fuses ends in another", k->type);
}

static void check_shared(text* t, const tn_plugin* plugin, const tn_shared* shared) {
  const uint32_t known = TN_SHARED_ONE_AT_A_TIME | TN_SHARED_PER_STREAM;
  if (shared == NULL) return;
  check_size(t, "shared", shared->size, sizeof *shared, sizeof *shared);
  if ((shared->flags & ~known) != 0) refuse(t, "its shared has unknown flags 0x%" PRIx32, shared->flags & ~known);
  if (shared->flags != 0) check_minor(t, plugin, "\"flags\" of its shared", 4);
  CHECK_FUNCTION(t, shared, open);
  CHECK_FUNCTION(t, shared, close);
}

static void write_kernel(text* t, const tn_plugin* plugin, const tn_kernel* k) {
  check_size(t, "kernel", k->size, offsetof(tn_kernel, inputs_known), sizeof *k);
  check_characters(t, "the name of a kernel", k->name, "._-");
  set_owner(t, "plugin \"%s\", kernel \"%s\"", plugin->id, k->name);
  check_type(t, "layer type", k->type);
  check_type(t, "device kind", k->device);
  CHECK_FUNCTION(t, k, supports);
  CHECK_FUNCTION(t, k, query);
  CHECK_FUNCTION(t, k, prepare);
  if (k->dtypes_count == 0) refuse(t, "it computes in no type: \"dtypes\" is empty");
  check_list(t, "dtypes", k->dtypes, k->dtypes_count);
  json_open(t, NULL, '{');
  json_string(t, "type", k->type);
  json_string(t, "device", k->device);
  json_string(t, "name", k->name);
  json_open(t, "dtypes", '[');
  for (uint32_t i = 0; i < k->dtypes_count; ++i) write_dtype(t, k->dtypes[i]);
  json_close(t, ']');
  json_integer(t, "score", k->score);
  write_chain(t, k);
  check_shared(t, plugin, k->shared);
  write_requirement(t, plugin, k);
  json_close(t, '}');
}

static void write_library(text* t, const tn_library* library) {
  check_size(t, "library", library->size, sizeof *library, sizeof *library);
  check_characters(t, "the name of a library", library->name, "._+-");
  if (library->hint == NULL || *library->hint == '\0') refuse(t, "library \"%s\" has no hint", library->name);
  json_open(t, NULL, '{');
  json_string(t, "name", library->name);
  json_string(t, "hint", library->hint);
  json_close(t, '}');
}

static void write_provider(text* t, const tn_plugin* plugin, const tn_provider* p) {
  check_size(t, "provider", p->size, sizeof *p, sizeof *p);
  check_characters(t, "the name of a provider", p->name, "._-");
  set_owner(t, "plugin \"%s\", provider \"%s\"", plugin->id, p->name);
  check_type(t, "device kind", p->device);
  check_characters(t, "the id of its table", p->id, "._/-");
  if (p->table == NULL) refuse(t, "its table is null");
  check_table(t, p->id, p->table);
  check_shared(t, plugin, p->shared);
  json_open(t, NULL, '{');
  json_string(t, "device", p->device);
  json_string(t, "id", p->id);
  json_string(t, "name", p->name);
  json_integer(t, "score", p->score);
  json_close(t, '}');
}

/* One list of the descriptor: each entry by `write`, names unique. The owner is the plugin again after each. */
#define WRITE_LIST(t, plugin, member, what, name, write)                                                            \
  do {                                                                                                              \
    check_list(t, #member, (plugin)->member, (plugin)->member##_count);                                             \
    json_open(t, #member, '[');                                                                                     \
    for (uint32_t i = 0; i < (plugin)->member##_count; ++i) {                                                       \
      check_entry(t, #member, (plugin)->member[i], i);                                                              \
      write;                                                                                                        \
      set_owner(t, "plugin \"%s\"", (plugin)->id);                                                                  \
      for (uint32_t j = 0; j < i; ++j) check_unique(t, what, (plugin)->member[i]->name, (plugin)->member[j]->name); \
    }                                                                                                               \
    json_close(t, ']');                                                                                             \
  } while (0)

/* A kernel is known by layer type, device and name together. */
static void check_kernels(text* t, const tn_plugin* plugin) {
  for (uint32_t i = 0; i < plugin->kernels_count; ++i)
    for (uint32_t j = 0; j < i; ++j) {
      const tn_kernel *a = plugin->kernels[i], *b = plugin->kernels[j];
      if (strcmp(a->name, b->name) == 0 && strcmp(a->type, b->type) == 0 && strcmp(a->device, b->device) == 0)
        refuse(t, "duplicate kernel \"%s\"", a->name);
    }
}

static void write_kernels(text* t, const tn_plugin* plugin) {
  check_list(t, "kernels", plugin->kernels, plugin->kernels_count);
  json_open(t, "kernels", '[');
  for (uint32_t i = 0; i < plugin->kernels_count; ++i) {
    check_entry(t, "kernels", plugin->kernels[i], i);
    write_kernel(t, plugin, plugin->kernels[i]);
    set_owner(t, "plugin \"%s\"", plugin->id);
  }
  json_close(t, ']');
  check_kernels(t, plugin);
}

/* A provider is known by device, table and name together. */
static void write_providers(text* t, const tn_plugin* plugin) {
  check_list(t, "providers", plugin->providers, plugin->providers_count);
  json_open(t, "providers", '[');
  for (uint32_t i = 0; i < plugin->providers_count; ++i) {
    const tn_provider* a = plugin->providers[i];
    check_entry(t, "providers", a, i);
    write_provider(t, plugin, a);
    set_owner(t, "plugin \"%s\"", plugin->id);
    for (uint32_t j = 0; j < i; ++j) {
      const tn_provider* b = plugin->providers[j];
      if (strcmp(a->name, b->name) == 0 && strcmp(a->id, b->id) == 0 && strcmp(a->device, b->device) == 0)
        refuse(t, "duplicate provider \"%s\"", a->name);
    }
  }
  json_close(t, ']');
}

/* Values of one kind that a line of a plugin set can state. */
static void write_options(text* t, const tn_plugin* plugin) {
  set_owner(t, "plugin \"%s\"", plugin->id);
  const uint32_t count = TN_HAS(plugin, tn_plugin, options) ? plugin->options_count : 0;
  const tn_attribute* const* options = count > 0 ? plugin->options : NULL;
  check_list(t, "options", options, count);
  for (uint32_t i = 0; i < count; ++i) {
    check_entry(t, "options", options[i], i);
    if (options[i]->kind > TN_ATTR_STRING)
      refuse(t, "entry %" PRIu32 " of \"options\" is a list; an option is a bool, int, float or string", i);
  }
  set_owner(t, "the options of plugin \"%s\"", plugin->id);
  write_attributes(t, "options", options, count, NULL);
}

/* The interval of versions that a host of these headers runs, as the host checks it. */
static void check_abi(text* t, const tn_abi* abi) {
  if (abi->major != TN_ABI_MAJOR || abi->built < TN_ABI_OLDEST)
    refuse(
        t,
        "its \"abi\" says that it was built with %u.%u; these headers are %d.%d, for plugins built with %d.%d or later",
        abi->major, abi->built, TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MAJOR, TN_ABI_OLDEST);
  if (abi->required > abi->built)
    refuse(t, "its \"abi\" requires %u.%u, which is newer than what it is built with", abi->major, abi->required);
  if (abi->required > TN_ABI_MINOR)
    refuse(t, "its \"abi\" requires %u.%u; these headers are %d.%d", abi->major, abi->required, TN_ABI_MAJOR,
           TN_ABI_MINOR);
  t->is_newer = abi->built > TN_ABI_MINOR;
}

/* The versions come first: a descriptor of other headers has another size. */
static void check_plugin(text* t, const tn_plugin* plugin) {
  if (!TN_HAS(plugin, tn_plugin, abi))
    check_size(t, "descriptor", plugin->size, offsetof(tn_plugin, options_count), sizeof *plugin);
  check_abi(t, &plugin->abi);
  const size_t of_0_2 = offsetof(tn_plugin, options_count), of_0_3 = offsetof(tn_plugin, requirements_count);
  check_size(t, "descriptor", plugin->size, plugin->size == of_0_3 ? of_0_3 : of_0_2, sizeof *plugin);
  if (plugin->id == NULL && plugin->version == NULL && plugin->license == NULL && plugin->doc != NULL)
    refuse(t, "it cannot be described: %s", plugin->doc);
  check_characters(t, "id", plugin->id, "._-");
  if (strchr(plugin->id, '.') == NULL)
    refuse(t, "its id \"%s\" must be a reverse domain, such as \"org.example.name\"", plugin->id);
  check_characters(t, "version", plugin->version, ".+~-");
  check_characters(t, "license", plugin->license, ".+-() ");
  if (plugin->doc == NULL || *plugin->doc == '\0') refuse(t, "it has no doc line");
}

/* Absent unless it is native, as in the notes of older plugins. */
static void write_arithmetic(text* t, const tn_plugin* plugin) {
  const uint32_t arithmetic = TN_HAS(plugin, tn_plugin, comms) ? plugin->arithmetic : TN_ARITHMETIC_DEFAULT;
  if (arithmetic == TN_ARITHMETIC_DEFAULT) return;
  if (arithmetic != TN_ARITHMETIC_NATIVE)
    refuse(t, "its member \"arithmetic\" is %u; expected 0 or TN_ARITHMETIC_NATIVE, 2", arithmetic);
  json_string(t, "arithmetic", "native");
}

static void write_plugin(text* t, const tn_plugin* plugin) {
  if (plugin == NULL) refuse(t, "tenon_plugin() returned null");
  check_plugin(t, plugin);
  set_owner(t, "plugin \"%s\"", plugin->id);
  check_requirements(t, plugin);
  json_open(t, NULL, '{');
  json_integer(t, "note", 1);
  json_open(t, "abi", '{');
  json_integer(t, "major", plugin->abi.major);
  json_integer(t, "built", plugin->abi.built);
  json_integer(t, "required", plugin->abi.required);
  json_close(t, '}');
  json_string(t, "id", plugin->id);
  json_string(t, "version", plugin->version);
  json_string(t, "doc", plugin->doc);
  json_string(t, "license", plugin->license);
  json_string(t, "isa", plugin->isa);
  write_arithmetic(t, plugin);
  WRITE_LIST(t, plugin, layers, "layer type", description->type, write_layer(t, plugin, plugin->layers[i]));
  WRITE_LIST(t, plugin, updaters, "updater type", description->type, write_updater(t, plugin, plugin->updaters[i]));
  WRITE_LIST(t, plugin, readers, "reader type", description->type, write_reader(t, plugin, plugin->readers[i]));
  WRITE_LIST(t, plugin, devices, "device", description->kind, write_device(t, plugin, plugin->devices[i]));
  write_kernels(t, plugin);
  WRITE_LIST(t, plugin, libraries, "library", name, write_library(t, plugin->libraries[i]));
  write_providers(t, plugin);
  write_options(t, plugin);
  write_comms(t, plugin);
  write_drafts(t, plugin);
  json_close(t, '}');
  if (t->length > TN_NOTE_LIMIT)
    refuse(t, "its manifest takes %zu bytes; at most %d fit the note. Shorten doc lines", t->length, TN_NOTE_LIMIT);
}

int tn_manifest_write(tn_manifest* manifest, const tn_plugin* plugin) {
  text t;
  t.is_newer = 0;
  t.length = 0;
  t.manifest = manifest;
  manifest->length = 0;
  manifest->error[0] = '\0';
  set_owner(&t, "the plugin");
  if (setjmp(t.refused) != 0) return 0;
  write_plugin(&t, plugin);
  manifest->length = t.length;
  return 1;
}

const char* tn_manifest_unversioned(const tn_plugin* plugin, uint32_t i) {
  const tn_kernel* kernel = plugin->kernels[i];
  const tn_fusion_pattern* fusion = TN_HAS(kernel, tn_kernel, fusion) ? kernel->fusion : NULL;
  const uint32_t count = fusion == NULL ? 1 : fusion->types_count;
  if (TN_HAS(kernel, tn_kernel, state_version) && kernel->state_version != 0) return NULL;
  for (uint32_t k = 0; k < count; ++k) {
    const char* type = fusion == NULL ? kernel->type : fusion->types[k];
    int own = 0;
    for (uint32_t l = 0; l < plugin->layers_count; ++l)
      own = own || strcmp(plugin->layers[l]->description->type, type) == 0;
    if (!own) return type;
  }
  return NULL;
}
