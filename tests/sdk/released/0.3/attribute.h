/* Tenon SDK: typed attributes of layers, updaters, readers and metrics. SPDX-License-Identifier: MIT */
#ifndef TENON_ATTRIBUTE_H
#define TENON_ATTRIBUTE_H

#include <string.h>
#include <tenon/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TN_ATTR_BOOL = 1,
  TN_ATTR_INT = 2,
  TN_ATTR_FLOAT = 3,
  TN_ATTR_STRING = 4,
  TN_ATTR_INTS = 5,   /* list of int64 */
  TN_ATTR_FLOATS = 6, /* list of double */
  TN_ATTR_STRINGS = 7
};

/* One value. Frozen. Lists and strings live as long as the value. */
typedef struct tn_value {
  int32_t kind;   /* TN_ATTR_*; 0: absent */
  uint32_t count; /* entries of a list, else 1 */
  union {
    int64_t i; /* bool and int */
    double f;
    const char* s;
    const int64_t* ints;
    const double* floats;
    const char* const* strings;
  } as;
} tn_value;

enum { TN_ATTR_REQUIRED = 1 };

/* Names that a plugin's attributes cannot have, since the host has attributes of its own. Layers: parameter_name, act,
 * drop_rate, coefficient. Updaters: schedule, clip_norm, clip_value, l1, l2. Later ones contain a dot, which a plugin's
 * name cannot. */

/* The static description of one attribute. The host checks values against it and fills in the default, so a plugin
 * never sees an unknown name, a wrong kind or a number out of range. */
typedef struct tn_attribute {
  uint32_t size;
  int32_t kind;
  const char* name;
  const char* doc;    /* one line: meaning, unit */
  uint32_t flags;     /* TN_ATTR_REQUIRED */
  uint32_t has_range; /* bit 0: minimum holds, bit 1: maximum holds (both inclusive); lists: each entry */
  tn_value initial;   /* the default; kind 0: no default (the value may be absent or is required) */
  double minimum;
  double maximum;
  const char* const* choices; /* TN_ATTR_STRING: null-terminated list of allowed strings, or null */
} tn_attribute;

/* Checked values in the order of their declaration. Borrowed until the call that received them returns. */
typedef struct tn_attributes {
  uint32_t size;
  uint32_t count;
  const tn_attribute* const* declared; /* [count] */
  const tn_value* values;              /* [count]; kind 0 if optional and absent */
} tn_attributes;

/* The value of a declared attribute, or null if it is absent or not declared. */
static inline const tn_value* tn_find(const tn_attributes* a, const char* name) {
  for (uint32_t i = 0; i < a->count; ++i)
    if (strcmp(a->declared[i]->name, name) == 0) return a->values[i].kind == 0 ? NULL : &a->values[i];
  return NULL;
}
static inline int64_t tn_int(const tn_attributes* a, const char* name, int64_t otherwise) {
  const tn_value* v = tn_find(a, name);
  return v ? v->as.i : otherwise;
}
static inline double tn_float(const tn_attributes* a, const char* name, double otherwise) {
  const tn_value* v = tn_find(a, name);
  return v ? v->as.f : otherwise;
}
static inline const char* tn_string(const tn_attributes* a, const char* name, const char* otherwise) {
  const tn_value* v = tn_find(a, name);
  return v ? v->as.s : otherwise;
}

#ifdef __cplusplus
}
#endif
#endif
