/* Tune: search the tile sizes of a backend's matrix product on this device. */
#pragma once

#include "trainer/train_options.h"

/* tune_run() - try all tile sizes that the local store holds on the shapes of the shipped models, keep the
 * best in the cache, print one JSON line with the gain over the untuned tiles. Return: 0 or a negative errno.
 */
int tune_run(const struct train_options *o, struct err *err);
