/* Bundle node: what this machine, its system and its agent say. */
#pragma once

#include "cli/bundle/bundle.h"
#include "cli/bundle/bundle_child.h"

struct bundle_node_options {
        const char *root, *machine;          /* NULL, NULL = this machine */
        const char *socket, *agent, *config; /* of the agent; address or NULL */
        const char *programs;                /* NULL = the usual file */
};

/* bundle_node_gather() - it takes 5 seconds at most: all are asked at once. */
void bundle_node_gather(struct bundle *bundle, const struct bundle_node_options *options);

/* bundle_node_take() - what a child printed becomes a file: JSON where @name ends so, else text. */
/* Return: as bundle_child_end(). */
int bundle_node_take(struct bundle *bundle, struct bundle_child *child, const char *folder, const char *name);
