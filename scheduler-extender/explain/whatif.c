/* The pods and jobs of a what-if, placed one after the other on a fork of the cluster, then let wait. */
#include "scheduler-extender/explain/whatif.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/decide/assignment.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/decide/score.h"
#include "scheduler-extender/explain/best_node.h"
#include "scheduler-extender/explain/play.h"
#include "scheduler-extender/explain/remedies.h"
#include "scheduler-extender/explain/tally.h"
#include "scheduler-extender/explain/whatif_change.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_speeds.h"
#include "scheduler-extender/ledger/pod_request.h"

#define WHATIF_PODS_MAX 10000
#define BACKFILL_EACH   64 /* steps */
#define REMEDIED_MAX    16 /* of those that wait, so many are told what would help */

/* Older pods of several chips that wait hold chips, here as in the extender. With many pods, it is looked at
 * anew only now and then: as the extender itself does when much changes at once. */
static void keep_backfills(struct cluster *c, uint64_t now_usec, size_t step)
{
        if (step < BACKFILL_EACH || step % BACKFILL_EACH == 0)
                backfill_renew(cluster_ledger(c), cluster_rules(c), now_usec);
}

static json_t *count_reasons(const struct tally *tally)
{
        json_t *reasons = json_object();

        for (size_t i = REASON_NONE + 1; i < REASON_COUNT; i++)
                if (tally->counts[i] > 0)
                        (void) json_object_set_new(reasons, reason_text((enum reason) i)->word,
                                                   json_integer(tally->counts[i]));
        return reasons;
}

/* @before: how many wait already. */
static json_t *tell_waiting(struct cluster *c, struct pod_request *pod_request, const struct ledger_pod *pod,
                            size_t before)
{
        char message[TALLY_SENTENCE_BYTES];
        struct tally tally;

        tally_nodes(&pod_request->context, &tally);
        tally_sentence(&pod_request->context, &tally, message);
        return json_pack("{s:s, s:n, s:i, s:n, s:s, s:o, s:o}", "pod", pod->key, "node", "score", 0, "when",
                         "message", message, "reasons", count_reasons(&tally), "missing",
                         before < REMEDIED_MAX ? remedies_find(c, pod_request) : json_array());
}

/* kube-scheduler chooses among those that it is named, by what else it knows. */
static json_t *tell_placed(const struct best_node *choice)
{
        if (choice->of == 1)
                return json_string("placed");
        return json_sprintf(
                "placed: the best of %u nodes that take it, of which kube-scheduler may take another",
                choice->of);
}

