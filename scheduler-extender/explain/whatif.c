/* The pods and jobs of a what-if, placed one after the other on a fork of the cluster, then let wait. */
#include "scheduler-extender/explain/whatif.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "scheduler-extender/decide/assignment.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/decide/score.h"
#include "scheduler-extender/explain/remedies.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_speeds.h"
#include "scheduler-extender/ledger/pod_request.h"

#define WHATIF_PODS_MAX 10000
#define BACKFILL_EACH   64 /* steps */

struct choice {
        struct ledger_node *node; /* NULL = none takes it */
        uint8_t score;
};

/* As kube-scheduler does: filter, then the highest score; equal ones by name. */
static int choose(const struct rules_context *ctx, struct choice *ret)
{
        uint32_t count = ctx->ledger->node_count, fitting = 0;
        CLEANUP(free_p) struct ledger_node **nodes = malloc((count + 1) * sizeof(struct ledger_node *));
        CLEANUP(free_p) struct score_tuple *tuples = malloc((count + 1) * sizeof(*tuples));
        CLEANUP(free_p) uint8_t *scores = malloc(count + 1);
        uint32_t best = 0;

        *ret = (struct choice){ 0 };
        if (nodes == NULL || tuples == NULL || scores == NULL)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++)
                if (rules_judge(ctx, ctx->ledger->nodes[i]) == REASON_NONE) {
                        nodes[fitting] = ctx->ledger->nodes[i];
                        score_tuple(ctx, nodes[fitting], &tuples[fitting]);
                        fitting++;
                }
        if (fitting == 0)
                return 0;
        if (score_rank(tuples, fitting, scores) < 0)
                return -ENOMEM;
        for (uint32_t i = 1; i < fitting; i++) {
                int order = score_compare(&tuples[i], &tuples[best]);

                if (order < 0 || (order == 0 && strcmp(nodes[i]->name, nodes[best]->name) < 0))
                        best = i;
        }
        *ret = (struct choice){ .node = nodes[best], .score = scores[best] };
        return 0;
}

/* Older pods of several chips that wait hold chips, here as in the extender. With many pods, it is looked at
 * anew only now and then: as the extender itself does when much changes at once. */
static void keep_backfills(struct cluster *c, uint64_t now_usec, size_t step)
{
        if (step < BACKFILL_EACH || step % BACKFILL_EACH == 0)
                (void) backfill_update(cluster_ledger(c), cluster_rules(c), now_usec);
}

static json_t *count_reasons(const struct rules_context *ctx)
{
        json_t *reasons = json_object();
        int counts[REASON_COUNT] = { 0 };

        for (uint32_t i = 0; i < ctx->ledger->node_count; i++)
                counts[rules_judge(ctx, ctx->ledger->nodes[i])]++;
        for (size_t i = REASON_NONE + 1; i < REASON_COUNT; i++)
                if (counts[i] > 0)
                        (void) json_object_set_new(reasons, reason_text((enum reason) i)->word,
                                                   json_integer(counts[i]));
        return reasons;
}

static int by_end(const void *a, const void *b)
{
        uint64_t x = backfill_pod_ends(*(struct ledger_pod *const *) a),
                 y = backfill_pod_ends(*(struct ledger_pod *const *) b);

        return (x > y) - (x < y);
}

static json_t *tell_waiting(struct cluster *c, struct pod_request *pod_request, const struct ledger_pod *pod)
{
        return json_pack("{s:s, s:n, s:i, s:n, s:s, s:o, s:o}", "pod", pod->key, "node", "score", 0, "when",
                         "message", "no node takes it, and no known end of other pods changes that",
                         "reasons", count_reasons(&pod_request->context), "missing",
                         remedies_find(c, pod_request));
}

