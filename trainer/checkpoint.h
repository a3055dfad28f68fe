/* Checkpoint: the state of a run on disk, whole or not at all.
 *
 * DIR/step-N.checkpoint: one text line of facts, the parameters (and velocities) as little-endian float32,
 * and the SHA-256 of everything before it:
 *
 *         remuda-checkpoint version=1 model=5f3a step=200 seed=1 batch=128 parameters=235146 velocity=0\n
 *         940,584 bytes of floats, 32 bytes of SHA-256
 *
 * Two phases: step-N.checkpoint.part is written and synced; then it gets its name, and the directory is
 * synced. Invariant: what has the name is whole, and until it has, the one before is not touched; the newest
 * two stay. Killed while step 200 is written, DIR has step-100.checkpoint and a .part, and --resume goes on
 * from step 100.
 *
 * Because sample order and initial values come from the seed, the step is all that a run must remember
 * besides its parameters; it may be resumed with other shares, workers or strategies. Where workers keep
 * shards (trainer/data/owned.h) it must also remember how these were dealt, each time: the first line then
 * ends with shards=, which names the last dealing, and dealt=, so many bytes of lines
 * (trainer/data/dealings.h) before the parameters. Who goes on with other workers, shares, order or exchange
 * deals anew. Rank 0 alone touches the files; where the model is split, its values pass by piece by piece. */
#pragma once

#include "trainer/training.h"

/* checkpoint_write() - by rank 0, of a split model by all ranks: t's parameters and velocity as the state
 * after `step` steps; removes all but the newest two. */
int checkpoint_write(const struct training *t, uint64_t step, struct err *err);

/* checkpoint_resume() - collective: rank 0 reads the newest whole checkpoint into t and all get its step,
 * parameters and velocity. Broken ones are passed over (said on stderr) as long as an older one is whole.
 * Return: 0 (also when there is none yet), -EINVAL (of another model, version, seed or batch; none whole). */
int checkpoint_resume(struct training *t, struct err *err);
