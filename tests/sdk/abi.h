/* Assertions about the offsets of members, for tests of the C interface. SPDX-License-Identifier: Apache-2.0 */
#ifndef TENON_TESTS_SDK_ABI_H
#define TENON_TESTS_SDK_ABI_H

#include <assert.h>
#include <stddef.h>
#include <tenon/plugin.h>

#define AT(type, member, offset) static_assert(offsetof(type, member) == (offset), #type "." #member)
/* A struct that may grow at its end, with its current bytes. A change that appends members adds lines. */
#define GROWS(type, bytes) static_assert(offsetof(type, size) == 0 && sizeof(type) == (bytes), #type)
#define FROZEN(type, bytes) static_assert(sizeof(type) == (bytes), #type)

#endif
