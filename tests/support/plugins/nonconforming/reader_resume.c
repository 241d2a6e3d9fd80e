/* Continues one sample late. SPDX-License-Identifier: Apache-2.0 */
#define NAME "reader_resume"
#define SEEK(it, to) (it)->next = (to) > 0 && (to) < samples_of(it) ? (to) + 1 : (to);
#include "reader.h"
