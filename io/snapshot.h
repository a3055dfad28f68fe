/* Snapshot: work on the memory as it is now that takes too long for the loop. A child made by fork(2) does it
 * while the loop goes on: it has all that this process has, at the price of the page tables, and what it
 * changes is its own.
 *
 * The child may touch memory and nothing else: its descriptors are closed, and it ends with its parent. It
 * steps back in the queue of the processor, and it is the first to go where memory ends. What it found comes
 * back as text through a pipe. At most SNAPSHOTS_MAX at a time, each for `seconds` at most. Owned by
 * its creator. */
#pragma once

#include <stddef.h>
#include <systemd/sd-event.h>

#include "base/text.h"

#define SNAPSHOTS_MAX 4

struct snapshot_pool;

/* snapshot_pool_new() - Return: 0 or -ENOMEM. */
int snapshot_pool_new(sd_event *loop, unsigned seconds, struct snapshot_pool **ret);

/* snapshot_pool_free() - ends all that run; their snapshot_done is called. Accepts NULL. */
void snapshot_pool_free(struct snapshot_pool *pool);

/* In the child: what it appends is what comes back. */
typedef void snapshot_work(void *userdata, struct text *ret);

/* In the loop, once, never before snapshot_run() has returned. @result: 0; -ETIMEDOUT; -ECANCELED (the pool
 * goes); -EIO (the child was killed, or had no memory). @text: malloc'd, taken over; NULL unless result is 0.
 */
typedef void snapshot_done(void *userdata, int result, char *text, size_t bytes);

/* snapshot_run() - Return: 0; -EBUSY: as many as may run do; another negative errno: the system refuses one.
 * Then neither is called. */
int snapshot_run(struct snapshot_pool *pool, snapshot_work *work, snapshot_done *done, void *userdata);
