/* A round of dry runs, then the evictions. Pods are found again by name and uid when an answer comes. */
#include "scheduler-extender/evict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/reserve.h"
#include "store/budgets.h"

#define TOLD_MAX 16 /* emergencies that are told of one refusal */

struct round;

struct leaver {
        struct round *round;
        char *namespace_, *name, *uid; /* owned */
        bool refused;
};

/* Freed by its last answer. */
struct round {
        struct extender *x;
        size_t count, open; /* open: answers to come */
        size_t refused;
        size_t emergency_count;         /* after the others in `leavers`; uid NULL = a TrainingJob's plan */
        bool judged, evicting, closing; /* judged: its pods together, too */
        struct leaver leavers[];
};

static void round_free(struct round *round)
{
        for (size_t i = 0; i < round->count + round->emergency_count; i++) {
                free(round->leavers[i].namespace_);
                free(round->leavers[i].name);
                free(round->leavers[i].uid);
        }
        free(round);
}

/* The pod, if it is still there. */
static struct ledger_pod *pod_of(const struct leaver *leaver)
{
        struct ledger_pod *pod =
                ledger_pods_find(cluster_ledger(leaver->round->x->cluster), leaver->namespace_, leaver->name);

        return pod != NULL && strcmp(pod->uid, leaver->uid) == 0 ? pod : NULL;
}

/* Those who wait for its chips are told who stands in the way, and why. */
static void tell_emergencies(struct extender *x, const char *reason, const char *sentence)
{
        size_t told = 0;

        for (const struct ledger_pod *pod = cluster_ledger(x->cluster)->pending;
             pod != NULL && told < TOLD_MAX; pod = pod->next_pending)
                if (pod->request.emergency && !pod->ended && !pod->deleting) {
                        extender_event(x, STORE_POD, pod->key, reason, sentence);
                        told++;
                }
}

/* @sentence: why the pod stays */
static void spare_pod(struct extender *x, struct ledger_pod *pod, const char *reason, const char *sentence)
{
        pod->spared_usec = extender_now(x);
        free(pod->spared_why);
        pod->spared_why = strdup(sentence);
        tell_emergencies(x, reason, sentence);
}

void evict_overdue(struct extender *x, struct ledger_pod *pod)
{
        char sentence[512];

        (void) text_format(sentence, sizeof(sentence),
                           "%s %s on node %s should have been gone %llu s ago, and its chips are not free: a "
                           "finalizer, its kubelet or a process keeps it; others are looked for",
                           ledger_pods_borrows(pod) ? "borrower" : "pod", pod->key, pod->node->name,
                           (unsigned long long) ((extender_now(x) - pod->deletion_usec) / 1000000));
        extender_log(x, LOG_WARNING, "overdue", "pod=%s node=%s", pod->key, pod->node->name);
        spare_pod(x, pod, "EvictionOverdue", sentence);
}

/* @which: what an administrator may delete */
static void spare(struct leaver *leaver, const char *why, const char *which)
{
        struct extender *x = leaver->round->x;
        struct ledger_pod *pod = pod_of(leaver);
        char sentence[512];

        leaver->refused = true;
        leaver->round->refused++;
        x->metrics.evictions_refused++;
        if (pod == NULL)
                return;
        (void) text_format(sentence, sizeof(sentence),
                           "%s %s may not be evicted: %s; it is asked again in a minute, or an administrator "
                           "deletes %s",
                           ledger_pods_borrows(pod) ? "borrower" : "pod", pod->key, why, which);
        pod->evicted_usec = 0;
        extender_log(x, LOG_WARNING, "spare", "pod=%s %s", pod->key, why);
        spare_pod(x, pod, "EvictionRefused", sentence);
}

/* It may have been deleted since the tries were sent, or have come to another place. */
static bool waits(const struct leaver *emergency)
{
        const struct ledger *ledger = cluster_ledger(emergency->round->x->cluster);
        const struct ledger_pod *pod;

        if (emergency->uid == NULL)
                return reserve_plan_waits(ledger_jobs_find(ledger, emergency->namespace_, emergency->name));
        pod = pod_of(emergency);
        return pod != NULL && ledger_pods_waits(pod);
}

static bool all_wait(const struct round *round)
{
        for (size_t i = 0; i < round->emergency_count; i++)
                if (!waits(&round->leavers[round->count + i]))
                        return false;
        return true;
}

static void ask_all(struct round *round);
static void judge_together(struct round *round);

static void end(struct round *round)
{
        struct extender *x = round->x;

        if (!round->closing && round->refused == 0 && !round->evicting && all_wait(round)) {
                if (round->judged)
                        ask_all(round);
                else
                        judge_together(round);
                return;
        }
        for (size_t i = 0; i < round->count && !round->closing && !round->evicting; i++) {
                struct ledger_pod *pod = pod_of(&round->leavers[i]);

                if (pod != NULL)
                        pod->evicted_usec = 0; /* nobody went */
        }
        if (!round->closing && (round->refused > 0 || !round->evicting))
                extender_think_again(x);
        round_free(round);
}

