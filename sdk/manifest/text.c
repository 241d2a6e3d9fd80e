/* The JSON text of a manifest, and how a check refuses. SPDX-License-Identifier: MIT */
#include "text.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void refuse(text* t, const char* format, ...) {
  tn_manifest* manifest = t->manifest;
  const int begin = snprintf(manifest->error, sizeof manifest->error, "%s: ", t->owner);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(manifest->error + begin, sizeof manifest->error - (size_t)begin, format, arguments);
  va_end(arguments);
  longjmp(t->refused, 1);
}

void set_owner(text* t, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(t->owner, sizeof t->owner, format, arguments);
  va_end(arguments);
}

static void put(text* t, char byte) {
  if (t->length < TN_NOTE_LIMIT) t->manifest->text[t->length] = byte;
  ++t->length;
}

static void put_all(text* t, const char* bytes) {
  while (*bytes != '\0') put(t, *bytes++);
}

/* Strings end in a quote, so a last byte that opens something is never part of one. */
static void begin(text* t, const char* key) {
  if (t->length > 0 && t->length <= TN_NOTE_LIMIT && strchr("{[", t->manifest->text[t->length - 1]) == NULL)
    put(t, ',');
  if (key == NULL) return;
  put(t, '"');
  put_all(t, key);
  put_all(t, "\":");
}

void json_open(text* t, const char* key, char bracket) {
  begin(t, key);
  put(t, bracket);
}

void json_close(text* t, char bracket) { put(t, bracket); }

void json_null(text* t, const char* key) {
  begin(t, key);
  put_all(t, "null");
}

void json_bool(text* t, const char* key, int value) {
  begin(t, key);
  put_all(t, value ? "true" : "false");
}

void json_integer(text* t, const char* key, int64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRId64, value);
  begin(t, key);
  put_all(t, digits);
}

/* Puts a point in place of the one of the locale, which may be several bytes. */
static void plain_point(char* digits) {
  char* const at = digits + strspn(digits, "+-0123456789e");
  if (*at == '\0') return;
  const size_t bytes = strcspn(at, "0123456789");
  *at = '.';
  memmove(at + 1, at + bytes, strlen(at + bytes) + 1);
}

void json_number(text* t, const char* key, double value, int whole) {
  char digits[40];
  int precision = 15;
  if (!isfinite(value)) refuse(t, "\"%s\" is %g; expected a finite number", key == NULL ? "initial" : key, value);
  if (whole && floor(value) == value && fabs(value) < 9007199254740992.0) {
    json_integer(t, key, (int64_t)value);
    return;
  }
  do snprintf(digits, sizeof digits, "%.*g", precision, value);
  while (strtod(digits, NULL) != value && ++precision <= 17);
  begin(t, key);
  plain_point(digits);
  put_all(t, digits);
  if (strpbrk(digits, ".e") == NULL) put_all(t, ".0");
}

/* Bytes of the UTF-8 character at `at`, 0 where there is none. Shortest form only, no surrogates. */
static int character_bytes(const unsigned char* at) {
  const int bytes = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
  for (int i = 1; i < bytes; ++i)
    if ((at[i] & 0xc0) != 0x80) return 0;
  if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f)) return 0;
  if ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f)) return 0;
  return bytes;
}

static void put_character(text* t, const unsigned char* at, int bytes) {
  if (*at == '\n' || *at == '\t') {
    put_all(t, *at == '\n' ? "\\n" : "\\t");
    return;
  }
  if (*at == '"' || *at == '\\') put(t, '\\');
  for (int i = 0; i < bytes; ++i) put(t, (char)at[i]);
}

void json_string(text* t, const char* key, const char* value) {
  const char* member = key == NULL ? "an entry of a list" : key;
  if (value == NULL) refuse(t, "\"%s\" is null", member);
  begin(t, key);
  put(t, '"');
  for (const unsigned char* at = (const unsigned char*)value; *at != '\0';) {
    const int bytes = character_bytes(at);
    if (bytes == 0) refuse(t, "\"%s\" is not UTF-8: byte 0x%02x", member, *at);
    if ((*at < 0x20 && *at != '\n' && *at != '\t') || *at == 0x7f)
      refuse(t, "\"%s\" holds the control character 0x%02x", member, *at);
    put_character(t, at, bytes);
    at += bytes;
  }
  put(t, '"');
}

void check_list(text* t, const char* member, const void* list, uint32_t count) {
  if (list == NULL && count > 0) refuse(t, "\"%s\" is null, but counts %" PRIu32, member, count);
}

void check_entry(text* t, const char* member, const void* entry, uint32_t index) {
  if (entry == NULL) refuse(t, "entry %" PRIu32 " of \"%s\" is null", index, member);
}

void check_size(text* t, const char* what, uint32_t size, size_t oldest, size_t present) {
  if (size != oldest && size != present && (size < present || !t->is_newer))
    refuse(t, "\"size\" of its %s is %" PRIu32 ", but the struct has %zu bytes", what, size, present);
}

static int is_lower(char c) { return c >= 'a' && c <= 'z'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* The end of the word at `at`, or `at` where none begins. */
static const char* word_end(const char* at) {
  if (is_lower(*at)) do
      ++at;
    while (is_lower(*at) || is_digit(*at) || *at == '_');
  return at;
}

/* Whether a name is 1 to `most` words with dots between them. */
static int is_words(const char* name, int most) {
  const char* end = word_end(name);
  for (int words = 1; end != name && *end == '.' && words < most; ++words) {
    name = end + 1;
    end = word_end(name);
  }
  return end != name && *end == '\0';
}

void check_word(text* t, const char* what, const char* name) {
  if (name == NULL) refuse(t, "the name of an entry of its %s is null", what);
  if (!is_words(name, 1))
    refuse(t, "%s: the name \"%s\" must be lower case letters, digits and _, a letter first", what, name);
}

void check_words(text* t, const char* what, const char* name) {
  if (name == NULL) refuse(t, "the name of an entry of its %s is null", what);
  if (!is_words(name, INT_MAX))
    refuse(t, "%s: the name \"%s\" must be words of lower case letters, digits and _, a letter first, and dots", what,
           name);
}

void check_type(text* t, const char* what, const char* name) {
  if (name == NULL) refuse(t, "\"%s\" is null", what);
  if (!is_words(name, 2))
    refuse(t, "the %s \"%s\" must be lower case letters, digits and _, after at most one \"vendor.\"", what, name);
}

void check_own_type(text* t, const tn_plugin* plugin, const char* what, const char* name) {
  check_type(t, what, name);
  if (strchr(name, '.') == NULL && strncmp(plugin->id, "tenon.", 6) != 0)
    refuse(t, "the %s \"%s\" needs a \"vendor.\" before its name, since the id \"%s\" does not begin with \"tenon.\"",
           what, name, plugin->id);
}

void check_unique(text* t, const char* what, const char* name, const char* earlier) {
  if (strcmp(name, earlier) == 0) refuse(t, "duplicate %s \"%s\"", what, name);
}

void check_characters(text* t, const char* what, const char* name, const char* others) {
  if (name == NULL) refuse(t, "\"%s\" is null", what);
  if (*name == '\0') refuse(t, "\"%s\" is empty", what);
  for (const char* at = name; *at != '\0'; ++at)
    if (!is_lower(*at) && !is_digit(*at) && !(*at >= 'A' && *at <= 'Z') && strchr(others, *at) == NULL)
      refuse(t, "\"%s\" is \"%s\"; only letters, digits and the characters %s are allowed", what, name, others);
}
