/* Metadata: what a store reads of any object, whatever else stands in it. Pure. */
#pragma once

#include <jansson.h>

/* Borrowed from the object; what is absent or no text is "". */
struct metadata {
        const char *kind, *api_version, *name, *namespace_, *uid, *version;
        const char *node;    /* spec.nodeName */
        const char *deleted; /* metadata.deletionTimestamp */
};

struct metadata metadata_of(const json_t *object);