static bool is_refusal(int result)
{
        return result == -EBUSY      /* 429: a budget */
               || result == -EPERM   /* 403: an admission rule, or it is none of our rights */
               || result == -EAGAIN; /* 500 again and again: several budgets for one pod */
}

static void on_answer(void *userdata, int result, const char *sentence)
{
        struct leaver *leaver = userdata;
        struct round *round = leaver->round;
        struct extender *x = round->x;

        if (result == -ECANCELED || extender_is_closing(x))
                round->closing = true;
        else if (is_refusal(result))
                spare(leaver, sentence == NULL ? "" : sentence,
                      result == -EPERM ? "the pod" : "the budget or the pod");
        if (round->evicting) {
                x->metrics.evictions += result == 0;
                extender_log(x, result == 0 ? LOG_NOTICE : LOG_WARNING, "evict", "pod=%s/%s result=%d %s",
                             leaver->namespace_, leaver->name, result, sentence == NULL ? "" : sentence);
        }
        if (--round->open == 0)
                end(round);
}

static void on_refused(void *userdata, const char *namespace_, const char *name, const char *why)
{
        struct round *round = userdata;

        for (size_t i = 0; i < round->count && !extender_is_closing(round->x); i++)
                if (strcmp(round->leavers[i].namespace_, namespace_) == 0 &&
                    strcmp(round->leavers[i].name, name) == 0)
                        spare(&round->leavers[i], why, "the budget or the pod");
}

static void on_judged(void *userdata, int result, const char *sentence)
{
        struct round *round = userdata;

        if (result == -ECANCELED || extender_is_closing(round->x))
                round->closing = true;
        else if (result < 0)
                extender_log(round->x, LOG_WARNING, "budgets", "not read: result=%d %s", result, sentence);
        if (--round->open == 0)
                end(round);
}

/* Those of the i-th one's namespace, if it is the first of them. Return: how many. */
static size_t collect_namespace(const struct round *round, size_t i, const char **names)
{
        const char *namespace_ = round->leavers[i].namespace_;
        size_t count = 0;

        for (size_t k = 0; k < round->count; k++) {
                if (strcmp(round->leavers[k].namespace_, namespace_) != 0)
                        continue;
                if (k < i)
                        return 0;
                names[count++] = round->leavers[k].name;
        }
        return count;
}

/* Each of them may go by itself. */
static void judge_together(struct round *round)
{
        CLEANUP(free_p) const char **names = calloc(round->count, sizeof(*names));

        round->judged = true;
        round->open = 1; /* this one */
        for (size_t i = 0; i < round->count && names != NULL; i++) {
                size_t count = collect_namespace(round, i, names);

                if (count < 2)
                        continue;
                round->open++;
                budgets_judge(cluster_store(round->x->cluster), round->leavers[i].namespace_, names, count,
                              on_refused, on_judged, round);
        }
        if (--round->open == 0)
                end(round);
}

/* A try that came to no clear end stops nobody: the eviction itself is judged by the same budgets. */
static void ask_all(struct round *round)
{
        struct extender *x = round->x;

        round->evicting = true;
        round->open = round->count;
        for (size_t i = 0, count = round->count; i < count; i++) {
                struct leaver *leaver = &round->leavers[i];

                store_evict(cluster_store(x->cluster), leaver->namespace_, leaver->name, leaver->uid,
                            x->options->server.eviction_grace_sec, on_answer, leaver);
        }
}

static bool fill(struct leaver *leaver, struct round *round, const char *key, const char *uid)
{
        const char *name = strchr(key, '/') + 1;

        *leaver = (struct leaver){ .round = round,
                                   .namespace_ = strndup(key, (size_t) (name - key) - 1),
                                   .name = strdup(name),
                                   .uid = uid == NULL ? NULL : strdup(uid) };
        return leaver->namespace_ != NULL && leaver->name != NULL && (uid == NULL || leaver->uid != NULL);
}

void evict_all(struct extender *x, struct ledger_pod *const *pods, size_t count,
               const struct evict_for *emergencies, size_t emergency_count, uint64_t now_usec)
{
        struct round *round = NULL;
        bool good = true;

        if (count > 0)
                round = calloc(1, sizeof(*round) + (count + emergency_count) * sizeof(*round->leavers));
        if (round == NULL)
                return;
        round->x = x;
        round->count = count;
        round->emergency_count = emergency_count;
        for (size_t i = 0; i < count; i++)
                good = good && fill(&round->leavers[i], round, pods[i]->key, pods[i]->uid);
        for (size_t i = 0; i < emergency_count; i++)
                good = good &&
                       fill(&round->leavers[count + i], round, emergencies[i].key, emergencies[i].uid);
        if (!good) {
                round_free(round);
                return;
        }
        for (size_t i = 0; i < count; i++)
                pods[i]->evicted_usec = now_usec;
        round->open = count;
        for (size_t i = 0; i < count; i++) /* the answers come later */
                store_try_evict(cluster_store(x->cluster), round->leavers[i].namespace_,
                                round->leavers[i].name, round->leavers[i].uid, on_answer, &round->leavers[i]);
}
