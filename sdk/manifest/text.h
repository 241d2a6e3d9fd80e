/* The JSON text of a manifest, and how a check refuses. A JSON library would be one more thing that every plugin
 * author must install; what is needed here is small. SPDX-License-Identifier: MIT */
#ifndef TENON_MANIFEST_TEXT_H
#define TENON_MANIFEST_TEXT_H

#include <setjmp.h>

#include "manifest.h"

/* The text so far. Bytes beyond the limit are counted and dropped. */
typedef struct text {
  char owner[256]; /* the component being written, for messages: layer type "relu" */
  int is_newer;    /* the plugin was built with headers newer than these */
  size_t length;
  tn_manifest* manifest;
  jmp_buf refused;
} text;

#if defined(__GNUC__)
#define TEXT_FORMAT(at) __attribute__((format(printf, at, (at) + 1)))
#define TEXT_NO_RETURN __attribute__((noreturn))
#else
#define TEXT_FORMAT(at)
#define TEXT_NO_RETURN
#endif

/* Writes the reason, which begins with the owner, into the manifest and leaves tn_manifest_write. Only functions of
 * this library are left, none of which owns anything. */
TEXT_NO_RETURN void refuse(text* t, const char* format, ...) TEXT_FORMAT(2);
void set_owner(text* t, const char* format, ...) TEXT_FORMAT(2);

/* Values. key is null inside a list. Commas are put in where they belong. */
void json_open(text* t, const char* key, char bracket);
void json_close(text* t, char bracket);
void json_null(text* t, const char* key);
void json_bool(text* t, const char* key, int value);
void json_integer(text* t, const char* key, int64_t value);
/* Reads back as the same double and, unless `whole`, cannot be taken for an integer. Refuses what is not finite. */
void json_number(text* t, const char* key, double value, int whole);
/* Refuses null, what is not UTF-8, and control characters but newline and tab, which would reach a terminal. */
void json_string(text* t, const char* key, const char* value);

/* A list of pointers, its own and those in it, must not be null. */
void check_list(text* t, const char* member, const void* list, uint32_t count);
void check_entry(text* t, const char* member, const void* entry, uint32_t index);
/* A struct's size must be the present one or that of an older version; that of a newer version is at least as large. */
void check_size(text* t, const char* what, uint32_t size, size_t oldest, size_t present);
/* Lower case letters, digits and _, a letter first. */
void check_word(text* t, const char* what, const char* name);
/* Such words with dots between them. */
void check_words(text* t, const char* what, const char* name);
/* A word, or "vendor.word". */
void check_type(text* t, const char* what, const char* name);
/* The same of a type that the plugin offers: names without "vendor." are of the plugins of Tenon, whose ids begin with
 * "tenon.". */
void check_own_type(text* t, const tn_plugin* plugin, const char* what, const char* name);
/* Refuses the name of an earlier entry. */
void check_unique(text* t, const char* what, const char* name, const char* earlier);
/* Not null, not empty, letters and digits of ASCII and what is in `others`. */
void check_characters(text* t, const char* what, const char* name, const char* others);

/* Refuses a table in which a function is missing. */
#define CHECK_FUNCTION(t, table, member)                                               \
  do {                                                                                 \
    if ((table)->member == NULL) refuse(t, "the function \"%s\" is missing", #member); \
  } while (0)

#endif
