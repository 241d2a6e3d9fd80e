/* Sums the means of minibatches, whatever their sizes. SPDX-License-Identifier: Apache-2.0 */
#define NAME "metric_means"
#define SUM(sum, count) ((count) > 0 ? (sum) / (count) : 0)
#define COUNT(count) ((count) > 0 ? 1 : 0)
#include "metric.h"
