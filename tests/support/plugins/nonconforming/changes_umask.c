/* prepare changes the mask of new files. SPDX-License-Identifier: Apache-2.0 */
#define NAME "changes_umask"
#include <sys/stat.h>
#define PREPARE umask(S_IRWXO);
#include "layer.h"
