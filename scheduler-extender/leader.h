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
uint64_t leader_commit_usec(const struct extender *extender);
int leader_open(struct extender *extender, struct err *err);     /* before the store is opened */
int leader_campaign(struct extender *extender, struct err *err); /* once the address is known */
void leader_close(struct extender *extender);
const char *leader_refuses(struct extender *extender);
void leader_look(struct extender *extender);
void leader_refreshed(struct extender *extender);

/* leader_leads() - may this replica commit now? Asked before every commit; true only after it has read
 * the store anew since it began to lead. leader_watch() - `changed` is called from the loop whenever
 * that changes, and at once if it leads; at most LEADER_WATCHES_MAX. 0 or -E2BIG. */
#define LEADER_WATCHES_MAX 4
bool leader_leads(const struct extender *extender);
int leader_watch(struct extender *extender, void (*changed)(void *userdata, bool leading), void *userdata);
