/* Keeps all rules, with streams that do their work late. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_streams_conforming"
#include "device_streams.h"
