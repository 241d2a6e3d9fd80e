// Functions that sources with mutants call: whether a mutant is enabled, and a record of the mutants that are reached.
// Every woven file includes this header first, in C99 and C++17, so no system function is declared under its own name.
//   TENON_MUTANT          number of the enabled mutant; none if absent
//   TENON_MUTANTS_REACHED a file of TENON_MUTANTS bytes: byte n becomes 1 when the code of mutant n is reached
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_MUTANTS_H
#define TENON_MUTANTS_H

// A mutant may cause a warning, which would be an error.
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-parameter"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-label"
#pragma GCC diagnostic ignored "-Wunused-result"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wreturn-type"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#pragma GCC diagnostic ignored "-Wempty-body"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wmisleading-indentation"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wbool-operation"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Wnonnull"
#pragma GCC diagnostic ignored "-Wnonnull-compare"
#pragma GCC diagnostic ignored "-Waddress"
#pragma GCC diagnostic ignored "-Wswitch"
#pragma GCC diagnostic ignored "-Wreturn-local-addr"
#pragma GCC diagnostic ignored "-Wdiv-by-zero"
#pragma GCC diagnostic ignored "-Woverflow"
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wrestrict"
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"
#pragma GCC diagnostic ignored "-Winfinite-recursion"
#pragma GCC diagnostic ignored "-Wsequence-point"
#pragma GCC diagnostic ignored "-Wuse-after-free"
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wclass-memaccess"
#pragma GCC diagnostic ignored "-Wpessimizing-move"
#pragma GCC diagnostic ignored "-Wredundant-move"
#pragma GCC diagnostic ignored "-Wcatch-value"

#define TENON_MUTANTS 8192  // numbers are below this, as MOST in catalogue.py

#ifdef __cplusplus
#define TENON_MUTANT_CALL constexpr
#define TENON_MUTANT_CONSTANT __builtin_is_constant_evaluated()
extern "C" {
#else
#define TENON_MUTANT_CALL static inline
#define TENON_MUTANT_CONSTANT 0
#endif

// One for each library or program, as weak symbols that are not exported.
struct tenon_mutants {
  int begun;
  int chosen;
  unsigned char* reached;
};
__attribute__((weak, visibility("hidden"))) unsigned char tenon_mutants_unread[TENON_MUTANTS];
__attribute__((weak, visibility("hidden"))) struct tenon_mutants tenon_mutants_state = {0, 0, tenon_mutants_unread};

extern char** tenon_mutants_environment __asm__("environ");  // getenv is wrapped in one plugin
extern int tenon_mutants_open(const char* path, int flags, ...) __asm__("open");
extern int tenon_mutants_close(int file) __asm__("close");
extern void* tenon_mutants_map(void* at, unsigned long bytes, int protection, int flags, int file,
                               long offset) __asm__("mmap");

// The rest of `entry` after `name`, which ends with "="; NULL if `entry` does not begin with it.
static inline const char* tenon_mutants_value(const char* entry, const char* name) {
  while (*name != 0 && *entry == *name) ++entry, ++name;
  return *name == 0 ? entry : (const char*)0;
}

// Runs before any static object of C++ is constructed.
__attribute__((constructor(101), unused)) static void tenon_mutants_begin(void) {
  if (tenon_mutants_state.begun != 0) return;
  tenon_mutants_state.begun = 1;
  for (char** entry = tenon_mutants_environment; entry != (char**)0 && *entry != (char*)0; ++entry) {
    const char* number = tenon_mutants_value(*entry, "TENON_MUTANT=");
    const char* path = tenon_mutants_value(*entry, "TENON_MUTANTS_REACHED=");
    for (; number != (const char*)0 && *number >= '0' && *number <= '9'; ++number)
      tenon_mutants_state.chosen = tenon_mutants_state.chosen * 10 + (*number - '0');
    if (path == (const char*)0) continue;
    const int file = tenon_mutants_open(path, 02000002);  // O_RDWR | O_CLOEXEC
    if (file < 0) continue;
    void* memory = tenon_mutants_map((void*)0, TENON_MUTANTS, 3, 1, file, 0);  // to read and write, shared
    if (memory != (void*)-1) tenon_mutants_state.reached = (unsigned char*)memory;
    tenon_mutants_close(file);
  }
}

static inline int tenon_mutants_chosen(int number) { return tenon_mutants_state.chosen == number; }
static inline void tenon_mutants_mark(int number) {
  if (tenon_mutants_state.reached[number] == 0) tenon_mutants_state.reached[number] = 1;
}

#ifdef __cplusplus
}
#endif

// The compiler may evaluate functions that contain these calls; there no mutant is enabled.
TENON_MUTANT_CALL int tenon_mutant(int number) { return !TENON_MUTANT_CONSTANT && tenon_mutants_chosen(number); }
TENON_MUTANT_CALL int tenon_reached(int number) { return TENON_MUTANT_CONSTANT ? 0 : (tenon_mutants_mark(number), 0); }
// For an expression: marks the mutant as reached, and returns whether it is enabled.
TENON_MUTANT_CALL int tenon_mutant_here(int number) { return tenon_reached(number) + tenon_mutant(number); }

#endif
