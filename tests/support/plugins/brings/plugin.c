/* A valid plugin with a library beside it, which it finds by $ORIGIN. SPDX-License-Identifier: Apache-2.0 */
#include "../parts.h"

int tenon_test_brought(void); /* of the library */

TEST_MARKER("brings")
TEST_NOTE(TEST_JSON(TEST_ABI, "brings", "", "[]"))
static tn_status plan(const tn_planner* planner) {
  (void)planner;
  return tenon_test_brought();
}
TEST_LAYER("brings", plan)
TEST_PLUGIN(TN_ABI_MAJOR, TN_ABI_MINOR, "brings", "")
TEST_ENTRY
