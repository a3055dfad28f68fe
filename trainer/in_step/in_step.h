/* In step: what ranks that go from step to step together (serial, allreduce, split, ps-sync) do in between:
 * all stop after the same step where any was asked to (trainer/stop.h), and all take new shares from the same
 * step on (trainer/in_step/recut.h).
 *
 * They also say how long they waited for each other, and where that is long all sleep meanwhile.
 *
 * Where neither can come (no --checkpoint, no REMUDA_SHARES) nothing is exchanged. New shares are taken by
 * strategies that say so, of data that every rank reads by itself and no worker passes on: elsewhere a rank
 * does not say `shares_step` in its progress lines, and who watches starts a new world. */
#pragma once

#include "trainer/in_step/recut.h"
#include "trainer/in_step/word.h"
#include "trainer/stop.h"
#include "trainer/strategy.h"
#include "trainer/training.h"

struct in_step {
        struct stop stop;
        struct recut recut;
        struct word word;
        bool exchanges, recuts;
};

/* in_step_open() - collective, before the first step. */
void in_step_open(struct in_step *s, struct training *t);

/* in_step_next() - collective, after a step, t->step being the next one: sets t->stopped where all stop
 * before it. Return: 0 or a negative errno, the same on every rank. */
int in_step_next(struct in_step *s, struct training *t, struct err *err);

void in_step_close(struct in_step *s); /* collective */
