/* Assignment: which device groups the roles of one TrainingJob get, whoever asks.
 *
 *      job + ledger -> groups with open chips (scheduler-extender/decide/rules.h judges)
 *                   -> scheduler-extender/decide/placement.h -> parts
 *
 * First every entry of workers gets its minChips, then the servers theirs and, while chips are open, the
 * rest; then workers get more, where that makes a step shorter (scheduler-extender/decide/batch_cut.h). All
 * of the job is placed, or nothing. Ranks of a CPU group may be more than its chips: what finds no chip is
 * spread evenly. `fastest` compares the chips of a role by one figure: samples a second of the job's program
 * and model if all have it, else measured GFLOPS, else the peak of one precision, else whichever most have.
 *
 * Of places that make a step equally long, by figures of one kind, those under one switch go first (label
 * remuda.dev/switch-domain): with as many chips, under a switch that the job has a part under anyway.
 *
 * A job that asks for 10 of groups with 8, 4 and 2 open chips and says `packed` gets two parts, 8 and 2.
 * Invariant: no part takes a chip that another part of the job, a pod or a lease holds. Pure but for the
 * heap. O(entries x groups x parts) and one step model a part beyond the least; under switches no more
 * than once more, and a step model each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "scheduler-extender/decide/open_groups.h"

#define ASSIGNMENT_NOTES_MAX  16
#define ASSIGNMENT_NOTE_BYTES 256
#define ASSIGNMENT_RANKS_MAX  4096 /* in one part */

struct assignment_part {
        bool server;
        uint32_t entry; /* index in workers */
        const struct ledger_node *node;
        const struct ledger_group *group;
        uint32_t chips;
        uint32_t ranks; /* >= chips; more where a CPU group serves several */
};

struct assignment {
        struct assignment_part *parts; /* in the order in which they were made */
        size_t count;
        char notes[ASSIGNMENT_NOTES_MAX][ASSIGNMENT_NOTE_BYTES]; /* "Word: sentence" */
        size_t note_count;
        const struct job_role *lacking; /* after -EBUSY: the role that got too little... */
        uint64_t found;                 /* ... and how many chips were there for it */
};

/* assignment_make() - @parts_max: device groups that whoever manages the job takes. Return: 0; -EBUSY and
 * *err, what is missing (it may fit later); -E2BIG (more parts than parts_max); -ENOMEM. Release with
 * assignment_free() in any case. */
int assignment_make(const struct open_groups_claim *claim, size_t parts_max, struct assignment *ret,
                    struct err *err);
void assignment_free(struct assignment *assignment);

/* assignment_cut() - what each part takes of every batch, as batch_cut() (batch_cut.h). @ret_shares: [count]
 */
int assignment_cut(const struct open_groups_claim *claim, const struct assignment *assignment,
                   struct batch_cut_share *ret_shares, struct chip_speed_verdict *ret_verdict,
                   struct err *err);

/* assignment_spare() - other chips for one part: of its own model if there are some, since that is what the
 * shares were cut for; among those the tightest place.
 * @parts: the job's; what the others wait for is not to be had, those on chips by their pods have 0. @index:
 * of the part; its group may be gone (NULL)
 * @model: symbol of the model that it had; @runtime: of its program, which the chips must serve
 * Return: 0 and node and group of @ret_part changed; -EBUSY (there is no spare chip); -ENOMEM. */
int assignment_spare(const struct open_groups_claim *claim, const struct assignment_part *parts, size_t count,
                     size_t index, uint32_t model, const char *runtime, struct assignment_part *ret_part);

/* assignment_role() - of a part: an entry of workers, or the servers. NULL = the job has no such entry. */
const struct job_role *assignment_role(const struct job *job, bool server, size_t entry);