static int place(struct cluster *c, struct ledger_pod *pod, uint64_t now_usec, json_t *placements,
                 int *placed, struct err *err)
{
        struct ledger_pod_part parts[LEDGER_POD_PARTS_MAX];
        struct pod_request pod_request;
        struct choice choice;
        size_t part_count = 0;
        int r = pod_request_begin_pod(c, pod, now_usec, true, &pod_request, err);

        pod_request.context.unfiltered = true;
        if (r == 0)
                r = choose(&pod_request.context, &choice);
        if (r == 0 && choice.node == NULL) {
                (void) json_array_append_new(placements, tell_waiting(c, &pod_request, pod));
        } else if (r == 0) {
                if (pod_request.request.item_count > 0)
                        part_count = score_parts(&pod_request.context, choice.node, parts);
                r = ledger_pods_assume(cluster_ledger(c), pod, choice.node, parts, part_count);
                (*placed)++;
                (void) json_array_append_new(
                        placements, json_pack("{s:s, s:s, s:i, s:s, s:s, s:{}, s:[]}", "pod", pod->key,
                                              "node", choice.node->name, "score", (int) choice.score, "when",
                                              "now", "message", "placed", "reasons", "missing"));
        }
        pod_request_end(c, &pod_request);
        if (r == 0)
                keep_backfills(c, now_usec, json_array_size(placements));
        return r < 0 ? err_set(err, r, "no memory") : 0;
}

/* What is asked about and waits, with its place in the answer. */
struct waiting {
        struct ledger_pod *pod;
        json_t *answer; /* borrowed */
};

static void start_at(struct cluster *c, struct waiting *waiting, uint64_t at_usec)
{
        struct ledger_pod_part parts[LEDGER_POD_PARTS_MAX];
        struct pod_request pod_request;
        struct choice choice = { 0 };
        char when[TIMESTAMP_BYTES];

        int r = pod_request_begin_pod(c, waiting->pod, at_usec, true, &pod_request, NULL);

        pod_request.context.unfiltered = true;
        if (r == 0 && choose(&pod_request.context, &choice) == 0 && choice.node != NULL &&
            ledger_pods_assume(cluster_ledger(c), waiting->pod, choice.node, parts,
                               score_parts(&pod_request.context, choice.node, parts)) == 0) {
                (void) timestamp_format(at_usec, when);
                (void) json_object_set_new(waiting->answer, "when", json_string(when));
                (void) json_object_set_new(waiting->answer, "message", json_string("no node takes it now"));
                waiting->pod = NULL; /* it has started */
        }
        pod_request_end(c, &pod_request);
}

/* Pods end when they say, and those that wait start in the order given, as soon as they fit; nobody else
 * comes. */
static void let_time_pass(struct cluster *c, uint64_t now_usec, struct waiting *waiting, size_t waiting_count)
{
        struct ledger *ledger = cluster_ledger(c);
        CLEANUP(free_p)
        struct ledger_pod **ends = malloc((ledger->pod_count + 1) * sizeof(struct ledger_pod *));
        size_t count = 0, left = waiting_count;

        if (ends == NULL || waiting_count == 0)
                return;
        for (uint32_t i = 0; i < ledger->pod_slot_count; i++)
                if (ledger->pod_slots[i] != NULL && ledger->pod_slots[i]->node != NULL &&
                    backfill_pod_ends(ledger->pod_slots[i]) != UINT64_MAX)
                        ends[count++] = ledger->pod_slots[i];
        qsort(ends, count, sizeof(ends[0]), by_end);
        for (size_t gone = 0; gone < count && left > 0;) {
                uint64_t end = backfill_pod_ends(ends[gone]), at = end > now_usec ? end : now_usec;

                for (; gone < count && backfill_pod_ends(ends[gone]) <= end; gone++) {
                        ledger_pods_detach(ledger, ends[gone]);
                        ends[gone]->ended = true; /* nor does it wait */
                }
                (void) gang_expire(ledger, cluster_rules(c), at);
                keep_backfills(c, at, gone);
                left = 0;
                for (size_t i = 0; i < waiting_count; i++) {
                        if (waiting[i].pod != NULL)
                                start_at(c, &waiting[i], at);
                        left += waiting[i].pod != NULL;
                }
        }
}

