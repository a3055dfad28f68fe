/* Tune: search the numbers that this build's kernels can be tuned by (the row's tunables) on this device.
 *
 * Tunables that depend on each other are searched together, each such group on its kind of work. Every
 * setting that fits is timed quickly; the best few are timed again in turn with the untuned, so that all meet
 * the same neighbours; the winner and the untuned once more, and that counts: the mean over the works of
 * untuned time / tuned time, each the least that was seen. A gain of less than 3 % is none, and the group
 * stays untuned. Each timing is a process of its own: what a library was told stays with it. */
#pragma once

#include "trainer/train_options.h"

/* tune_run() - keeps the best setting in the cache, prints one JSON line, and says on stderr where nothing is
 * to be gained. Return: 0 or a negative errno. */
int tune_run(const struct train_options *o, struct err *err);
