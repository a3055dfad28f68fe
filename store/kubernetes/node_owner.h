/* Node owner: what an agent writes is its Node's, by ownerReferences, so that Kubernetes' garbage collector
 * takes it away when the Node is removed: nobody else needs a right for that. An agent has no right to look
 * at Nodes; the uid stands in the token that it was given as a pod (a claim since Kubernetes 1.30).
 *
 * A token outlives a Node that is removed and comes back at once. So whoever finds what it wrote gone gives
 * that uid up, and writes without an owner until its token names another one. Pure but for the heap. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct node_owner {
        char uid[64];  /* "" = no token names one */
        bool given_up; /* this uid: it is gone, or may not be named */
        bool due;      /* what was written last does not say so yet */
        bool sent;     /* ... and is being written */
};

/* node_owner_look() - which Node does this token name? @token: NULL = there is none; @node: by name, another
 * one's claim counts for nothing. */
void node_owner_look(struct node_owner *owner, const char *token, const char *node);

void node_owner_give_up(struct node_owner *owner);

/* node_owner_references() - for metadata.ownerReferences; empty without an owner, NULL out of memory. */
json_t *node_owner_references(const struct node_owner *owner, const char *node);