/* The pods of the answers that have no node. */
static int tell_when(struct cluster *c, uint64_t now_usec, json_t *placements)
{
        CLEANUP(free_p)
        struct waiting *waiting = calloc(json_array_size(placements) + 1, sizeof(*waiting));
        size_t count = 0;

        if (waiting == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < json_array_size(placements); i++) {
                json_t *answer = json_array_get(placements, i);
                struct json_field at = json_field_root(answer);
                const char *key = "", *name;
                char namespace_[256];

                (void) json_field_string(&at, "pod", &key, NULL);
                if (json_field_get(&at, "node").value != NULL)
                        continue;
                name = store_key_split(key, namespace_);
                waiting[count].pod = ledger_pods_find(cluster_ledger(c), namespace_, name);
                waiting[count].answer = answer;
                count += waiting[count].pod != NULL;
        }
        let_time_pass(c, now_usec, waiting, count);
        return 0;
}

static json_t *items_of(const json_t *body, json_t **owned)
{
        struct json_field root = json_field_root(body), items = json_field_get(&root, "pods");

        if (items.value == NULL)
                items = json_field_get(&root, "items");
        if (items.value != NULL || json_field_get(&root, "kind").value == NULL)
                return (json_t *) items.value;
        *owned = json_array();
        (void) json_array_append(*owned, (json_t *) body);
        return *owned;
}

static int drop_pods(struct ledger *ledger, const struct json_field *keys, struct err *err)
{
        for (size_t i = 0; i < json_field_count(keys); i++) {
                const char *key = json_string_value(json_array_get(keys->value, i));
                const char *name;
                char namespace_[256];

                if (key == NULL)
                        return err_set(err, -EBADMSG, "withoutPods[%zu]: must be \"NAMESPACE/NAME\"", i);
                name = store_key_split(key, namespace_);
                if (strchr(key, '/') == NULL)
                        (void) text_copy(namespace_, sizeof(namespace_), "default");
                if (ledger_pods_find(ledger, namespace_, name) == NULL)
                        return err_set(err, -EBADMSG, "withoutPods[%zu]: there is no pod '%s'", i, key);
                ledger_pods_drop(ledger, namespace_, name);
        }
        return 0;
}

static int drop_nodes(struct ledger *ledger, const struct json_field *names, struct err *err)
{
        for (size_t i = 0; i < json_field_count(names); i++) {
                const char *name = json_string_value(json_array_get(names->value, i));

                if (name == NULL || ledger_nodes_find(ledger, name, strlen(name)) == NULL)
                        return err_set(err, -EBADMSG, "removeNodes[%zu]: there is no node '%s'", i,
                                       name == NULL ? "?" : name);
                ledger_nodes_drop_inventory(ledger, name);
                ledger_nodes_drop(ledger, name);
        }
        return 0;
}

static int change_nodes(struct cluster *c, const json_t *body, struct err *err)
{
        struct json_field root = json_field_root(body), add, remove, without;
        int r;

        if (json_field_array(&root, "addNodes", WHATIF_PODS_MAX, &add, err) < 0 ||
            json_field_array(&root, "removeNodes", WHATIF_PODS_MAX, &remove, err) < 0 ||
            json_field_array(&root, "withoutPods", WHATIF_PODS_MAX, &without, err) < 0)
                return -EBADMSG;
        r = drop_pods(cluster_ledger(c), &without, err);
        if (r == 0)
                r = drop_nodes(cluster_ledger(c), &remove, err);
        for (size_t i = 0; i < json_field_count(&add) && r == 0; i++) {
                r = cluster_take(c, json_array_get(add.value, i), err);
                if (r < 0)
                        (void) err_wrap(err, r, "addNodes[%zu]", i);
        }
        return r;
}

