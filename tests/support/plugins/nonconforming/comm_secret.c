/* It says that only who knows the secret takes part, and does not look at it. SPDX-License-Identifier: Apache-2.0 */
#define NAME "comm_secret"
#define TRAITS (TN_COMM_SURVIVES | TN_COMM_AUTHENTICATED)
#define CHANGES(table)
#include "comm.h"
