// Throws an exception out of run. SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#define NAME "throws"
#define BEFORE_FORWARD throw std::runtime_error("from a callback");
#include "layer.h"
