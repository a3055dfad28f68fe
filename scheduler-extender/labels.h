/* Labels of a node: what its inventory makes them, and what is patched where this replica leads. */
#pragma once

#include <jansson.h>

struct extender;

/* labels_seen() - what the Node object has (NULL: it is gone). labels_write() - patch what differs. */
void labels_seen(struct extender *x, const char *node, const json_t *labels);
void labels_write(struct extender *x, const char *name);
void labels_write_all(struct extender *x);
void labels_free(struct extender *x);
