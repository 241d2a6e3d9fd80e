/* A fault of the migration from a version that was no other. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <tenon/migrate.h>

#include "fault.h"

static tn_status migrate(const tn_migration* migration) {
  if (FAULT(migration)) return tn_fail(migration->errors, TN_UNSUPPORTED, NULL, "not in this host");
  return TN_OK;
}
static const tn_migrate migrates = {.size = sizeof migrates, .oldest = 1, .migrate = migrate};
static const void* extension(void* user, const char* id) {
  (void)user;
  return strcmp(id, TN_MIGRATE) == 0 ? &migrates : NULL;
}
#define EXTENSION extension
#define STATE_VERSION 2
#define BODY
#define WITHOUT_KERNEL
#include "../layer.h"
