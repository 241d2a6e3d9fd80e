/* prepare installs a handler of signals. SPDX-License-Identifier: Apache-2.0 */
#define NAME "handles_signals"
#include <signal.h>
#define PREPARE signal(SIGUSR2, SIG_IGN);
#include "layer.h"
