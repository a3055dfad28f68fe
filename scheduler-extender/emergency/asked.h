/* Asked: what room is to be made for: a pod, a gang of pods, or the places of a TrainingJob's plan.
 *
 * One answer to "does all of it fit now?", by the very rules with which filter answers, and what of it
 * is still to be placed, for those who look for victims. Pure but for the heap and changes of the ledger that
 * are undone. */
#pragma once

#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/emergency/trial.h"

struct asked {
        struct rules_context context; /* of the pod, prepared, unfiltered; of a plan: rules, job and now */
        struct ledger_job *job;       /* the gang's or the plan's; NULL = a pod by itself */
        struct gang_demand demand;    /* of a gang */
        bool planned; /* the job's places say where each goes: those where others may go are asked for */
};

/* Members of one shape that are to be placed. */
struct asked_need {
        const struct request *request; /* one of them */
        size_t count;
        struct ledger_node *only; /* NULL = any node */
};

struct asked_needs {
        struct gang_members members; /* owned; the requests */
        struct asked_need *list;     /* owned; the largest members first */
        size_t count;
};

/* asked_of_plan() - of a job that has places. */
struct asked asked_of_plan(struct ledger *ledger, const struct rules *rules, struct ledger_job *job,
                           uint64_t now_usec);

/* asked_gang() - the job whose pods are placed together, by us; NULL = it is no gang. */
struct ledger_job *asked_gang(const struct asked *asked);

/* asked_fits() - 1 = all of it; 0 = not; -ENOMEM. O(nodes + members log nodes). */
int asked_fits(struct trial *trial, const struct asked *asked);

/* asked_needs() - at most `most` members in each. 0 or -ENOMEM. Free them in any case. */
int asked_needs(const struct asked *asked, size_t most, struct asked_needs *ret);
void asked_needs_free(struct asked_needs *needs);

/* asked_could_take() - could one of the members ever be there? */
bool asked_could_take(const struct asked *asked, const struct asked_needs *needs,
                      const struct ledger_node *node);

/* asked_context() - with which nodes are judged for one of the members, its gang's verdict apart. */
struct rules_context asked_context(const struct asked *asked, const struct request *member);

/* asked_take_on() - likewise on these nodes, where it had its places before: one for each member, those of
 * the larger members first, NULL = it is not known. What has changed since then has it planned anew (0). */
int asked_take_on(struct trial *trial, const struct asked *asked, struct ledger_node *const *nodes,
                  size_t count);

/* asked_take() - what fits takes its chips, until the trial is undone: the pod is on the best node, or the
 * gang has its slots. 1 = done; 0 = it does not fit; -ENOMEM. */
int asked_take(struct trial *trial, const struct asked *asked);
