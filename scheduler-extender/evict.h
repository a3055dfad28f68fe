/* Evict: the borrowers that one look at the emergencies chose are asked to go, all of them or none.
 *
 * Each eviction is tried by a dry run first: the API server knows the disruption budgets, and nobody goes for
 * a place that another one's budget keeps. Who may not go is spared for VICTIM_AGAIN_USEC, with the API
 * server's sentence, and it is planned anew at once; so it is where an emergency that they go for waits no
 * longer when the tries are answered. A dry run takes nothing of a budget, so of two pods or more of a
 * namespace its budgets are read, and counted together. Should the second be refused all the same after the
 * first went (somebody else was quicker), that one is spared, too. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct extender;
struct ledger_pod;

/* For whom: a pod, or (uid NULL) the TrainingJob whose plan waits for its chips. Borrowed. */
struct evict_for {
        const char *key, *uid;
};

/* evict_overdue() - the pod's time to go is long over: who waits is told, and nobody counts on it for
 * VICTIM_AGAIN_USEC. */
void evict_overdue(struct extender *x, struct ledger_pod *pod);

/* evict_all() - @pods: bound; they count as leaving from now on, until one of them may not go. */
void evict_all(struct extender *x, struct ledger_pod *const *pods, size_t count,
               const struct evict_for *emergencies, size_t emergency_count, uint64_t now_usec);
