/* The ends of a cluster in the order of time, and the cluster after some of them. */
#include "scheduler-extender/explain/play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

static void add_end(struct play *play, uint64_t now_usec, uint64_t usec, struct play_end end)
{
        end.usec = usec > now_usec ? usec : now_usec;
        play->ends[play->count++] = end;
}

static void add_pods(struct play *play, const struct ledger *ledger, uint64_t now_usec)
{
        uint64_t hold_usec = cluster_rules(play->cluster)->hold_usec;

        for (uint32_t i = 0; i < ledger->pod_slot_count; i++) {
                struct ledger_pod *pod = ledger->pod_slots[i];

                if (pod == NULL || pod->ended)
                        continue;
                if (pod->node != NULL && backfill_pod_ends(pod, now_usec) != UINT64_MAX)
                        add_end(play, now_usec, backfill_pod_ends(pod, now_usec),
                                (struct play_end){ .what = "ends", .name = pod->key, .pod = pod });
                if (pod->node == NULL && pod->waited_usec != 0 && hold_usec != 0)
                        add_end(play, now_usec, pod->waited_usec + hold_usec,
                                (struct play_end){ .what = "has no chips held any more", .name = pod->key });
        }
}

static void add_leases(struct play *play, const struct ledger *ledger, uint64_t now_usec)
{
        uint64_t lease_usec = cluster_rules(play->cluster)->lease_usec;

        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                for (const struct ledger_job *job = ledger->jobs[i]; job != NULL; job = job->next)
                        if (job->slots != NULL && job->place_count == 0)
                                add_end(play, now_usec, job->lease_ends_usec,
                                        (struct play_end){ .what = "has no lease any more",
                                                           .name = job->key });
                        else if (job->gave_way_usec != 0 && job->pods != NULL)
                                add_end(play, now_usec, job->gave_way_usec + lease_usec,
                                        (struct play_end){ .what = "lets others go first no more",
                                                           .name = job->key });
        for (struct name_map_entry *e = name_map_first(&ledger->gang_pause_ends.map); e != NULL;
             e = name_map_next(&ledger->gang_pause_ends.map, e))
                add_end(play, now_usec, name_numbers_get(&ledger->gang_pause_ends, e->key),
                        (struct play_end){ .what = "may lease again", .name = e->key });
}

static int by_time(const void *a, const void *b)
{
        const struct play_end *x = a, *y = b;

        if (x->usec != y->usec)
                return x->usec < y->usec ? -1 : 1;
        return strcmp(x->name, y->name);
}

int play_begin(struct cluster *cluster, uint64_t now_usec, struct play *ret)
{
        const struct ledger *ledger = cluster_ledger(cluster);
        size_t most =
                2 * (size_t) ledger->pod_count + ledger->slot_total + ledger->gang_pause_ends.map.count + 1;

        *ret = (struct play){ .cluster = cluster, .ends = malloc(most * sizeof(*ret->ends)) };
        if (ret->ends == NULL)
                return -ENOMEM;
        add_pods(ret, ledger, now_usec);
        add_leases(ret, ledger, now_usec);
        qsort(ret->ends, ret->count, sizeof(ret->ends[0]), by_time);
        return 0;
}

void play_finish(struct play *play)
{
        free(play->ends);
        *play = (struct play){ 0 };
}

uint64_t play_next(const struct play *play)
{
        return play->gone < play->count ? play->ends[play->gone].usec : UINT64_MAX;
}

void play_advance(struct play *play, uint64_t usec)
{
        struct ledger *ledger = cluster_ledger(play->cluster);

        for (; play_next(play) <= usec && play->gone < play->count; play->gone++) {
                struct ledger_pod *pod = play->ends[play->gone].pod;

                if (pod == NULL)
                        continue;
                pod->ended = true; /* nor does it wait */
                ledger_pods_detach(ledger, pod);
        }
        (void) gang_expire(ledger, cluster_rules(play->cluster), usec);
}