static int place(struct cluster *c, struct ledger_pod *pod, uint64_t now_usec, json_t *placements,
                 int *placed, struct err *err)
{
        struct ledger_pod_part parts[LEDGER_POD_PARTS_MAX];
        struct pod_request pod_request;
        struct best_node choice;
        size_t part_count = 0;
        int r = pod_request_begin_pod(c, pod, now_usec, true, &pod_request, err);

        pod_request.context.unfiltered = true;
        if (r == 0)
                r = best_node(&pod_request.context, &choice);
        if (r == 0 && choice.node == NULL) {
                (void) json_array_append_new(
                        placements,
                        tell_waiting(c, &pod_request, pod, json_array_size(placements) - (size_t) *placed));
        } else if (r == 0) {
                if (pod_request.request.item_count > 0)
                        part_count = score_parts(&pod_request.context, choice.node, parts);
                r = ledger_pods_assume(cluster_ledger(c), pod, choice.node, parts, part_count);
                cluster_claims_try(c, choice.node, &pod_request.context);
                (*placed)++;
                (void) json_array_append_new(
                        placements, json_pack("{s:s, s:s, s:i, s:s, s:o, s:{}, s:[]}", "pod", pod->key,
                                              "node", choice.node->name, "score", (int) choice.score, "when",
                                              "now", "message", tell_placed(&choice), "reasons", "missing"));
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
        struct best_node choice = { 0 };
        char when[TIMESTAMP_BYTES];

        int r = pod_request_begin_pod(c, waiting->pod, at_usec, true, &pod_request, NULL);

        pod_request.context.unfiltered = true;
        if (r == 0 && best_node(&pod_request.context, &choice) == 0 && choice.node != NULL &&
            ledger_pods_assume(cluster_ledger(c), waiting->pod, choice.node, parts,
                               score_parts(&pod_request.context, choice.node, parts)) == 0) {
                (void) timestamp_format(at_usec, when);
                (void) json_object_set_new(waiting->answer, "when", json_string(when));
                waiting->pod = NULL; /* it has started */
                cluster_claims_try(c, choice.node, &pod_request.context);
        }
        pod_request_end(c, &pod_request);
}

/* Time passes, and those that wait start in the order given, as soon as they fit; nobody else comes. */
static int let_time_pass(struct cluster *c, uint64_t now_usec, struct waiting *waiting, size_t waiting_count)
{
        struct play play = { 0 };
        size_t left = waiting_count;
        int r = left == 0 ? 0 : play_begin(c, now_usec, &play);

        while (r == 0 && left > 0 && play_next(&play) != UINT64_MAX) {
                uint64_t at = play_next(&play);

                play_advance(&play, at);
                keep_backfills(c, at, play.gone);
                left = 0;
                for (size_t i = 0; i < waiting_count; i++) {
                        if (waiting[i].pod != NULL)
                                start_at(c, &waiting[i], at);
                        left += waiting[i].pod != NULL;
                }
        }
        play_finish(&play);
        return r;
}

static void tell_no_end(json_t *answer)
{
        const char *message = json_string_value(json_object_get(answer, "message"));

        (void) json_object_set_new(
                answer, "message",
                json_sprintf("%s; no known end of other pods changes that", message == NULL ? "" : message));
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
        if (let_time_pass(c, now_usec, waiting, count) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                if (waiting[i].pod != NULL)
                        tell_no_end(waiting[i].answer);
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
        char full[JOB_NAME_BYTES + 64], count[16], network[24];
        json_t *object;
        struct ledger_pod *pod;

        (void) text_format(full, sizeof(full), "%s-%s", job->name, name);
        (void) text_format(count, sizeof(count), "%u", chips);
        (void) text_format(network, sizeof(network), "%llu", (unsigned long long) job->min_network_mbps);
        object = json_pack("{s:{s:s, s:s, s:s, s:{s:s, s:s, s:s*, s:s*}}, s:{s:s*, s:[{s:s, s:{s:{s:s}}}]}}",
                           "metadata", "name", full, "namespace",
                           job->namespace_[0] == '\0' ? "default" : job->namespace_, "uid", full, "labels",
                           POD_LABEL_JOB, job->name, POD_LABEL_URGENCY, job_urgency_names[job->urgency],
                           POD_LABEL_PREEMPTIBLE, job->preemptible ? "true" : NULL, POD_LABEL_MIN_NETWORK,
                           job->min_network_mbps > 0 ? network : NULL, "spec", "priorityClassName",
                           job->priority_class[0] != '\0' ? job->priority_class : NULL, "containers", "name",
                           "worker", "resources", "limits", resource, count);
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
                          uint64_t now_usec, json_t *placements, size_t before, const char *why,
                          struct err *err)
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
        answer = tell_waiting(c, &pod_request, pod, before);
        (void) json_object_set_new(answer, "message", json_string(why));
        (void) json_array_append_new(placements, answer);
        pod_request_end(c, &pod_request);
        return 0;
}

/* All of a job that the ledger knows is placed, or nothing. It takes the place of the one of its name, as a
 * pod does: with all that this one has. */
static int place_known(struct cluster *c, const char *namespace_, const char *name, uint64_t now_usec,
                       json_t *placements, int *placed, struct err *err)
{
        struct open_groups_claim claim = { .rules = cluster_rules(c), .now_usec = now_usec };
        const struct ledger_job *job = ledger_jobs_find(cluster_ledger(c), namespace_, name);
        struct assignment assignment;
        struct err missing = { 0 };
        int r;

        if (job == NULL || job->training == NULL)
                return err_set(err, -EBADMSG, "the TrainingJob was not understood");
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
                r = tell_job_waits(c, job->training, assignment.lacking, now_usec, placements,
                                   json_array_size(placements) - (size_t) *placed, missing.msg, err);
        else
                r = err_set(err, r, "%s", missing.msg);
        assignment_free(&assignment);
        if (r == 0)
                keep_backfills(c, now_usec, json_array_size(placements));
        return r;
}

static int place_job(struct cluster *c, const json_t *object, uint64_t now_usec, json_t *placements,
                     int *placed, struct err *err)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata");
        const char *name = "", *namespace_ = "default";
        int r = cluster_take(c, object, err);

        (void) json_field_string(&metadata, "name", &name, NULL);
        (void) json_field_string(&metadata, "namespace", &namespace_, NULL);
        return r < 0 ? r : place_known(c, namespace_, name, now_usec, placements, placed, err);
}

