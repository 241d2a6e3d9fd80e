/* The base of communicators that break one rule: "bad.sockets", the template of communicators but for what a source
 * replaces. A source defines NAME and CHANGES(table), which replaces functions of the table; `inner` has those of the
 * template. SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <string.h>
#include <tenon/draft/comm.h>
#include <tenon/plugin.h>

TN_RESERVE_NOTE(4096);

static tn_comm_type inner;

#ifndef PARTS /* functions of the source */
#define PARTS
#endif
PARTS

#ifndef TRAITS
#define TRAITS TN_COMM_SURVIVES
#endif

static const tn_comm_description description = {
    .size = sizeof(tn_comm_description), .type = "bad.sockets", .doc = "messages", .traits = TRAITS};
static tn_comm_type type;
static const tn_comm_type* const comms[] = {&type};
static const tn_plugin plugin = {.size = sizeof(tn_plugin),
                                 .abi = {TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_MINOR, 0},
                                 .id = "bad." NAME,
                                 .version = "1.0.0",
                                 .doc = "A communicator that may break a rule",
                                 .license = "Apache-2.0",
                                 .isa = "",
                                 .comms_count = 1,
                                 .comms = comms};

const tn_plugin* tenon_plugin(void) {
  void* const file = dlopen(COMM_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  const tn_plugin* (*entry)(void) = NULL;
  void* const symbol = dlsym(file, TN_ENTRY_NAME);
  memcpy(&entry, &symbol, sizeof entry);
  inner = type = *entry()->comms[0];
  type.description = &description;
  CHANGES(type)
  return &plugin;
}
