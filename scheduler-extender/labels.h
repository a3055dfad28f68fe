/* Labels of a node: what its inventory makes them, and what is patched where this replica leads. Whatever
 * comes at once, a few nodes are compared in a turn of the loop, and a few writes wait for their answers. A
 * write that is refused is tried again, after one second, then ever later up to five minutes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/name_map.h"

struct extender;
struct seen_labels;

struct labels {
        struct name_map nodes;            /* what Node objects have */
        struct seen_labels *first, *last; /* those that are to be compared with their inventories */
        unsigned writing;                 /* writes that have no answer yet */
        sd_event_source *look, *again;
        bool waits_again; /* writes that were refused are tried again when `again` comes */
        unsigned rounds;  /* of such tries, in which none was taken */
};

/* labels_open() - Return: 0 or a negative errno. labels_free() - after the store has given its answers. */
int labels_open(struct extender *x);
void labels_free(struct extender *x);

/* labels_seen() - what the Node object has (NULL: it is gone). labels_write() - it is compared soon, and what
 * differs is patched. */
void labels_seen(struct extender *x, const char *node, const json_t *labels);
void labels_write(struct extender *x, const char *name);
void labels_write_all(struct extender *x);

/* labels_are_ours() - is a Node's label of this name written here alone? */
bool labels_are_ours(const char *name);
