/* A stream does not wait for the event of another. SPDX-License-Identifier: Apache-2.0 */
#define NAME "device_events"
#define EVENT_WAIT(of) (void)(of)
#include "device_streams.h"
