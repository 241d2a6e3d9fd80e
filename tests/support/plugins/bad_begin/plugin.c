/* Ends the process when it is loaded. SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>

#include "../parts.h"

TEST_MARKER("bad_begin")
TEST_NOTE(TEST_JSON(TEST_ABI, "bad_begin", "", "[]"))

__attribute__((constructor)) static void begin(void) {
  const char* const what = getenv("TENON_TEST_BEGIN");
  if (what != NULL && strcmp(what, "crash") == 0) raise(SIGSEGV);
  if (what != NULL && strcmp(what, "exit") == 0) exit(0);
}

const tn_plugin* tenon_plugin(void) { return NULL; }
