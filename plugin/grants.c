/* Grants: what Allocate gave a moment ago, until the kubelet itself can say who holds it. */
#include "plugin/grants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/device_ids.h"
#include "base/array.h"
#include "base/text.h"

void grants_free(struct grants *grants)
{
        free(grants->entries);
        *grants = (struct grants){ .count = 0 };
}

void grants_resume(struct grants *grants, uint64_t now_usec)
{
        size_t kept = 0;

        for (size_t i = 0; i < grants->count; i++)
                if (grants->entries[i].given_usec <= now_usec)
                        grants->entries[kept++] = grants->entries[i];
        grants->count = kept;
}

static bool is_open(const struct grants_entry *entry, uint64_t asked_usec)
{
        return asked_usec < entry->given_usec + GRANTS_SETTLE_USEC;
}

static void forget(struct grants *grants, const char *id, uint64_t asked_usec)
{
        size_t kept = 0;

        for (size_t i = 0; i < grants->count; i++)
                if (is_open(&grants->entries[i], asked_usec) && strcmp(grants->entries[i].id, id) != 0)
                        grants->entries[kept++] = grants->entries[i];
        grants->count = kept;
}

int grants_add(struct grants *grants, const char *id, uint64_t now_usec, uint64_t asked_usec)
{
        struct grants_entry *entry;

        forget(grants, id, asked_usec);
        entry = array_add(&grants->entries, &grants->count, &grants->capacity, sizeof(*entry));
        if (entry == NULL)
                return -ENOMEM;
        (void) text_copy(entry->id, sizeof(entry->id), id);
        entry->given_usec = now_usec;
        return 0;
}

bool grants_has(const struct grants *grants, const char *id, uint64_t asked_usec)
{
        for (size_t i = 0; i < grants->count; i++)
                if (device_ids_overlap(grants->entries[i].id, id) && is_open(&grants->entries[i], asked_usec))
                        return true;
        return false;
}
