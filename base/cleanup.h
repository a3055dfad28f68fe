/* Cleanup: scope-bound release of memory, streams and descriptors, and the two macros that go with it.
 *
 * Every own type adds an x_free(struct x *) that accepts NULL and half-built objects. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Hands a pointer over: the value is returned, the variable becomes NULL. */
#define TAKE(p)                                                                                              \
        ({                                                                                                   \
                __typeof__(p) took_ = (p);                                                                   \
                (p) = NULL;                                                                                  \
                took_;                                                                                       \
        })

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void free_p(void *p)
{
        free(*(void **) p);
}

static inline void fclose_p(FILE **f)
{
        if (*f != NULL)
                (void) fclose(*f);
}

static inline void close_p(const int *fd)
{
        if (*fd >= 0)
                (void) close(*fd);
}
