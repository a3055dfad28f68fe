/* Launch ranks: what our own launchers are given for each rank of a world, and what its program can read of
 * all of them: the same on one machine (`remuda run`) and in every device group of a cluster. Pure but for
 * the heap. */
#pragma once

#include <jansson.h>

#include "job/plan/launch.h"

struct launch_ranks_files {
        const char *folder; /* of what a rank prints and says: TAG-NUMBER.out, .err, .report, .progress */
        const char *tag, *plan, *table;
        const char *checkpoint; /* "" = none */
        const char *shares;     /* where new ones will be told; NULL = they never change */
        unsigned threads;       /* of each rank's mathematics; 0 = as it likes */
};

/* launch_ranks_entry() - one entry of a rank file (job/launcher/rank_file.h). @number: in its files' names.
 * NULL = no memory, or a word that is no UTF-8. */
json_t *launch_ranks_entry(const struct launch_world *world, size_t rank, size_t number,
                           const struct launch_ranks_files *files);

/* launch_ranks_path() - one of its files; false if it does not fit. */
bool launch_ranks_path(char *path, size_t size, const struct launch_ranks_files *files, size_t number,
                       const char *suffix);

/* launch_ranks_threads() - @cores: of the host; @ranks: that share them. One at least: more would only push
 * each other aside. */
unsigned launch_ranks_threads(unsigned cores, size_t ranks);

/* launch_ranks_plan() - "ranks" of the file that REMUDA_PLAN names. What is not known is left out.
 * NULL = no memory, or a word that is no UTF-8. */
json_t *launch_ranks_plan(const struct launch_world *world);
