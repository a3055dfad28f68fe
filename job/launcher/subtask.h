/* Subtask: the first level at which the work of a job over several device groups is cut, by the manager: the
 * global batch and the epoch over the groups that take part.
 *
 * A plan is one message (job/plan/subtask.proto): read from JSON, kept by the manager, sent to the
 * groups, which tell their ranks (job/launcher/subtask_ranks.h). It is cut over groups and their chips by
 * speed, with the exact planner (planner/shards/shards.h), or equally, as the plan says; and anew when others
 * take part. Pure but for the heap. docs/reference/rendezvous.md describes it. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pb.h"
#include "job/plan/subtask.pb-c.h"
#include "planner/shards/shards.h"

#define SUBTASK_GROUPS_MAX    256
#define SUBTASK_CHIPS_MAX     65536 /* of all groups */
#define SUBTASK_ARENA_BYTES   ((size_t) 16 << 20)
#define SUBTASK_ADDRESS_BYTES 64

/* subtask_read() - a plan as a person or a controller wrote it, checked, with its first cut over all groups
 * that are no spares. It lives in the arena (SUBTASK_ARENA_BYTES suffice); its groups' addresses have room
 * for SUBTASK_ADDRESS_BYTES. Return: 0, -EINVAL, -ENOMEM. */
int subtask_read(const json_t *value, struct pb_arena *arena, Subtask__Plan **ret, struct err *err);

/* subtask_check() - is every figure and name of a plan within its bounds? 0 or -EINVAL. */
int subtask_check(const Subtask__Plan *plan, struct err *err);

/* subtask_cut() - first_rank, batch, its chips' batches and shard of every group that is used. Batches that
 * the plan gives, or that were cut before, stand as long as those who are used have all of the global batch
 * and batches_given is not cleared. 0, -EINVAL (no worker, or the batch is smaller than the world), -ENOMEM.
 */
int subtask_cut(Subtask__Plan *plan, struct err *err);

/* subtask_sent() - the plan as groups are sent it: how others are started is none of their business, nor is
 * the token for the state, nor are speeds once they are batches. It borrows everything. @groups, @list: room
 * for all groups */
Subtask__Plan subtask_sent(const Subtask__Plan *plan, Subtask__Group *groups, Subtask__Group **list);

/* subtask_may_share_anew() - do shares follow speeds? Not equal ones, nor the stages of a split. */
bool subtask_may_share_anew(const Subtask__Plan *plan);

uint64_t subtask_chips(const Subtask__Group *group); /* samples of its chip_batches together */

bool subtask_is_server(const Subtask__Group *group);

/* subtask_has_stages() - do the workers that are used hold all layers of the model, in their order, once or
 * again and again? Where one
 * is left out they do not, and their program cuts the model itself. */
bool subtask_has_stages(const Subtask__Plan *plan);
