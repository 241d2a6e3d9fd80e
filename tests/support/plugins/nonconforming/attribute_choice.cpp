// Has another gradient for one choice of a text. SPDX-License-Identifier: Apache-2.0
#define NAME "attribute_choice"
#define SLOPE (std::string(attributes.text("how")) == "safe" ? 2.0 : 1.0)
#include "formula.h"
