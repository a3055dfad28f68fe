/* World: the ranks of one training run, over MPI, or a process alone.
 *
 * MPI is started only where a launcher announced it in the environment (Open MPI, MPICH, Slurm), so that a
 * process alone costs nothing. All ranks call the collective functions in the same order. Not thread-safe:
 * one thread of ours at a time speaks MPI, which is opened for several all the same
 * (trainer/in_step/mover.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

/* Raised whenever what travels between ranks changes; ranks of different protocols refuse each other. */
#define WORLD_PROTOCOL 8

struct world {
        int rank, size;
        int local_rank, local_size; /* on this machine */
        bool parallel;              /* MPI is running */
};

/* world_open() - join the world. Return: 0, or -EIO with the MPI error. */
int world_open(struct world *w, struct err *err);
void world_close(struct world *w);

/* world_agree() - collective: did every rank succeed so far? Each rank gives its own result and message.
 * Return: 0 when all gave 0; otherwise, on every rank, the result of the lowest rank that failed, with its
 * message in `err` (prefixed by its rank when the world has several). */
int world_agree(const struct world *w, int result, struct err *err);

/* world_share() - collective: rank 0's bytes to every rank. @text: of rank 0 on the way in, of all on the way
 * out. Return: 0 or -ENOMEM, the same on every rank. */
int world_share(const struct world *w, struct text *text, struct err *err);

/* world_same() - collective: do all ranks hold the same bytes?
 * @what: named in the message, e.g. "options"
 * Return: 0, or -EINVAL on every rank, naming the first rank that differs from rank 0. */
int world_same(const struct world *w, const char *text, const char *what, struct err *err);

/* world_abort() - end the whole world at once; does not return. Used where a rank fails while others may wait
 * for it. The caller has printed why. */
void world_abort(const struct world *w, int exit_code) __attribute__((noreturn));

/* world_pin() - keep this process on one CPU of its own when the launcher has not bound it and every local
 * rank can have one. Return: the number of CPUs this process may use. */
size_t world_pin(const struct world *w);
