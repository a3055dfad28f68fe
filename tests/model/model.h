/* Model: two extenders on an API server in memory, random tenants and faults, and a ledger of its own against
 * which theirs is held after every step.
 *
 * Steps: pods are made, filtered, bound, relabelled and annotated (also in ways that cannot be read), end,
 * are deleted and forced away, come back under their name; events are late, watches break (410, 504), replies
 * are lost, writes are done late or never; extenders are killed, the leader changes, both clocks move. Broken
 * promises: chips booked twice (by the API server's own count); a pod's chips not held that the extender was
 * told, or was answered, is bound, and not told is gone or has ended; and, once all is quiet, any difference
 * between its ledger and the truth, or an emergency that borrowers are in the way of. */
#pragma once

#include "tests/model/world.h"

/* model_run() - `steps` steps, or until the chance has ended. Return: NULL, or the broken promise; details
 * are in `world`. */
const char *model_run(struct chance *chance, uint64_t steps);

/* model_run_failovers() - the leader is killed `failovers` times, each time when it has sent so many writes:
 * before one, between two, or while the answer is on its way; the other one leads, a new one follows. Beside
 * the promises above: what passes the filter once all is quiet is bound. Return: as model_run(). */
const char *model_run_failovers(struct chance *chance, unsigned failovers);
