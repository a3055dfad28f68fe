/* Page kept: what the page knows beside the ledger: devices one by one, jobs as they are shown, faults of the
 * last hour; and which nodes viewers have not been told of since they changed. Owned by the page. */
#pragma once

#include <jansson.h>

#include "base/text.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/page/page_agents.h"
#include "scheduler-extender/page/page_faults.h"
#include "scheduler-extender/page/page_jobs.h"

struct page_kept_node {
        struct name_map_entry entry; /* first: name_map.h */
        struct page_node_told told;
        bool judged, unknown;                   /* at the last look */
        enum page_agents_registered registered; /* then, too */
        bool dirty; /* it is in the list of those that viewers are to be told of */
        bool anew;  /* ... and its agent has told of it: chips may be others. Cleared by the teller */
        struct page_kept_node *previous, *next;
};

struct page_kept_job {
        struct name_map_entry entry; /* first: name_map.h */
        struct page_jobs_seen seen;
        char *text; /* as it is shown: an object; owned; NULL = there was no memory */
};

/* Zero-initialised. Versions grow with each change. */
struct page_kept {
        struct name_map nodes, jobs;
        struct page_kept_node *dirty, *dirty_last; /* the first to be told of, and the last */
        struct text gone;                          /* names of nodes: JSON strings, commas between */
        struct page_faults faults;
        uint64_t fleet_version, jobs_version, agents_version;
        uint64_t scanned; /* the ledger's generation at the last look at its accounts */
};

void page_kept_free(struct page_kept *kept);

/* page_kept_told() - what the agent of a node tells; NULL = it is gone. @now_usec: CLOCK_REALTIME */
void page_kept_told(struct page_kept *kept, const char *name, const struct inventory *inventory,
                    uint64_t now_usec);

/* page_kept_job() - a TrainingJob; NULL = it is gone. */
void page_kept_job(struct page_kept *kept, const char *key, const json_t *object, uint64_t now_usec);

/* page_kept_scan() - nodes whose accounts have changed since the last look are dirty. O(nodes), and nothing
 * where the ledger has not changed. page_kept_clean() - nobody looks on: nothing is. */
void page_kept_scan(struct page_kept *kept, const struct ledger *ledger);
void page_kept_clean(struct page_kept *kept, const struct ledger *ledger);

/* page_kept_next() - the node that has been dirty for longest; it is dirty no more. NULL = none is. */
struct page_kept_node *page_kept_next(struct page_kept *kept);

/* page_kept_judge() - which agents are silent now, and which are registered: once a second. O(nodes). */
void page_kept_judge(struct page_kept *kept, const struct ledger *ledger, const struct rules *rules,
                     uint64_t now_usec);

/* page_kept_sorted() - all of a map, by key: n2 before n10. Return: NULL without memory; freed by the caller.
 */
struct name_map_entry **page_kept_sorted(const struct name_map *map);
