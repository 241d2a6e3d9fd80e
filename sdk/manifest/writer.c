/* The program that tenon_add_plugin links with a plugin's objects and runs while the plugin is built. It writes the
 * manifest of the descriptor behind tenon_plugin() as an ELF note in C and as JSON, or prints why it refuses the
 * descriptor. Use: <program> NOTE.c MANIFEST.json. SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "manifest.h"

static void put_words(FILE* file, const char* bytes, size_t length) {
  for (size_t i = 0; i < length; ++i)
    fprintf(file, "%s%u",
            i % 24 != 0 ? ","
            : i == 0    ? "    \"  .byte "
                        : "\\n\"\n    \"  .byte ",
            (unsigned)(unsigned char)bytes[i]);
  fputs("\\n\"\n", file);
}

/* The note in assembly, which alone can say that the section is one (SHT_NOTE), so that it lands in PT_NOTE. */
static void put_note(FILE* file, const char* bytes, size_t length) {
  fputs(
      "/* The manifest as an ELF note; written by tenon_add_plugin. SPDX-License-Identifier: MIT */\n"
      "typedef int tenon_note_follows;\n__asm__(\n",
      file);
  fprintf(file, "    \"  .pushsection " TN_NOTE_SECTION ",\\\"a\\\",%%note\\n\"\n");
  fprintf(file, "    \"  .balign 4\\n  .long %zu,%zu,%d\\n\"\n", sizeof TN_NOTE_OWNER, length, TN_NOTE_TYPE);
  fprintf(file, "    \"  .asciz \\\"" TN_NOTE_OWNER "\\\"\\n  .balign 4\\n\"\n");
  put_words(file, bytes, length);
  fputs("    \"  .balign 4\\n  .popsection\\n\");\n", file);
}

static void put_json(FILE* file, const char* bytes, size_t length) {
  fwrite(bytes, 1, length, file);
  fputc('\n', file);
}

static int write_file(const char* path, void (*put)(FILE*, const char*, size_t), const tn_manifest* manifest) {
  FILE* file = fopen(path, "wb");
  if (file == NULL) return 0;
  put(file, manifest->text, manifest->length);
  const int failed = ferror(file);
  return fclose(file) == 0 && !failed;
}

int main(int count, char** arguments) {
  static tn_manifest manifest; /* too large for a stack; this is a program of one thread */
  if (count != 3) {
    fprintf(stderr, "usage: %s NOTE.c MANIFEST.json\n", arguments[0]);
    return EXIT_FAILURE;
  }
  if (!tn_manifest_write(&manifest, tenon_plugin())) {
    fprintf(stderr, "error: %s\n", manifest.error);
    return EXIT_FAILURE;
  }
  for (uint32_t i = 0; i < tenon_plugin()->kernels_count; ++i) {
    const char* type = tn_manifest_unversioned(tenon_plugin(), i);
    if (type != NULL)
      fprintf(stderr, "warning: kernel \"%s\" states no state_version of \"%s\", a type of another plugin\n",
              tenon_plugin()->kernels[i]->name, type);
  }
  for (int i = 1; i < 3; ++i)
    if (!write_file(arguments[i], i == 1 ? put_note : put_json, &manifest)) {
      fprintf(stderr, "error: cannot write %s\n", arguments[i]);
      remove(arguments[i]);
      return EXIT_FAILURE;
    }
  return EXIT_SUCCESS;
}
