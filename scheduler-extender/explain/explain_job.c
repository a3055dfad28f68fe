/* A job's places and pods, counted by where they are; its verdict is that of the member that waits. */
#include "scheduler-extender/explain/explain_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/spec/job.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/explain/explain.h"
#include "scheduler-extender/explain/explain_held.h"
#include "scheduler-extender/explain/whatif.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define EXAMPLES 3

enum state { RUNS, WAITS, GATED, GOES, ENDED, STATES };

static const char *const state_names[STATES] = { "runs", "waits", "gated", "goes", "ended" };

static enum state state_of(const struct ledger_pod *pod)
{
        if (pod->ended)
                return ENDED;
        if (pod->deleting)
                return GOES;
        if (pod->node != NULL)
                return RUNS;
        return request_is_held_back(&pod->request) ? GATED : WAITS;
}

static const char *node_of(const struct ledger_pod *pod)
{
        return pod->node == NULL ? "" : pod->node->name;
}

/* By state, then by node. */
static int compare_places(const struct ledger_pod *a, const struct ledger_pod *b)
{
        return state_of(a) != state_of(b) ? (state_of(a) < state_of(b) ? -1 : 1)
                                          : strcmp(node_of(a), node_of(b));
}

static int compare_pods(const void *a, const void *b)
{
        const struct ledger_pod *x = *(struct ledger_pod *const *) a, *y = *(struct ledger_pod *const *) b;
        int order = compare_places(x, y);

        return order != 0 ? order : strcmp(x->name, y->name);
}

struct members {
        const struct ledger_pod **pods; /* in order; owned */
        size_t count, in[STATES];
};

static int members_list(const struct ledger_job *job, struct members *ret)
{
        size_t count = 0;

        for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                count++;
        ret->pods = calloc(count + 1, sizeof(*ret->pods));
        if (ret->pods == NULL)
                return -ENOMEM;
        for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job) {
                ret->pods[ret->count++] = pod;
                ret->in[state_of(pod)]++;
        }
        qsort(ret->pods, ret->count, sizeof(*ret->pods), compare_pods);
        return 0;
}

/* The first that waits for chips, or that is on no node at all; NULL = there is none. */
static const struct ledger_pod *first_waiting(const struct members *m)
{
        const struct ledger_pod *first = NULL;

        for (size_t i = 0; i < m->count; i++) {
                enum state state = state_of(m->pods[i]);

                if (ledger_pods_waits(m->pods[i]))
                        return m->pods[i];
                if (first == NULL && (state == WAITS || state == GATED))
                        first = m->pods[i];
        }
        return first;
}

static json_t *tell_members(const struct members *m)
{
        json_t *groups = json_array();

        for (size_t i = 0, next; i < m->count; i = next) {
                json_t *names = json_array();
                uint64_t chips = 0;

                for (next = i; next < m->count && compare_places(m->pods[i], m->pods[next]) == 0; next++) {
                        chips += request_chips(&m->pods[next]->request);
                        if (next - i < EXAMPLES)
                                (void) json_array_append_new(names, json_string(m->pods[next]->name));
                }
                (void) json_array_append_new(groups, json_pack("{s:s, s:s, s:i, s:I, s:o}", "state",
                                                               state_names[state_of(m->pods[i])], "node",
                                                               node_of(m->pods[i]), "count", (int) (next - i),
                                                               "chips", (json_int_t) chips, "pods", names));
        }
        return groups;
}

/* Adds a place to the row of its node, which is made where there is none. */
static void add_place(json_t *rows, const char *node, uint32_t chips, bool leased)
{
        json_t *row = NULL;

        for (size_t i = 0; i < json_array_size(rows) && row == NULL; i++)
                if (strcmp(json_string_value(json_object_get(json_array_get(rows, i), "node")), node) == 0)
                        row = json_array_get(rows, i);
        if (row == NULL) {
                row = json_pack("{s:s, s:i, s:i, s:i}", "node", node, "places", 0, "chips", 0, "leased", 0);
                (void) json_array_append_new(rows, row);
        }
        (void) json_integer_set(json_object_get(row, "places"),
                                json_integer_value(json_object_get(row, "places")) + 1);
        (void) json_integer_set(json_object_get(row, "chips"),
                                json_integer_value(json_object_get(row, "chips")) + chips);
        (void) json_integer_set(json_object_get(row, "leased"),
                                json_integer_value(json_object_get(row, "leased")) + (leased ? chips : 0));
}

static json_t *tell_plan(const struct ledger_job *job)
{
        json_t *rows = json_array();

        for (size_t i = 0; i < job->place_count; i++)
                add_place(rows, job->places[i].node, request_chips(&job->places[i].request),
                          job->places[i].slot != NULL);
        for (const struct ledger_job_slot *slot = job->slots; slot != NULL && job->place_count == 0;
             slot = slot->next_in_job)
                add_place(rows, slot->node->name, request_chips(&slot->request), true);
        return rows;
}

