/* Stage message: what a split was planned with (job/stages/stage_ranks.h) as part of a manager's plan,
 * and back. Chips of a kind have one row of times. Pure but for the heap. */
#pragma once

#include "job/plan/job_state.h"
#include "job/plan/subtask.pb-c.h"

struct stage_message { /* what the message borrows */
        Subtask__Split message;
        Subtask__Layer *layers, **layer_list;
        Subtask__Times *times, **times_list;
        bool failed; /* no memory */
};

#define STAGE_MESSAGE_TIMES_MAX 4096 /* of all kinds of chips together: what an annotation has room for */

/* stage_message_fill() - @groups: those of the state, in its order; each is told its times, memory and link.
 * Return: the message, which @room and the ranks own; NULL: the layers are not planned, their times are too
 * many, or room->failed. */
Subtask__Split *stage_message_fill(const struct stage_ranks *ranks, const struct job_state *state,
                                   Subtask__Group *groups, struct stage_message *room);
void stage_message_free(struct stage_message *room);

/* stage_message_read() - of a checked plan, for each rank of the groups that are used; *ret stays empty where
 * it says nothing. 0, -ENOMEM. */
int stage_message_read(const Subtask__Plan *plan, struct stage_ranks *ret, struct err *err);

/* stage_message_check() - is there a time of every layer for every group, and no stage beyond them? 0;
 * -EINVAL and *err. */
int stage_message_check(const Subtask__Plan *plan, struct err *err);