/* A pod as the request tells it, pending and with a name of its own. */
static struct ledger_pod *admit(struct cluster *c, const json_t *pod, size_t i, struct err *err)
{
        struct json_field root = json_field_root(pod), metadata = json_field_get(&root, "metadata");
        const char *name = "", *namespace_ = "default";
        CLEANUP(free_p) char *made_up = NULL;
        json_t *copy = json_deep_copy(pod);
        struct ledger_pod *admitted = NULL;
        int r = 0;

        if (copy == NULL)
                return NULL;
        (void) json_object_del(copy, "status");
        (void) json_object_del(json_object_get(copy, "spec"), "nodeName");
        (void) json_object_set_new(copy, "kind", json_string("Pod"));
        if (json_field_string(&metadata, "name", &name, err) == JSON_FIELD_ABSENT &&
            asprintf(&made_up, "whatif-%zu", i) > 0) {
                name = made_up;
                (void) json_object_set_new(json_object_get(copy, "metadata"), "name", json_string(name));
        }
        (void) json_field_string(&metadata, "namespace", &namespace_, NULL);
        ledger_pods_drop(cluster_ledger(c), namespace_, name);
        r = cluster_take(c, copy, err);
        if (r == 0)
                admitted = ledger_pods_find(cluster_ledger(c), namespace_, name);
        json_decref(copy);
        return admitted;
}

/* A pod of a TrainingJob, with so many chips of a resource, and as urgent as the job. */
static struct ledger_pod *admit_member(struct cluster *c, const struct job *job, const char *name,
                                       const char *resource, uint32_t chips, struct err *err)
{
        char full[JOB_NAME_BYTES + 64], count[16];
        json_t *object;
        struct ledger_pod *pod;

        (void) text_format(full, sizeof(full), "%s-%s", job->name, name);
        (void) text_format(count, sizeof(count), "%u", chips);
        object = json_pack("{s:{s:s, s:s, s:s, s:{s:s, s:s, s:s*}}, s:{s:s*, s:[{s:s, s:{s:{s:s}}}]}}",
                           "metadata", "name", full, "namespace",
                           job->namespace_[0] == '\0' ? "default" : job->namespace_, "uid", full, "labels",
                           POD_LABEL_JOB, job->name, POD_LABEL_URGENCY, job_urgency_names[job->urgency],
                           POD_LABEL_PREEMPTIBLE, job->preemptible ? "true" : NULL, "spec",
                           "priorityClassName", job->priority_class[0] != '\0' ? job->priority_class : NULL,
                           "containers", "name", "worker", "resources", "limits", resource, count);
        pod = object == NULL ? NULL : admit(c, object, 0, err);
        json_decref(object);
        return pod;
}

static void add_share(json_t *answer, const struct batch_cut_share *share,
                      const struct chip_speed_verdict *verdict)
{
        (void) json_object_set_new(answer, "batch", json_integer((json_int_t) share->batch));
        (void) json_object_set_new(answer, "speedSource", json_string(chip_speed_names[verdict->source]));
        (void) json_object_set_new(answer, "precision",
                                   verdict->precision == CHIP_SPEED_NO_PRECISION
                                           ? json_null()
                                           : json_string(chip_speed_precision_names[verdict->precision]));
}

/* What people have to be told of the speeds behind a job's shares; null where there is nothing. */
static json_t *remark_on(const struct symbols *symbols, const struct assignment *assignment,
                         const struct job *job, const struct chip_speed_verdict *verdict)
{
        const struct assignment_part *lacking = &assignment->parts[verdict->lacking];
        char sentence[CHIP_SPEED_REMARK_BYTES];
        const char *word;
        uint64_t ranks = 0;

        for (uint32_t i = 0; i < assignment->count; i++)
                ranks += assignment->parts[i].server ? 0 : assignment->parts[i].ranks;
        if (ranks < 2 || !job_shares_follow_speeds(job))
                return json_null();
        word = chip_speed_remark(verdict, ledger_speeds_device(symbols, lacking->group), lacking->node->name,
                                 sentence);
        return word == NULL ? json_null() : json_sprintf("%s: %s", word, sentence);
}

