/* Split: the stages of a model that is cut over the workers (job/stages/stage_plan.h), and what the
 * trainer found out of its layers. */
#pragma once

#include "job/run/run.h"

/* run_split_plan() - the stages, in rank order: by the layers that were measured, else by the job's profile;
 * the ranks may change places. Where neither is known the program cuts itself, with an event; stages that the
 * job binds are then refused. 0; -EINVAL and *err; -ENOMEM. */
int run_split_plan(struct run *run, struct err *err);

/* run_split_begin() - the world that is laid out knows which layers its ranks hold, and what is planned for
 * them. 0, -ENOMEM. run_split_move() - the layers go where the world has found they are to, and its times are
 * the plan's. Return: false where it has found nothing. */
int run_split_begin(struct run *run, struct err *err);
bool run_split_move(struct run *run);

/* run_split_is_planned() - does every rank have layers of its own? */
bool run_split_is_planned(const struct run *run);

/* run_split_measures() - are the layers to be measured? Not where the job brings a profile. */
bool run_split_measures(const struct run *run);

/* run_split_stages() - "F:L,F:L" of the plan, or NULL; caller frees. */
char *run_split_stages(const struct run *run);

void run_split_read_layers(struct run *run, size_t index, const json_t *answer); /* of --measure-layers */
void run_split_add_layers(const struct run *run, size_t rank, json_t *entry);    /* "layers": [first, last] */

/* run_split_read_segments() - what the trainer chose for `segments: auto`, from its words. */
void run_split_read_segments(struct run *run);
