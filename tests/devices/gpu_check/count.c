/* Counts the launches, waits and copies that a process asks the CUDA driver for: an auditing library of the dynamic
 * linker (LD_AUDIT), which sees where the functions of the driver are looked up. Keeps the counts in the file
 * TENON_COUNTS, as 64-bit integers in the order of enum. SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LAUNCHES, GRAPHS, WAITS, COPIES, KINDS };

static uint64_t* counts;

/* Stands for a function of the driver: counts, and calls it. All have arguments and results of at most 64 bits. */
#define COUNTED(name, kind, parameters, arguments)          \
  static int(*real_##name) parameters;                      \
  static int counted_##name parameters {                    \
    __atomic_fetch_add(&counts[kind], 1, __ATOMIC_RELAXED); \
    return real_##name arguments;                           \
  }
typedef unsigned U;
typedef void* P;
typedef unsigned long long A;
COUNTED(cuLaunchKernel, LAUNCHES, (P f, U a, U b, U c, U d, U e, U g, U h, P s, P* p, P* x),
        (f, a, b, c, d, e, g, h, s, p, x))
COUNTED(cuGraphLaunch, GRAPHS, (P graph, P stream), (graph, stream))
COUNTED(cuStreamSynchronize, WAITS, (P stream), (stream))
COUNTED(cuEventSynchronize, WAITS, (P event), (event))
COUNTED(cuMemcpyHtoDAsync_v2, COPIES, (A to, P from, size_t bytes, P stream), (to, from, bytes, stream))
COUNTED(cuMemcpyDtoHAsync_v2, COPIES, (P to, A from, size_t bytes, P stream), (to, from, bytes, stream))
COUNTED(cuMemcpyDtoDAsync_v2, COPIES, (A to, A from, size_t bytes, P stream), (to, from, bytes, stream))

unsigned la_version(unsigned version) {
  const char* const path = getenv("TENON_COUNTS");
  const int file = path == NULL ? -1 : open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return 0; /* the linker goes on without this library */
  void* memory = MAP_FAILED;
  if (ftruncate(file, KINDS * sizeof *counts) == 0)
    memory = mmap(NULL, KINDS * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return 0;
  counts = memory;
  return version;
}

unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)map, (void)space, (void)cookie;
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned number, uintptr_t* from, uintptr_t* to, unsigned* flags,
                       const char* name) {
  (void)number, (void)from, (void)to;
  if ((*flags & LA_SYMB_DLSYM) == 0) return symbol->st_value;
#define COUNT(function)                                              \
  if (strcmp(name, #function) == 0) {                                \
    real_##function = (__typeof__(real_##function))symbol->st_value; \
    return (uintptr_t)counted_##function;                            \
  }
  COUNT(cuLaunchKernel)
  COUNT(cuGraphLaunch)
  COUNT(cuStreamSynchronize)
  COUNT(cuEventSynchronize)
  COUNT(cuMemcpyHtoDAsync_v2)
  COUNT(cuMemcpyDtoHAsync_v2)
  COUNT(cuMemcpyDtoDAsync_v2)
  return symbol->st_value;
}
