/* prepare changes the locale. SPDX-License-Identifier: Apache-2.0 */
#define NAME "changes_locale"
#include <locale.h>
#define PREPARE setlocale(LC_ALL, "C.UTF-8");
#include "layer.h"
