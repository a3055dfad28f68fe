/* Grants: what Allocate gave a moment ago, until the kubelet itself can say who holds it: it is asked every
 * few seconds. Pure; time is an argument, CLOCK_MONOTONIC, which two instances of an agent share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"

#define GRANTS_MAX         4096
#define GRANTS_SETTLE_USEC UINT64_C(2000000) /* so long a kubelet may take to know of its own pod */

struct grants_entry {
        char id[DEVICE_ID_BYTES];
        uint64_t given_usec;
};

struct grants {
        struct grants_entry *entries;
        size_t count, capacity;
};

void grants_free(struct grants *grants);

/* grants_resume() - they were read from a file: what was given later than @now_usec was given before the node
 * was started. */
void grants_resume(struct grants *grants, uint64_t now_usec);

/* grants_add() - now; entries that the answer of @asked_usec has outdated are forgotten. 0 or -ENOMEM. */
int grants_add(struct grants *grants, const char *id, uint64_t now_usec, uint64_t asked_usec);

/* grants_has() - given, and the kubelet's last answer, of @asked_usec (0 = there was none), is too old to say
 * of it. */
bool grants_has(const struct grants *grants, const char *id, uint64_t asked_usec);
