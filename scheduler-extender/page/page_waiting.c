/* Pods that wait, each explained. */
#include "scheduler-extender/page/page_waiting.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/timestamp.h"
#include "io/clock.h"
#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/page/page_fleet.h"

static int compare_age(const void *a, const void *b)
{
        return ledger_pods_compare(*(const struct ledger_pod *const *) a,
                                   *(const struct ledger_pod *const *) b);
}

static struct ledger_pod **sorted_waiting(const struct ledger *ledger, size_t *ret_count)
{
        struct ledger_pod **pods = malloc((ledger->pending_count + 1) * sizeof(struct ledger_pod *));

        *ret_count = 0;
        for (struct ledger_pod *pod = ledger->pending; pods != NULL && pod != NULL; pod = pod->next_pending)
                if (ledger_pods_waits(pod))
                        pods[(*ret_count)++] = pod;
        if (*ret_count > 0)
                qsort(pods, *ret_count, sizeof(struct ledger_pod *), compare_age);
        return pods;
}

static void write_asked(struct json_writer *w, const struct ledger *ledger, const struct ledger_pod *pod)
{
        const struct request *request = &pod->request;

        json_writer_string(w, "pod", pod->key);
        page_fleet_write_time(w, "since", pod->created_usec);
        json_writer_uint64(w, "chips", request_chips(request));
        if (request->item_count > 0)
                json_writer_string(w, "resource", symbols_name(&ledger->symbols, request->items[0].resource));
        json_writer_string(w, "urgency", request->emergency ? "emergency" : "regular");
        if (pod->job == NULL)
                return;
        json_writer_string(w, "job", pod->job->key);
        if (request->gang_size > 1)
                json_writer_uint64(w, "gangSize", request->gang_size);
}

static void copy(struct json_writer *w, const struct json_field *from, const char *name)
{
        json_writer_word(w, name, json_field_word(from, name));
}

static void write_reasons(struct json_writer *w, const struct json_field *answer)
{
        struct json_field reasons = json_field_get(answer, "reasons");

        json_writer_open(w, "reasons", '[');
        for (size_t i = 0; i < json_field_count(&reasons); i++) {
                struct json_field reason = json_field_at(&reasons, i),
                                  examples = json_field_get(&reason, "examples"),
                                  example = json_field_at(&examples, 0);
                int64_t count = 0;

                (void) json_field_int64(&reason, "count", 0, UINT32_MAX, &count, NULL);
                json_writer_open(w, NULL, '{');
                json_writer_string(w, "word", json_field_word(&reason, "word"));
                json_writer_uint64(w, "count", (uint64_t) count);
                copy(w, &reason, "verdict");
                if (json_field_count(&examples) > 0) {
                        copy(w, &example, "node");
                        copy(w, &example, "message");
                }
                json_writer_close(w, '}');
        }
        json_writer_close(w, ']');
}

static void write_remedies(struct json_writer *w, const struct json_field *remedies)
{
        json_writer_open(w, "remedies", '[');
        for (size_t i = 0; i < json_field_count(remedies); i++) {
                struct json_field remedy = json_field_at(remedies, i);

                json_writer_open(w, NULL, '{');
                copy(w, &remedy, "who");
                copy(w, &remedy, "action");
                copy(w, &remedy, "message");
                copy(w, &remedy, "takesEffect");
                json_writer_close(w, '}');
        }
        json_writer_close(w, ']');
}

/* When chips that are held for it are all there: the soonest of its holds. */
static uint64_t held_until(const struct ledger *ledger, const struct ledger_pod *pod)
{
        uint64_t soonest = UINT64_MAX;

        for (uint32_t i = 0; i < ledger->node_count; i++)
                for (const struct ledger_backfill *hold = ledger->nodes[i]->backfills; hold != NULL;
                     hold = hold->next)
                        if (hold->pod == pod && hold->start_usec < soonest)
                                soonest = hold->start_usec;
        return soonest;
}

/* To wait is what costs nobody anything: tried on the ledger as the others are. */
static void write_start(struct json_writer *w, const struct ledger *ledger, const struct ledger_pod *pod,
                        const struct json_field *remedies, uint64_t now_usec)
{
        uint64_t usec = held_until(ledger, pod);

        for (size_t i = 0; i < json_field_count(remedies); i++) {
                struct json_field remedy = json_field_at(remedies, i);
                uint64_t effect = 0;

                if (strcmp(json_field_word(&remedy, "who"), "nobody") != 0)
                        continue;
                if (timestamp_parse(json_field_word(&remedy, "takesEffect"), &effect) == 0 && effect > 0)
                        page_fleet_write_time(w, "startsAt", effect);
                json_writer_string(w, "startsIf", json_field_word(&remedy, "message"));
                return;
        }
        if (usec == UINT64_MAX)
                return;
        page_fleet_write_time(w, "startsAt", usec > now_usec ? usec : now_usec);
        json_writer_string(w, "startsIf",
                           "chips are held for it: those who have them end by then, as far as they say");
}

static void write_pod(struct json_writer *w, struct cluster *cluster, const struct ledger_pod *pod,
                      uint64_t now_usec, bool tries)
{
        struct ledger *ledger = cluster_ledger(cluster);
        struct err err = { 0 };
        json_t *answer = explain_pod(cluster, pod, now_usec, tries ? 0 : EXPLAIN_REASONS_ALONE, &err);
        struct json_field root = json_field_root(answer), remedies = json_field_get(&root, "remedies");

        json_writer_open(w, NULL, '{');
        write_asked(w, ledger, pod);
        if (answer != NULL) {
                copy(w, &root, "summary");
                copy(w, &root, "verdict");
                copy(w, &root, "note");
                write_reasons(w, &root);
                if (tries)
                        write_remedies(w, &remedies);
                write_start(w, ledger, pod, &remedies, now_usec);
        }
        json_writer_close(w, '}');
        json_decref(answer);
}

void page_waiting_write(struct cluster *cluster, uint64_t now_usec, uint64_t at_usec, struct text *ret)
{
        struct json_writer w = { .text = ret, .compact = true };
        size_t count, shown = 0;
        CLEANUP(free_p) struct ledger_pod **pods = sorted_waiting(cluster_ledger(cluster), &count);
        uint64_t begin = clock_monotonic_usec(), took = 0;

        if (pods == NULL)
                ret->failed = true;
        json_writer_open(&w, NULL, '{');
        page_fleet_write_time(&w, "at", at_usec);
        json_writer_uint64(&w, "total", count);
        json_writer_open(&w, "pods", '[');
        while (pods != NULL && shown < count && shown < PAGE_WAITING_PODS_MAX &&
               took < PAGE_WAITING_REASONS_USEC) {
                write_pod(&w, cluster, pods[shown++], now_usec, took < PAGE_WAITING_REMEDIES_USEC);
                took = clock_monotonic_usec() - begin;
        }
        json_writer_close(&w, ']');
        json_writer_uint64(&w, "shown", shown);
        json_writer_close(&w, '}');
}