/* A pod for each device group, where the controller would put it. */
static int place_parts(struct cluster *c, const struct open_groups_claim *claim,
                       const struct assignment *assignment, json_t *placements, int *placed, struct err *err)
{
        CLEANUP(free_p) struct batch_cut_share *shares = calloc(assignment->count + 1, sizeof(*shares));
        const struct symbols *symbols = &cluster_ledger(c)->symbols;
        struct chip_speed_verdict verdict;
        int r;

        if (shares == NULL)
                return err_set(err, -ENOMEM, "no memory for the shares");
        r = assignment_cut(claim, assignment, shares, &verdict, err);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < assignment->count; i++) {
                const struct assignment_part *part = &assignment->parts[i];
                struct ledger_node *node = cluster_ledger(c)->nodes[part->node->index];
                struct ledger_pod_part chips = { .group = part->group->name, .chips = part->chips };
                char name[32], said[DEVICE_GROUP_BYTES + 32];
                struct ledger_pod *pod;
                json_t *answer;

                (void) (part->server ? text_format(name, sizeof(name), "s-%u", i)
                                     : text_format(name, sizeof(name), "w%u-%u", part->entry, i));
                pod = admit_member(c, claim->job.job, name, symbols_name(symbols, part->group->resource),
                                   part->chips, err);
                if (pod == NULL || ledger_pods_assume(cluster_ledger(c), pod, node, &chips, 1) < 0)
                        return err_set(err, -ENOMEM, "no memory");
                (void) text_format(said, sizeof(said), "%u chips of group %s", part->chips,
                                   symbols_name(symbols, part->group->name));
                (*placed)++;
                answer = json_pack("{s:s, s:s, s:i, s:s, s:s, s:{}, s:[]}", "pod", pod->key, "node",
                                   node->name, "score", SCORE_BEST, "when", "now", "message", said, "reasons",
                                   "missing");
                if (!part->server) {
                        add_share(answer, &shares[i], &verdict);
                        (void) json_object_set_new(answer, "remark",
                                                   remark_on(symbols, assignment, claim->job.job, &verdict));
                }
                (void) json_array_append_new(placements, answer);
        }
        return 0;
}

/* What the cluster has most of among the chips that the role takes. */
static const char *resource_for(const struct ledger *ledger, const struct job_role *role)
{
        uint32_t resource = gang_members_resource(ledger, role);

        return resource == 0 ? "remuda.dev/no-such-runtime" : symbols_name(&ledger->symbols, resource);
}

/* The job waits as a whole: as one pod for the role that lacks chips. */
static int tell_job_waits(struct cluster *c, const struct job *job, const struct job_role *role,
                          uint64_t now_usec, json_t *placements, const char *why, struct err *err)
{
        struct pod_request pod_request;
        struct ledger_pod *pod =
                admit_member(c, job, role == &job->servers ? "servers" : "workers",
                             resource_for(cluster_ledger(c), role), (uint32_t) role->min_chips, err);
        json_t *answer;
        int r = pod == NULL ? -EBADMSG : pod_request_begin_pod(c, pod, now_usec, false, &pod_request, err);

        if (r < 0)
                return r;
        pod_request.context.unfiltered = true;
        answer = tell_waiting(c, &pod_request, pod);
        (void) json_object_set_new(answer, "message", json_string(why));
        (void) json_array_append_new(placements, answer);
        pod_request_end(c, &pod_request);
        return 0;
}

