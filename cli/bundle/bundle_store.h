/* Bundle store: the objects of a store in a directory, a file a kind, and the last of its events. */
#pragma once

#include <systemd/sd-event.h>

#include "cli/bundle/bundle.h"
#include "store/store.h"

struct bundle_store_found {
        json_t *items[STORE_KIND_COUNT]; /* arrays of objects, pruned; NULL: that kind is not looked at */
        struct bundle *bundle;
        bool job_logs;           /* also what containers said last */
        unsigned wanted, synced; /* bit sets of kinds */
};

/* bundle_store_read() - @spec: "dir:PATH"; within BUNDLE_SOURCE_USEC. @found: with bundle and job_logs set.
 * Return: 0, also where some is missing; what store_open() says. bundle_store_found_free() in any case. */
int bundle_store_read(const char *spec, sd_event *loop, struct bundle_store_found *found, struct err *err);
void bundle_store_found_free(struct bundle_store_found *found);
