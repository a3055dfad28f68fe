/* The pods that wait, judged by a child: a line a reason, then a line a pod that is to be told. */
#include "scheduler-extender/waiting_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/loop.h"
#include "io/snapshot.h"
#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/explain/tally.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/pod_request.h"

#define LOOK_USEC_MAX UINT64_C(30000000)
#define TELL_USEC     UINT64_C(300000000) /* of one pod once in so long */

static int by_age(const void *a, const void *b)
{
        const struct ledger_pod *x = *(struct ledger_pod *const *) a, *y = *(struct ledger_pod *const *) b;

        if (x->created_usec != y->created_usec)
                return x->created_usec < y->created_usec ? -1 : 1;
        return strcmp(x->key, y->key);
}

/* Oldest first. */
static size_t collect(const struct ledger *ledger, struct ledger_pod **pods)
{
        size_t count = 0;

        for (struct ledger_pod *pod = ledger->pending; pod != NULL; pod = pod->next_pending)
                if (!pod->ended && !pod->deleting && !pod->request.gated && request_chips(&pod->request) > 0)
                        pods[count++] = pod;
        qsort(pods, count, sizeof(pods[0]), by_age);
        return count < WAITING_EVENTS_JUDGED ? count : WAITING_EVENTS_JUDGED;
}

/* Return: false: it asks for no chips. */
static bool judge(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec, enum reason *ret)
{
        struct pod_request pod_request;
        struct tally tally;
        bool judged = pod_request_begin_pod(cluster, pod, now_usec, false, &pod_request, NULL) == 0 &&
                      pod_request.request.item_count > 0;

        if (judged) {
                pod_request.context.unfiltered = true;
                tally_nodes(&pod_request.context, &tally);
                *ret = tally_top(&tally);
        }
        pod_request_end(cluster, &pod_request);
        return judged;
}

/* The words of explain, and the cheapest remedy. */
static void put_sentence(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec,
                         struct text *ret)
{
        json_t *explained = explain_pod(cluster, pod, now_usec, 0, NULL);
        const json_t *remedy = json_array_get(json_object_get(explained, "remedies"), 0);
        const char *summary = json_string_value(json_object_get(explained, "summary")),
                   *message = json_string_value(json_object_get(remedy, "message")),
                   *effect = json_string_value(json_object_get(remedy, "takesEffect"));

        if (summary != NULL)
                text_printf(ret, "%s\t%s%s%s%s%s%s\n", pod->key, summary,
                            message == NULL ? "" : "; what helps: ", message == NULL ? "" : message,
                            message == NULL ? "" : " (takes effect ", message == NULL ? "" : effect,
                            message == NULL ? "" : ")");
        json_decref(explained);
}

static bool is_due(const struct extender *x, const struct ledger_pod *pod, uint64_t now_usec)
{
        return leader_leads(x->leader) &&
               now_usec >= pod->created_usec + (uint64_t) x->options->waiting_sec * 1000000 &&
               name_numbers_get(&x->waiting.told, pod->key) == 0;
}

/* In the child. */
static void work(void *userdata, struct text *ret)
{
        struct extender *x = userdata;
        const struct ledger *ledger = cluster_ledger(x->cluster);
        CLEANUP(free_p)
        struct ledger_pod **pods = malloc((ledger->pending_count + 1) * sizeof(struct ledger_pod *));
        CLEANUP(text_free) struct text told = { 0 };
        uint64_t counts[REASON_COUNT] = { 0 }, now_usec = extender_now(x);
        size_t count = pods == NULL ? 0 : collect(ledger, pods), told_count = 0;

        for (size_t i = 0; i < count; i++) {
                enum reason reason;

                if (!judge(x->cluster, pods[i], now_usec, &reason))
                        continue;
                counts[reason]++;
                if (reason == REASON_NONE || told_count == WAITING_EVENTS_TOLD ||
                    !is_due(x, pods[i], now_usec))
                        continue;
                put_sentence(x->cluster, pods[i], now_usec, &told);
                told_count++;
        }
        for (size_t i = 0; i < REASON_COUNT; i++)
                text_printf(ret, "%llu\n", (unsigned long long) counts[i]);
        text_append(ret, told.data == NULL ? "" : told.data);
        ret->failed = ret->failed || told.failed;
}

static void forget_told(struct name_numbers *told, uint64_t now_usec)
{
        for (struct name_map_entry *e = name_map_first(&told->map), *next; e != NULL; e = next) {
                next = name_map_next(&told->map, e);
                if (now_usec - name_numbers_get(told, e->key) >= TELL_USEC)
                        name_numbers_drop(told, e->key);
        }
}

/* "NAMESPACE/NAME\tsentence" */
static void tell(struct extender *x, char *line)
{
        char *sentence = strchr(line, '\t');

        if (sentence == NULL)
                return;
        *sentence++ = '\0';
        (void) name_numbers_set(&x->waiting.told, line, loop_now_usec(x->loop));
        if (leader_leads(x->leader))
                extender_event(x, STORE_POD, line, "Waiting", sentence);
}

static void looked(void *userdata, int result, char *text, size_t bytes)
{
        struct extender *x = userdata;
        char *rest = text, *line;
        size_t number = 0;

        (void) bytes;
        x->waiting.looking = false;
        while (result == 0 && (line = strsep(&rest, "\n")) != NULL) {
                if (number < REASON_COUNT)
                        (void) text_parse_uint64(line, &x->waiting.pods[number++]);
                else
                        tell(x, line);
        }
        free(text);
}

void waiting_events_look(struct extender *x)
{
        uint64_t now = loop_now_usec(x->loop), period = (uint64_t) x->options->waiting_sec * 1000000;
        bool first;

        if (period == 0 || x->waiting.looking || now < x->waiting.look_usec || !cluster_is_ready(x->cluster))
                return;
        first = x->waiting.look_usec == 0;
        x->waiting.look_usec = now + (period < LOOK_USEC_MAX ? period : LOOK_USEC_MAX);
        if (first) /* kube-scheduler has just begun, too */
                return;
        forget_told(&x->waiting.told, now);
        if (cluster_ledger(x->cluster)->pending_count == 0)
                memset(x->waiting.pods, 0, sizeof(x->waiting.pods));
        else
                x->waiting.looking = snapshot_run(x->snapshots, work, looked, x) == 0;
}

void waiting_events_free(struct extender *x)
{
        name_numbers_free(&x->waiting.told);
}
