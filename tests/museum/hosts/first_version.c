/* The first version of the layer that an exhibit migrates, for kinds.cpp. SPDX-License-Identifier: Apache-2.0 */
#define STATE_VERSION 1
#define tenon_plugin museum_first_version
#include "../kinds/museum_migrated.c"
