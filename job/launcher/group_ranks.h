/* Group ranks: the ranks of one world that run here: their files, what they say, what became of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "job/launcher/message.h"

struct group_rank;

struct group_ranks {
        const char *folder; /* --work-dir, absolute; borrowed */
        bool log_lines;     /* what they print goes to standard output too, every line after "[RANK] " */
        uint64_t world, first_rank;
        struct group_rank *items;
        Rendezvous__RankSeen *said, **list; /* count of them, as the manager is sent them */
        size_t count;
};

/* group_ranks_begin() - a new world, of whose ranks nothing is known. 0 or -ENOMEM. */
int group_ranks_begin(struct group_ranks *ranks, uint64_t world, uint64_t first_rank, size_t count,
                      struct err *err);
void group_ranks_clean(const struct group_ranks *ranks); /* the files that an earlier world left */
void group_ranks_free(struct group_ranks *ranks);

/* group_ranks_look() - read the files. Return: has anything changed that the manager should know?
 * group_ranks_told() - he has been: what their steps took since then begins anew. */
bool group_ranks_look(struct group_ranks *ranks, uint64_t now_usec);
void group_ranks_told(struct group_ranks *ranks);

/* group_ranks_share() - the file that REMUDA_SHARES of its ranks names is replaced. 0, or a negative errno.
 */
int group_ranks_share(const struct group_ranks *ranks, uint64_t step, const uint32_t *shares, size_t count,
                      struct err *err);

/* group_ranks_terminate() - SIGTERM to each rank's launcher, which passes it on and waits its grace time.
 * Return: how many there are. */
size_t group_ranks_terminate(const struct group_ranks *ranks);

/* group_ranks_running() - how many have started and not ended. */
size_t group_ranks_running(const struct group_ranks *ranks);
