/* Keeps all rules: kernel and recorded body, on hosts from 0.2 on. SPDX-License-Identifier: Apache-2.0 */
#define NAME "conforming_body"
#define REQUIRED 2
#define BODY
#include "layer.h"
