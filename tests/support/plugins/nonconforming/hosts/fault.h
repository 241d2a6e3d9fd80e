/* What a plugin does wrong with a struct that another host lends: FAULT(p) is whether it then goes wrong. The build
 * defines NAME and one of EQUAL, READS, WRITES, OLDER. SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

/* The word behind the members of these headers. */
#define LATER(p) ((volatile uint64_t*)((uintptr_t)(p) + sizeof *(p)))

#if defined(EQUAL) /* it wants the size of its own headers */
#define FAULT(p) ((p)->size != sizeof *(p))
#elif defined(READS) /* it takes what is behind for something that it knows */
#define FAULT(p) ((p)->size > sizeof *(p) && *LATER(p) != 0)
#elif defined(WRITES)
#define FAULT(p) ((p)->size > sizeof *(p) && (*LATER(p) = 1) == 0)
#else /* it writes a member that its oldest host does not have: here what is there */
#define REQUIRED 3
#define FAULT(p) ((*LATER(p) = *LATER(p)), 0)
#endif
