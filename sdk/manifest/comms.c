/* SPDX-License-Identifier: MIT */
#include "comms.h"

#include <inttypes.h>
#include <tenon/draft/comm.h>

#include "attributes.h"
#include "offers.h"

static void check_comm(text* t, const tn_comm_type* table) {
  const uint32_t traits = TN_COMM_SURVIVES | TN_COMM_AUTHENTICATED | TN_COMM_ENCRYPTED | TN_COMM_ONE_PER_PROCESS;
  if ((table->description->traits & ~traits) != 0)
    refuse(t, "it has unknown traits 0x%" PRIx32, table->description->traits & ~traits);
  CHECK_FUNCTION(t, table, open);
  CHECK_FUNCTION(t, table, world);
  CHECK_FUNCTION(t, table, send);
  CHECK_FUNCTION(t, table, receive);
  CHECK_FUNCTION(t, table, progress);
  CHECK_FUNCTION(t, table, wake);
  CHECK_FUNCTION(t, table, abort);
  CHECK_FUNCTION(t, table, close);
}

static void write_comm(text* t, const tn_plugin* plugin, const tn_comm_type* table) {
  if (table->draft != TN_COMM_DRAFT)
    refuse(t, "the member \"draft\" of a communicator is %08" PRIx32 "; the draft of these headers is %08" PRIx32,
           table->draft, TN_COMM_DRAFT);
  check_size(t, "communicator", table->size, sizeof *table, sizeof *table);
  const tn_comm_description* d = table->description;
  if (d == NULL) refuse(t, "the description of a communicator is null");
  check_size(t, "communicator description", d->size, sizeof *d, sizeof *d);
  check_own_type(t, plugin, "communicator", d->type);
  set_owner(t, "plugin \"%s\", communicator \"%s\"", plugin->id, d->type);
  check_comm(t, table);
  json_open(t, NULL, '{');
  json_string(t, "type", d->type);
  json_string(t, "doc", d->doc);
  write_attributes(t, "attributes", d->attributes, d->attributes_count, NULL);
  json_integer(t, "traits", d->traits);
  write_requirement(t, plugin, table);
  json_close(t, '}');
}

void write_comms(text* t, const tn_plugin* plugin) {
  const uint32_t count = TN_HAS(plugin, tn_plugin, comms) ? plugin->comms_count : 0;
  if (count == 0) return; /* absent, as in the notes of older plugins */
  set_owner(t, "plugin \"%s\"", plugin->id);
  check_minor(t, plugin, "a communicator", 4);
  check_list(t, "comms", plugin->comms, count);
  json_open(t, "comms", '[');
  for (uint32_t i = 0; i < count; ++i) {
    check_entry(t, "comms", plugin->comms[i], i);
    write_comm(t, plugin, plugin->comms[i]);
    set_owner(t, "plugin \"%s\"", plugin->id);
    for (uint32_t j = 0; j < i; ++j)
      check_unique(t, "communicator", plugin->comms[i]->description->type, plugin->comms[j]->description->type);
  }
  json_close(t, ']');
}
