/* SPDX-License-Identifier: MIT */
#include "offers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef const void* (*extension_function)(void* user, const char* id);

void check_minor(text* t, const tn_plugin* plugin, const char* what, unsigned minor) {
  if (plugin->abi.required < minor)
    refuse(t, "%s came with version %d.%u of the plugin interface; its \"abi\" requires %d.%u", what, TN_ABI_MAJOR,
           minor, TN_ABI_MAJOR, plugin->abi.required);
}

void check_table(text* t, const char* id, const void* table) {
  const tn_known_table* entry = tn_find_table(id);
  const char* at = (const char*)table;
  uint32_t size = 0, present = 0;
  memcpy(&size, at, sizeof size);
  const uint32_t second = size < TN_TABLE_FIRST ? 0 : tn_second_member(table);
  if (entry != NULL && tn_is_draft(entry)) {
    if (second == 0) refuse(t, "its table \"%s\" is a draft, but its member \"draft\" is 0", id);
    if (second != entry->second) return; /* another draft, of which these headers know nothing */
  }
  if (!tn_is_table_size(entry, size))
    refuse(t, "its table \"%s\" states a size of %" PRIu32 " bytes; expected a multiple of %zu from %" PRIu32 " to %u",
           id, size, sizeof(void*), tn_least_bytes(entry), TN_TABLE_MOST);
  if (entry == NULL) return;
  if (entry->second == 0 && second != 0)
    refuse(t, "the reserved member of its table \"%s\" is %" PRIu32 "; expected 0", id, second);
  for (uint32_t i = 0; TN_TABLE_FIRST + i * sizeof(void*) < entry->bytes; ++i) {
    uintptr_t function = 0;
    memcpy(&function, at + TN_TABLE_FIRST + i * sizeof function, sizeof function);
    present += function != 0;
    if (i < COUNT(entry->functions) && entry->functions[i] != NULL && function == 0)
      refuse(t, "its table \"%s\" has no function \"%s\"", id, entry->functions[i]);
  }
  if (present == 0) refuse(t, "its table \"%s\" has no function", id);
}

static const tn_requirement* requirement_of(const tn_plugin* plugin, const void* component) {
  const uint32_t count = TN_HAS(plugin, tn_plugin, requirements) ? plugin->requirements_count : 0;
  for (uint32_t i = 0; i < count; ++i)
    if (plugin->requirements[i]->component == component) return plugin->requirements[i];
  return NULL;
}

void write_requirement(text* t, const tn_plugin* plugin, const void* component) {
  const tn_requirement* requirement = requirement_of(plugin, component);
  if (requirement != NULL) json_integer(t, "required", requirement->minor);
}

void write_offers(text* t, const tn_plugin* plugin, const void* component, uint32_t owner, extension_function extension,
                  void* user) {
  int is_open = 0;
  for (size_t i = 0; extension != NULL && i < COUNT(tn_known_tables); ++i) {
    const char* id = tn_known_tables[i].id;
    const void* table = tn_known_tables[i].owner == owner ? extension(user, id) : NULL;
    if (table == NULL) continue;
    check_table(t, id, table);
    if (!is_open) json_open(t, "tables", '[');
    is_open = 1;
    json_string(t, NULL, id);
  }
  if (is_open) json_close(t, ']');
  write_requirement(t, plugin, component);
}

/* The communicators of a plugin, of which versions before 0.4 have no list. */
static uint32_t comms_of(const tn_plugin* plugin) { return TN_HAS(plugin, tn_plugin, comms) ? plugin->comms_count : 0; }

/* The digest of a draft that components use, 0 if none does; refuses two of one draft. */
static uint32_t with_draft(text* t, uint32_t digest, const char* id, extension_function extension, void* user) {
  const void* table = extension == NULL ? NULL : extension(user, id);
  if (table == NULL) return digest;
  const uint32_t other = tn_second_member(table);
  if (digest != 0 && digest != other)
    refuse(t, "its components use two drafts of the table \"%s\": %08" PRIx32 " and %08" PRIx32, id, digest, other);
  return other;
}

void write_drafts(text* t, const tn_plugin* plugin) {
  int is_open = 0;
  for (size_t i = 0; i < COUNT(tn_known_tables); ++i) {
    const tn_known_table* entry = &tn_known_tables[i];
    uint32_t digest = 0;
    if (!tn_is_draft(entry)) continue;
    for (uint32_t k = 0; entry->owner == TN_OF_LAYERS && k < plugin->layers_count; ++k)
      digest = with_draft(t, digest, entry->id, plugin->layers[k]->extension, plugin->layers[k]->user);
    for (uint32_t k = 0; entry->owner == TN_OF_READERS && k < plugin->readers_count; ++k)
      digest = with_draft(t, digest, entry->id, plugin->readers[k]->extension, plugin->readers[k]->user);
    if (entry->owner == TN_IS_COMM && comms_of(plugin) > 0) digest = entry->second; /* of each, as was checked */
    if (digest == 0) continue;
    if (!is_open) json_open(t, "drafts", '[');
    is_open = 1;
    char text_of_digest[9];
    snprintf(text_of_digest, sizeof text_of_digest, "%08" PRIx32, digest);
    json_open(t, NULL, '{');
    json_string(t, "id", entry->id);
    json_string(t, "digest", text_of_digest);
    json_close(t, '}');
  }
  if (is_open) json_close(t, ']');
}

static int has(const void* list, uint32_t count, const void* component) {
  for (uint32_t i = 0; list != NULL && i < count; ++i)
    if (((const void* const*)list)[i] == component) return 1;
  return 0;
}

void check_requirements(text* t, const tn_plugin* plugin) {
  const uint32_t count = TN_HAS(plugin, tn_plugin, requirements) ? plugin->requirements_count : 0;
  check_list(t, "requirements", count > 0 ? plugin->requirements : NULL, count);
  if (count > 0 && plugin->abi.required < 4)
    refuse(t, "requirements of components came with version 0.4 of the plugin interface; its \"abi\" requires 0.%u",
           plugin->abi.required);
  for (uint32_t i = 0; i < count; ++i) {
    const tn_requirement* requirement = plugin->requirements[i];
    check_entry(t, "requirements", requirement, i);
    check_size(t, "requirement", requirement->size, sizeof *requirement, sizeof *requirement);
    const void* component = requirement->component;
    if (!has(plugin->layers, plugin->layers_count, component) &&
        !has(plugin->updaters, plugin->updaters_count, component) &&
        !has(plugin->readers, plugin->readers_count, component) &&
        !has(plugin->kernels, plugin->kernels_count, component) &&
        !(comms_of(plugin) > 0 && has(plugin->comms, plugin->comms_count, component)))
      refuse(t,
             "entry %" PRIu32
             " of \"requirements\" is for none of its layers, updaters, readers, kernels and communicators",
             i);
    if (requirement->minor < plugin->abi.required)
      refuse(t,
             "entry %" PRIu32 " of \"requirements\" states 0.%" PRIu32
             ", which is older than what its \"abi\" requires",
             i, requirement->minor);
  }
}
