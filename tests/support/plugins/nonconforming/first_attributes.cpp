// Keeps the attributes of the first layer in a static variable. SPDX-License-Identifier: Apache-2.0
#define NAME "first_attributes"
#define FACTOR                                               \
  ([&] {                                                     \
    static const double first = attributes.number("factor"); \
    return first;                                            \
  }())
#include "formula.h"