/* "2 of 3 pods are there: 1 runs, 1 waits". */
static void put_count(const struct ledger_job *job, const struct members *m, struct text *ret)
{
        size_t wanted = job->place_count, live = m->count - m->in[ENDED], told = 0;

        for (size_t i = 0; i < m->count; i++)
                if (wanted < m->pods[i]->request.gang_size)
                        wanted = m->pods[i]->request.gang_size;
        if (wanted > live)
                text_printf(ret, "%zu of %zu pods are there", live, wanted);
        else
                text_printf(ret, "%zu pod%s", m->count, m->count == 1 ? "" : "s");
        for (size_t i = 0; i < STATES; i++)
                if (m->in[i] > 0)
                        text_printf(ret, "%s%zu %s", told++ == 0 ? ": " : ", ", m->in[i], state_names[i]);
}

/* What is said of the member stands for the job; its own name and chips are in `members`. */
static int explain_member(struct cluster *cluster, const struct ledger_pod *pod, uint64_t now_usec,
                          unsigned flags, json_t *reply, struct text *summary, struct err *err)
{
        json_t *said = explain_pod(cluster, pod, now_usec, flags, err);
        const char *sentence = json_string_value(json_object_get(said, "summary"));

        if (said == NULL)
                return -ENOMEM;
        text_printf(summary, "; %s: %s", pod->name, sentence == NULL ? "" : sentence);
        (void) json_object_del(said, "chips");
        (void) json_object_del(said, "summary");
        (void) json_object_update(reply, said);
        json_decref(said);
        return 0;
}

/* Nothing is decided yet, and no pod is there: as if it came now. */
static int explain_unplaced(struct cluster *cluster, const struct ledger_job *job, uint64_t now_usec,
                            json_t *reply, struct text *summary, struct err *err)
{
        char namespace_[256];
        const char *name = store_key_split(job->key, namespace_), *message;
        json_t *answer = NULL, *first;
        bool fits;
        int r = whatif_job(cluster, namespace_, name, now_usec, &answer, err);

        if (r < 0)
                return r;
        first = json_array_get(json_object_get(answer, "placements"), 0);
        message = json_string_value(json_object_get(first, "message"));
        fits = json_integer_value(json_object_get(answer, "waiting")) == 0;
        text_printf(summary, "it has no plan and no pods; %s",
                    fits || message == NULL ? "one like it fits now" : message);
        if (fits && job->words != NULL && job->words->reason[0] != '\0')
                text_printf(summary, "; its status says %s: %s", job->words->reason, job->words->message);
        (void) json_object_set_new(reply, "verdict", json_string(fits ? "fits" : "waits"));
        if (!fits)
                (void) json_object_set(reply, "remedies", json_object_get(first, "missing"));
        json_decref(answer);
        return 0;
}

static const char *kind_of(const struct ledger_job *job)
{
        if (job->pods != NULL && job->pods->request.group != REQUEST_GROUP_NONE)
                return "group";
        return job->training != NULL ? "TrainingJob" : "gang";
}

json_t *explain_job(struct cluster *cluster, const struct ledger_job *job, uint64_t now_usec, unsigned flags,
                    struct err *err)
{
        CLEANUP(text_free) struct text summary = { 0 };
        struct members members = { 0 };
        json_t *reply = json_pack("{s:s, s:s, s:s, s:o, s:[], s:[]}", "job", job->key, "kind", kind_of(job),
                                  "verdict", "fits", "plan", tell_plan(job), "reasons", "remedies");
        const struct ledger_pod *waiting;
        int r = members_list(job, &members);

        if (r < 0 || reply == NULL)
                r = err_set(err, -ENOMEM, "no memory");
        waiting = r < 0 ? NULL : first_waiting(&members);
        if (r == 0)
                (void) json_object_set_new(reply, "members", tell_members(&members));
        if (r == 0 && (members.count > 0 || job->place_count > 0))
                put_count(job, &members, &summary);
        if (r == 0 && explain_held_is(job))
                r = explain_held(cluster, job, now_usec, reply, &summary, err);
        else if (waiting != NULL)
                r = explain_member(cluster, waiting, now_usec, flags, reply, &summary, err);
        else if (r == 0 && members.count == 0 && job->place_count == 0 && job->training != NULL)
                r = explain_unplaced(cluster, job, now_usec, reply, &summary, err);
        if (r == 0)
                (void) json_object_set_new(reply, "summary",
                                           json_string(summary.data == NULL ? "" : summary.data));
        free(members.pods);
        if (r < 0) {
                json_decref(reply);
                return NULL;
        }
        return reply;
}