/* All of a job is placed, or nothing. */
static int place_job(struct cluster *c, const json_t *object, uint64_t now_usec, json_t *placements,
                     int *placed, struct err *err)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata");
        const char *name = "", *namespace_ = "default";
        struct open_groups_claim claim = { .rules = cluster_rules(c), .now_usec = now_usec };
        struct assignment assignment;
        struct err missing = { 0 };
        const struct ledger_job *job;
        int r = cluster_take(c, object, err);

        if (r < 0)
                return r;
        (void) json_field_string(&metadata, "name", &name, NULL);
        (void) json_field_string(&metadata, "namespace", &namespace_, NULL);
        job = ledger_jobs_find(cluster_ledger(c), namespace_, name);
        if (job == NULL || job->training == NULL)
                return err_set(err, -EBADMSG, "the TrainingJob was not understood");
        /* it takes the place of the one of its name, as a pod does: with all that this one has */
        (void) ledger_jobs_set_plan(cluster_ledger(c), namespace_, name, NULL, 0);
        while (job->pods != NULL)
                ledger_pods_drop(cluster_ledger(c), namespace_, strchr(job->pods->key, '/') + 1);
        claim.job = (struct batch_cut_job){ .ledger = cluster_ledger(c), .job = job->training };
        claim.job.programs = cluster_programs(c, &claim.job.program_count);
        claim.ledger_job = job;
        claim.emergency = cluster_is_emergency(c, namespace_, job->training);
        r = assignment_make(&claim, WHATIF_PODS_MAX, &assignment, &missing);
        if (r == 0)
                r = place_parts(c, &claim, &assignment, placements, placed, err);
        else if (r == -EBUSY && assignment.lacking != NULL)
                r = tell_job_waits(c, job->training, assignment.lacking, now_usec, placements, missing.msg,
                                   err);
        else
                r = err_set(err, r, "%s", missing.msg);
        assignment_free(&assignment);
        if (r == 0)
                keep_backfills(c, now_usec, json_array_size(placements));
        return r;
}

static int place_all(struct cluster *c, const json_t *items, uint64_t now_usec, json_t *placements,
                     int *placed, struct err *err)
{
        for (size_t i = 0; i < json_array_size(items); i++) {
                const json_t *item = json_array_get(items, i);
                const char *kind = json_string_value(json_object_get(item, "kind"));
                struct ledger_pod *pod;
                int r;

                if (kind != NULL && strcmp(kind, "TrainingJob") == 0) {
                        r = place_job(c, item, now_usec, placements, placed, err);
                } else if (kind != NULL && strcmp(kind, "Pod") != 0) {
                        r = err_set(err, -EBADMSG, "kind: must be Pod or TrainingJob, not '%.40s'", kind);
                } else {
                        pod = admit(c, item, i, err);
                        r = pod == NULL ? -EBADMSG : place(c, pod, now_usec, placements, placed, err);
                }
                if (r < 0)
                        return err_wrap(err, r, "pods[%zu]", i);
        }
        return 0;
}

int whatif(struct cluster *cluster, const json_t *body, uint64_t now_usec, json_t **ret, struct err *err)
{
        struct cluster *fork;
        json_t *placements = json_array(), *owned = NULL, *items = items_of(body, &owned);
        int placed = 0, r = 0;

        if (!json_is_array(items) || json_array_size(items) > WHATIF_PODS_MAX)
                r = err_set(err, -EBADMSG, "pods: must be a list of at most %d pods", WHATIF_PODS_MAX);
        fork = r < 0 ? NULL : cluster_fork(cluster);
        if (r == 0 && fork == NULL)
                r = err_set(err, -ENOMEM, "no memory for a copy of the ledger");
        if (r == 0)
                r = change_nodes(fork, body, err);
        if (r == 0) {
                keep_backfills(fork, now_usec, 0);
                r = place_all(fork, items, now_usec, placements, &placed, err);
        }
        if (r == 0)
                r = tell_when(fork, now_usec, placements);
        cluster_close(fork);
        json_decref(owned);
        if (r < 0) {
                json_decref(placements);
                return r;
        }
        *ret = json_pack("{s:o, s:i, s:i}", "placements", placements, "placed", placed, "waiting",
                         (int) json_array_size(placements) - placed);
        return 0;
}
