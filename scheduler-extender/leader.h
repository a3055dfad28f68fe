/* Leader: which replica may commit, by a Lease; and when the store was last read anew, without which a new
 * leader commits nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct extender;

/* leader_refuses() - why this replica may not commit now, or NULL; borrowed until the next call.
 * leader_look() - once a second; leader_refreshed() - the store was read anew. leader_commit_usec() - a
 * commit that began while leading ends within. */
uint64_t leader_commit_usec(const struct extender *x);
int leader_open(struct extender *x, struct err *err);     /* before the store is opened */
int leader_campaign(struct extender *x, struct err *err); /* once the address is known */
void leader_close(struct extender *x);
const char *leader_refuses(struct extender *x);
void leader_look(struct extender *x);
void leader_refreshed(struct extender *x);

/* leader_leads() - may this replica commit now? Asked before every commit; true only after it has read
 * the store anew since it began to lead. leader_watch() - `changed` is called from the loop whenever
 * that changes, and at once if it leads; at most LEADER_WATCHES_MAX. 0 or -E2BIG. */
#define LEADER_WATCHES_MAX 4
bool leader_leads(const struct extender *extender);
int leader_watch(struct extender *x, void (*changed)(void *userdata, bool leading), void *userdata);
