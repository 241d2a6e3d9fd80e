/* The library that the plugin bad_library is linked to. It is not in the search path of the test.
 * SPDX-License-Identifier: Apache-2.0 */
__attribute__((visibility("default"))) int tenon_test_absent(void);
int tenon_test_absent(void) { return 0; }