/* Of which job of which namespace it says that it is. */
static const char *job_of(const json_t *pod, const char **namespace_)
{
        struct json_field root = json_field_root(pod), metadata = json_field_get(&root, "metadata");
        struct json_field labels = json_field_get(&metadata, "labels");
        const char *job = "", *kind = json_string_value(json_object_get(pod, "kind"));

        *namespace_ = "default";
        if (kind != NULL && strcmp(kind, "Pod") != 0)
                return "";
        (void) json_field_string(&metadata, "namespace", namespace_, NULL);
        (void) json_field_string(&labels, POD_LABEL_JOB, &job, NULL);
        return job;
}

/* A gang begins whole: those of it that are asked about later are there when the first of them is placed. */
static struct ledger_pod *admit_gang(struct cluster *c, const json_t *items, size_t i, struct err *err)
{
        struct ledger_pod *pod = admit(c, json_array_get(items, i), i, err);
        const char *namespace_, *job = job_of(json_array_get(items, i), &namespace_), *of;

        if (pod == NULL ||
            !gang_members_are_lacking(pod->job, pod, &pod->request, pod->kinds, pod->kind_count))
                return pod;
        for (size_t k = i + 1; k < json_array_size(items); k++)
                if (strcmp(job_of(json_array_get(items, k), &of), job) == 0 && strcmp(of, namespace_) == 0 &&
                    admit(c, json_array_get(items, k), k, err) == NULL)
                        return NULL;
        return admit(c, json_array_get(items, i), i, err); /* one of its name may have come after it */
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
                        pod = admit_gang(c, items, i, err);
                        r = pod == NULL ? -EBADMSG : place(c, pod, now_usec, placements, placed, err);
                }
                if (r < 0)
                        return err_wrap(err, r, "pods[%zu]", i);
        }
        return 0;
}

static json_t *answer_with(json_t *placements, int placed)
{
        return json_pack("{s:o, s:i, s:i}", "placements", placements, "placed", placed, "waiting",
                         (int) json_array_size(placements) - placed);
}

int whatif_job(struct cluster *cluster, const char *namespace_, const char *name, uint64_t now_usec,
               json_t **ret, struct err *err)
{
        struct cluster *fork = cluster_fork(cluster);
        json_t *placements = json_array();
        int placed = 0, r = 0;

        if (fork == NULL)
                r = err_set(err, -ENOMEM, "no memory for a copy of the ledger");
        if (r == 0) {
                keep_backfills(fork, now_usec, 0);
                r = place_known(fork, namespace_, name, now_usec, placements, &placed, err);
        }
        if (r == 0)
                r = tell_when(fork, now_usec, placements);
        cluster_close(fork);
        if (r < 0)
                json_decref(placements);
        else
                *ret = answer_with(placements, placed);
        return r;
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
                r = whatif_change(fork, body, WHATIF_PODS_MAX, err);
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
        *ret = answer_with(placements, placed);
        return 0;
}
