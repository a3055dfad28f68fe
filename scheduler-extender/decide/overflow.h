/* Overflow: when a pod may run on a node of the other class. Off by default.
 *
 * single-to-multi: pods of one chip onto multi-chip nodes that run no multi-chip job, never into the last
 * whole group, and not while a preemptible or short one waits for the same chips. multi-to-single: jobs of up
 * to OVERFLOW_SMALL_CHIPS chips onto single-chip nodes. In both directions at most `percent` of the chips of
 * the nodes of the other class may be held that way. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ledger;
struct ledger_node;
struct request;
struct rules_context;

enum overflow { OVERFLOW_NONE, OVERFLOW_SINGLE_TO_MULTI, OVERFLOW_MULTI_TO_SINGLE, OVERFLOW_BOTH };

#define OVERFLOW_SMALL_CHIPS 4u
#define OVERFLOW_SHORT_SEC   3600u /* a pod with so short a deadline may overflow first */

struct overflow_room {
        bool allowed;          /* in the pod's direction */
        uint32_t chips_left;   /* until the cap is reached */
        uint32_t whole_groups; /* open in all their chips, on nodes of the other class */
        bool others_first;     /* a preemptible or short one waits */
};

/* overflow_parse() - "none|single-to-multi|multi-to-single|both[:PERCENT]". Return: 0 or -EINVAL. */
int overflow_parse(const char *text, enum overflow *ret, uint32_t *ret_percent);

/* overflow_prepare() - what there is to overflow into: O(nodes). */
void overflow_prepare(const struct rules_context *ctx, struct overflow_room *ret);

/* overflow_kind() - pods that wait for chips of one resource find the same room, if they are of one kind. */
#define OVERFLOW_KINDS 4
unsigned overflow_kind(const struct request *request);

/* overflow_room_of() - what overflow_prepare() says of a pod that waits: found out once for all that find the
 * same, as long as the ledger stays as it is. @rooms: zero-initialised at first. *ret_found is true where the
 * nodes were gone through for it; may be NULL. */
struct overflow_rooms {
        struct overflow_room rooms[OVERFLOW_KINDS];
        uint32_t resources[OVERFLOW_KINDS]; /* whose they are; 0 = not known yet */
};
const struct overflow_room *overflow_room_of(struct overflow_rooms *rooms, const struct rules_context *ctx,
                                             bool *ret_found);

/* overflow_takes() - may the request's pod run on this node of the other class? */
bool overflow_takes(const struct rules_context *context, const struct ledger_node *node);
