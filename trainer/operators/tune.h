/* Tune: search the tile sizes of a backend's matrix product on this device.
 *
 * A tile of c (rows x cols) is summed over tiles of a (rows x inner) and b (inner x cols). Which of them the
 * local store holds at once, with the second buffers that transfers want, the backend says. What fits is
 * timed once on the products of the shipped models; the best few are timed again, in turn with the untuned,
 * so that all meet the same neighbours. What counts is the mean over the products of untuned time / tuned
 * time, each the least that was seen. */
#pragma once

#include "trainer/train_options.h"

/* tune_run() - try all tile sizes that the local store holds on the shapes of the shipped models, keep the
 * best in the cache, print one JSON line with the gain over the untuned tiles. Return: 0 or a negative errno.
 */
int tune_run(const struct train_options *o, struct err *err);
