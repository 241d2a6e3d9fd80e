/* Keeps all rules. SPDX-License-Identifier: Apache-2.0 */
#define NAME "metric_conforming"
#include "metric.h"
