/* Wakes a futex in run. SPDX-License-Identifier: Apache-2.0 */
#define NAME "futex"
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
static int word;
#define AFTER_FORWARD syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
#include "layer.h"
