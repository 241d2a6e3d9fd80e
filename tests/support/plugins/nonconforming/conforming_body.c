/* Keeps all rules: kernel and recorded body. SPDX-License-Identifier: Apache-2.0 */
#define NAME "conforming_body"
#define BODY
#include "layer.h"
