/* Attributes in the manifest: their checks and their JSON. SPDX-License-Identifier: MIT */
#include "attributes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int is_list(int32_t kind) { return kind >= TN_ATTR_INTS; }
static int is_whole(int32_t kind) { return kind == TN_ATTR_INT || kind == TN_ATTR_INTS; }
static int is_text(int32_t kind) { return kind == TN_ATTR_STRING || kind == TN_ATTR_STRINGS; }
static int is_number(int32_t kind) { return is_whole(kind) || kind == TN_ATTR_FLOAT || kind == TN_ATTR_FLOATS; }

static void check_number(text* t, const tn_attribute* a, double value) {
  if (((a->has_range & 1u) != 0 && !(value >= a->minimum)) || ((a->has_range & 2u) != 0 && !(value <= a->maximum)))
    refuse(t, "attribute \"%s\": its default %.17g lies outside its own range", a->name, value);
}

static void check_choice(text* t, const tn_attribute* a, const char* value) {
  if (value == NULL) refuse(t, "attribute \"%s\": its default is a null text", a->name);
  if (a->choices == NULL) return;
  for (const char* const* choice = a->choices; *choice != NULL; ++choice)
    if (strcmp(*choice, value) == 0) return;
  refuse(t, "attribute \"%s\": its default \"%s\" is not one of its choices", a->name, value);
}

/* Entry `i` of the default; a single value is its own entry 0. */
static void write_entry(text* t, const tn_attribute* a, const char* key, uint32_t i) {
  const tn_value* v = &a->initial;
  switch (v->kind) {
    case TN_ATTR_BOOL:
      json_bool(t, key, v->as.i != 0);
      break;
    case TN_ATTR_INT:
    case TN_ATTR_INTS: {
      const int64_t value = v->kind == TN_ATTR_INT ? v->as.i : v->as.ints[i];
      check_number(t, a, (double)value);
      json_integer(t, key, value);
      break;
    }
    case TN_ATTR_FLOAT:
    case TN_ATTR_FLOATS: {
      const double value = v->kind == TN_ATTR_FLOAT ? v->as.f : v->as.floats[i];
      check_number(t, a, value);
      json_number(t, key, value, 0);
      break;
    }
    default: {
      const char* value = v->kind == TN_ATTR_STRING ? v->as.s : v->as.strings[i];
      check_choice(t, a, value);
      json_string(t, key, value);
    }
  }
}

static void write_initial(text* t, const tn_attribute* a) {
  const tn_value* v = &a->initial;
  if (v->kind == 0) {
    json_null(t, "initial");
    return;
  }
  if (v->kind != a->kind)
    refuse(t, "attribute \"%s\": it has kind %" PRId32 ", its default kind %" PRId32, a->name, a->kind, v->kind);
  if ((a->flags & TN_ATTR_REQUIRED) != 0)
    refuse(t, "attribute \"%s\": it is required, so its default is never used; drop one of them", a->name);
  if (!is_list(v->kind)) {
    if (v->count != 1) refuse(t, "attribute \"%s\": its default is one value, but counts %" PRIu32, a->name, v->count);
    write_entry(t, a, "initial", 0);
    return;
  }
  if (v->as.ints == NULL && v->count > 0)
    refuse(t, "attribute \"%s\": its default is null, but counts %" PRIu32, a->name, v->count);
  json_open(t, "initial", '[');
  for (uint32_t i = 0; i < v->count; ++i) write_entry(t, a, NULL, i);
  json_close(t, ']');
}

static void write_limit(text* t, const tn_attribute* a, const char* key, uint32_t bit, double limit) {
  if ((a->has_range & bit) == 0) {
    json_null(t, key);
    return;
  }
  if (!isfinite(limit)) refuse(t, "attribute \"%s\": its %s is not finite", a->name, key);
  if (is_whole(a->kind) && floor(limit) != limit)
    refuse(t, "attribute \"%s\": its %s %.17g is not a whole number", a->name, key, limit);
  json_number(t, key, limit, is_whole(a->kind));
}

static void write_range(text* t, const tn_attribute* a) {
  if (a->has_range > 3u) refuse(t, "attribute \"%s\": \"has_range\" has unknown bits", a->name);
  if (a->has_range != 0 && !is_number(a->kind))
    refuse(t, "attribute \"%s\": it has a range, but is not a number", a->name);
  if (a->has_range == 3u && !(a->minimum <= a->maximum))
    refuse(t, "attribute \"%s\": its minimum %.17g is above its maximum %.17g", a->name, a->minimum, a->maximum);
  write_limit(t, a, "minimum", 1u, a->minimum);
  write_limit(t, a, "maximum", 2u, a->maximum);
}

static void write_choices(text* t, const tn_attribute* a) {
  if (a->choices != NULL && (!is_text(a->kind) || a->choices[0] == NULL))
    refuse(t, "attribute \"%s\": %s", a->name, is_text(a->kind) ? "its choices are empty" : "choices are for texts");
  json_open(t, "choices", '[');
  if (a->choices != NULL)
    for (const char* const* choice = a->choices; *choice != NULL; ++choice) json_string(t, NULL, *choice);
  json_close(t, ']');
}

static void write_attribute(text* t, const tn_attribute* a) {
  check_size(t, "attribute", a->size, sizeof *a, sizeof *a);
  check_word(t, "attribute", a->name);
  if (a->kind < TN_ATTR_BOOL || a->kind > TN_ATTR_STRINGS)
    refuse(t, "attribute \"%s\": its kind %" PRId32 " is unknown", a->name, a->kind);
  if (a->doc == NULL || *a->doc == '\0') refuse(t, "attribute \"%s\": it has no doc line", a->name);
  if ((a->flags & ~(uint32_t)TN_ATTR_REQUIRED) != 0)
    refuse(t, "attribute \"%s\": it has unknown flags 0x%" PRIx32, a->name, a->flags);
  json_open(t, NULL, '{');
  json_string(t, "name", a->name);
  json_string(t, "doc", a->doc);
  json_integer(t, "kind", a->kind);
  json_bool(t, "required", (a->flags & TN_ATTR_REQUIRED) != 0);
  write_initial(t, a);
  write_range(t, a);
  write_choices(t, a);
  json_close(t, '}');
}

void write_attributes(text* t, const char* member, const tn_attribute* const* attributes, uint32_t count,
                      const char* const* of_host) {
  check_list(t, member, attributes, count);
  json_open(t, member, '[');
  for (uint32_t i = 0; i < count; ++i) {
    check_entry(t, member, attributes[i], i);
    write_attribute(t, attributes[i]);
    for (const char* const* name = of_host; name != NULL && *name != NULL; ++name)
      if (strcmp(attributes[i]->name, *name) == 0) refuse(t, "the attribute \"%s\" is one of the host", *name);
    for (uint32_t j = 0; j < i; ++j)
      if (strcmp(attributes[i]->name, attributes[j]->name) == 0)
        refuse(t, "duplicate attribute \"%s\"", attributes[i]->name);
  }
  json_close(t, ']');
}
