/* Labels of a node: what its inventory makes them, and what is patched where this replica leads. */
#pragma once

#include <jansson.h>

struct extender;

/* labels_seen() - what the Node object has (NULL: it is gone). labels_write() - patch what differs. */
void labels_seen(struct extender *extender, const char *node, const json_t *labels);
void labels_write(struct extender *extender, const char *node);
void labels_write_all(struct extender *extender);
void labels_free(struct extender *extender);
