/* Objects of the store into the ledger: a taker for each kind, and the life of what holds them. */
#include "scheduler-extender/ledger/cluster_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/inventory_json.h"
#include "agent/inventory/inventory_words.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "io/loop.h"
#include "job/spec/job_yaml.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/groups/groups.h"
#include "scheduler-extender/ledger/audit.h"
#include "scheduler-extender/ledger/cluster_ages.h"
#include "scheduler-extender/ledger/cluster_classes.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_names.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/wire/pod_neighbours.h"
#include "scheduler-extender/wire/pod_node_match.h"

#define NAMES_USEC (10 * UINT64_C(1000000))

static void trouble(struct cluster *c, const char *kind, const char *key, const struct err *err)
{
        struct text text = { 0 };
        CLEANUP(free_p) char *sentence = NULL;

        text_printf(&text, "%s %s: %s", kind, key, err->msg);
        sentence = text_take(&text, NULL);
        if (c->options.trouble != NULL && sentence != NULL)
                c->options.trouble(c->options.userdata, sentence);
}

/* What is written every few seconds: what is wrong with it is said when that changes. */
static void tell_once(struct cluster *c, struct name_numbers *said, const char *kind, const char *key,
                      const char *sentence)
{
        struct err passed_over = { 0 };

        if (!name_numbers_say(said, key, sentence))
                return;
        (void) err_set(&passed_over, -EBADMSG, "%s", sentence);
        trouble(c, kind, key, &passed_over);
}

/* Shared by somebody who does not say how: nobody can tell which chips the kubelet withholds. */
static void tell_offer(struct cluster *c, const char *name)
{
        const struct ledger_node *node = ledger_nodes_find(c->ledger, name, strlen(name));
        char sentence[LEDGER_TRUST_SENTENCE_BYTES] = "";

        if (node != NULL)
                ledger_trust_beyond(c->ledger, node, sentence);
        tell_once(c, &c->offer_troubles, "Node", name, sentence);
}

/* On a copy, which has no clock: later than anything that was heard, as ages are looked at once a second. */
static uint64_t after_all_usec(const struct ledger *ledger)
{
        return ledger->liveness.looked_usec + 1000000;
}

static int take_node(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        CLEANUP(text_free) struct text traits = { 0 };
        struct ledger_node_facts facts;
        const json_t *labels;
        int r;

        if (object == NULL) {
                ledger_nodes_drop(c->ledger, key);
                cluster_ages_update(c, key);
                tell_offer(c, key);
                if (c->options.node_labels != NULL)
                        c->options.node_labels(c->options.userdata, key, NULL);
                return 0;
        }
        r = pod_json_node_decode(object, c->ledger, &facts, err);
        pod_node_match_traits(object, &traits);
        facts.traits = traits.failed ? NULL : traits.data;
        facts.now_usec = c->store == NULL ? after_all_usec(c->ledger) : loop_now_usec(c->loop);
        r = r == 0                                  ? ledger_nodes_set(c->ledger, &facts)
            : ledger_nodes_note(c->ledger, key) < 0 ? -ENOMEM
                                                    : r;
        cluster_claims_update(c, key);
        cluster_ages_update(c, key);
        tell_offer(c, key);
        labels = json_object_get(json_object_get(object, "metadata"), "labels");
        if (labels == NULL)
                labels = json_object_get(object,
                                         "metadata"); /* it has none: nothing there is a label of ours */
        if (r == 0 && c->options.node_labels != NULL)
                c->options.node_labels(c->options.userdata, facts.name, labels);
        return r;
}

static int take_pod(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        CLEANUP(text_free) struct text match = { 0 }, labels = { 0 }, demands = { 0 };
        struct ledger_pod_facts facts;
        char namespace_[256];
        const char *name = store_key_split(key, namespace_);
        int r;

        if (object == NULL) {
                ledger_pods_drop(c->ledger, namespace_, name);
                return cluster_claims_take_pod(c, key, NULL);
        }
        r = pod_json_decode(object, &c->options.policy, c->ledger, true, &facts, err);
        if (facts.name[0] == '\0')
                return r;
        if ((facts.request.item_count > 0 || cluster_claims_has(object)) &&
            (facts.node == NULL || facts.node[0] == '\0')) {
                pod_node_match(object, &match);
                facts.node_match = match.failed ? NULL : match.data == NULL ? "" : match.data;
        }
        pod_neighbours_labels(object, &labels);
        pod_neighbours_demands(object, &demands);
        facts.labels = labels.failed ? NULL : labels.data;
        facts.demands = demands.failed ? NULL : demands.data;
        facts.has_claims = cluster_claims_has(object);
        if (ledger_pods_set(c->ledger, &facts) < 0 ||
            cluster_claims_take_pod(c, key, facts.ended ? NULL : object) < 0)
                return -ENOMEM;
        return r;
}

static void compare(struct cluster *c, enum store_kind kind, const char *key, const struct audit *before,
                    const struct audit *now)
{
        char sentence[768];

        if (audit_differs(before, now, sentence, sizeof(sentence)) && c->options.drifted != NULL)
                c->options.drifted(c->options.userdata, kind, key, sentence);
}

/* A bind that was not, as a fresh look shows: no error of the ledger's. */
static void settle_pod(struct cluster *c, const char *key, const json_t *object)
{
        char namespace_[256];
        const char *name = store_key_split(key, namespace_);

        if (!json_is_string(json_object_get(json_object_get(object, "spec"), "nodeName")))
                (void) audit_settle(c->ledger, namespace_, name);
}

static int recheck_pod(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        char namespace_[256];
        const char *name = store_key_split(key, namespace_);
        struct audit before = audit_pod(c->ledger, namespace_, name), now;
        int r = take_pod(c, key, object, err);

        now = audit_pod(c->ledger, namespace_, name);
        compare(c, STORE_POD, key, &before, &now);
        return r;
}

static uint64_t usable_chips(const struct cluster *c, const char *name)
{
        const struct ledger_node *node = ledger_nodes_find(c->ledger, name, strlen(name));
        uint64_t usable = 0;

        for (uint32_t g = 0; node != NULL && g < node->group_count; g++)
                usable += node->groups[g].usable;
        return usable;
}

static int take_inventory(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct inventory inventory;
        uint64_t before;
        int r;

        if (object == NULL) {
                ledger_nodes_drop_inventory(c->ledger, key);
                (void) cluster_claims_take_inventory(c, key, NULL); /* what goes needs no memory */
                tell_offer(c, key);
                if (c->options.told != NULL)
                        c->options.told(c->options.userdata, key, NULL);
                if (c->options.node_changed != NULL)
                        c->options.node_changed(c->options.userdata, key, false);
                return 0;
        }
        r = inventory_json_decode(object, &inventory, err);
        if (r < 0)
                return r;
        before = usable_chips(c, inventory.node);
        r = ledger_nodes_set_inventory(c->ledger, &inventory);
        ledger_nodes_set_words(c->ledger, inventory.node, inventory_words_owner(object),
                               inventory_words_leaves(object));
        if (cluster_claims_take_inventory(c, inventory.node, &inventory) < 0)
                r = -ENOMEM;
        if (r == 0 && c->options.node_changed != NULL)
                c->options.node_changed(c->options.userdata, inventory.node,
                                        usable_chips(c, inventory.node) > before);
        cluster_ages_update(c, inventory.node);
        tell_offer(c, inventory.node);
        if (r == 0 && c->options.told != NULL)
                c->options.told(c->options.userdata, inventory.node, &inventory);
        inventory_free(&inventory);
        return r;
}

static int recheck_inventory(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct audit before = audit_node(c->ledger, key), now;
        int r = take_inventory(c, key, object, err);

        now = audit_node(c->ledger, key);
        compare(c, STORE_INVENTORY, key, &before, &now);
        return r;
}

static int take_training_job(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        char namespace_[256];
        const char *name = store_key_split(key, namespace_);
        struct job *job;
        int r;

        if (object == NULL)
                return ledger_jobs_set_training(c->ledger, namespace_, name, NULL);
        job = calloc(1, sizeof(*job));
        if (job == NULL)
                return err_set(err, -ENOMEM, "no memory");
        r = job_yaml_decode(object, job, err);
        if (r < 0) {
                job_free(job);
                free(job);
                return r;
        }
        return ledger_jobs_set_training(c->ledger, namespace_, name, job);
}

/* One object that cannot be read stops nothing: it is counted and told, once, and what there is of it stands.
 */
static void note_reading(struct cluster *c, enum store_kind kind, const char *key, const struct err *err)
{
        if (!name_numbers_say(&c->unreadable[kind], key, err->msg))
                return;
        trouble(c, store_kind_name(kind), key, err);
        if (c->options.unreadable != NULL)
                c->options.unreadable(c->options.userdata, kind, key, err->msg);
}

size_t cluster_unreadable(const struct cluster *cluster, enum store_kind kind, const char **ret_example)
{
        const struct name_map *map = &cluster->unreadable[kind].map;

        *ret_example = map->count > 0 ? name_map_first(map)->key : "";
        return map->count;
}

/* All tables are one list; the rows that were refined last stand. */
static int take_speed_table(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        struct speed_table table;
        int r = speed_table_decode(object, &table, err);

        if (r == 0)
                tell_once(c, &c->speed_troubles, "SpeedTable", key, table.trouble);
        if (r == 0 && strcmp(key, SPEED_TABLE_NAME) == 0) /* the one table: what is not in it is not known */
                c->ledger->speeds.count = 0;
        if (r == 0 && speed_table_add(&c->ledger->speeds, &table) < 0)
                r = err_set(err, -ENOMEM, "no memory");
        speed_table_free(&table);
        c->ledger->generation++;
        return r;
}

static int take_workload(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        return groups_take_workload(c->ledger, key, object, err);
}

static int take_pod_group(struct cluster *c, const char *key, const json_t *object, struct err *err)
{
        return groups_take_pod_group(c->ledger, key, object, err);
}

static void changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        static int (*const takers[STORE_KIND_COUNT])(struct cluster *, const char *, const json_t *,
                                                     struct err *) = {
                [STORE_NODE] = take_node,
                [STORE_POD] = take_pod,
                [STORE_INVENTORY] = take_inventory,
                [STORE_TRAINING_JOB] = take_training_job,
                [STORE_LEASE] = cluster_ages_take_lease,
                [STORE_SPEED_TABLE] = take_speed_table,
                [STORE_PRIORITY_CLASS] = cluster_classes_take,
                [STORE_RESOURCE_SLICE] = cluster_claims_take_slice,
                [STORE_RESOURCE_CLAIM] = cluster_claims_take_claim,
                [STORE_RESOURCE_CLAIM_TEMPLATE] = cluster_claims_take_template,
                [STORE_WORKLOAD] = take_workload,
                [STORE_POD_GROUP] = take_pod_group,
        };
        struct cluster *c = userdata;
        bool recheck = c->store != NULL && store_is_rechecking(c->store);
        uint32_t nodes = c->ledger->node_count;
        struct err err = { 0 };
        int r;

        if (kind == STORE_POD && c->store != NULL && store_is_fresh(c->store))
                settle_pod(c, key, object);
        if (recheck && (kind == STORE_POD || kind == STORE_INVENTORY))
                r = (kind == STORE_POD ? recheck_pod : recheck_inventory)(c, key, object, &err);
        else
                r = takers[kind] == NULL ? 0 : takers[kind](c, key, object, &err);
        if (r == -ENOMEM && err.code == 0)
                (void) err_set(&err, r, "out of memory");
        note_reading(c, kind, key, &err);
        if (c->ledger->node_count > nodes)
                ledger_jobs_keep_plans(c->ledger);
        if (c->options.observed != NULL)
                c->options.observed(c->options.userdata, kind, key, object);
        if (takers[kind] != NULL && c->options.changed != NULL)
                c->options.changed(c->options.userdata);
}

static void synced(void *userdata, enum store_kind kind)
{
        struct cluster *c = userdata;

        c->synced |= 1u << kind;
        if (kind == STORE_WORKLOAD)
                groups_serve(c->ledger, REQUEST_GROUP_ALONE, store_serves(c->store, kind, NULL));
        if (kind == STORE_POD_GROUP)
                groups_serve(c->ledger, REQUEST_GROUP_CYCLE, store_serves(c->store, kind, NULL));
        for (uint32_t i = 0; kind == STORE_NODE && i < c->ledger->node_count; i++)
                cluster_ages_update(c, c->ledger->nodes[i]->name);
        if (c->options.kind_synced != NULL)
                c->options.kind_synced(c->options.userdata, kind);
        if (c->options.changed != NULL)
                c->options.changed(c->options.userdata);
        if (c->refreshing == 0)
                return;
        c->refreshing &= ~(1u << kind);
        if (c->refreshing == 0 && c->options.refreshed != NULL)
                c->options.refreshed(c->options.userdata);
}

void cluster_refresh(struct cluster *cluster)
{
        cluster->refreshing = cluster->watched;
        store_refresh(cluster->store);
}

/* Where none were added all that there are were in use a while ago, and their room is not wanted. */
static void release_names(struct cluster *c)
{
        uint64_t now = loop_now_usec(c->loop);

        if (c->ledger->symbols.added == 0 || now - c->names_usec < NAMES_USEC)
                return;
        c->names_usec = now;
        ledger_names_release(c->ledger);
}

void cluster_every_second(struct cluster *cluster)
{
        cluster_ages_look(cluster);
        release_names(cluster);
}

static void store_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        struct cluster *c = userdata;

        (void) kind;
        if (c->options.trouble != NULL)
                c->options.trouble(c->options.userdata, sentence);
}

static bool may_commit(void *userdata)
{
        struct cluster *c = userdata;

        return c->options.may_commit(c->options.userdata);
}

static void take_programs(struct cluster *c)
{
        const struct program_table *table = c->options.programs;

        for (size_t i = 0; table != NULL && i < table->count; i++) {
                struct ledger_program *to = &c->programs[c->program_count++];

                to->runtime = symbols_keep(&c->ledger->symbols, table->programs[i].runtime);
                (void) text_copy(to->sha256, sizeof(to->sha256), table->programs[i].sha256);
                speed_table_program(to->sha256, table->programs[i].args, table->programs[i].arg_count,
                                    to->speed_name);
        }
}

int cluster_open(sd_event *loop, const struct cluster_options *options, struct cluster **ret, struct err *err)
{
        struct cluster *c = calloc(1, sizeof(*c));
        struct store_options store = {
                .spec = options->store,
                .kubeconfig = options->kubeconfig,
                .namespaces = options->namespaces,
                .namespace_count = options->namespace_count,
                .kinds = CLUSTER_NEEDED_KINDS | 1u << STORE_SPEED_TABLE | 1u << STORE_LEASE |
                         1u << STORE_WORKLOAD | 1u << STORE_POD_GROUP,
                .changed = changed,
                .synced = synced,
                .trouble = store_trouble,
                .userdata = c,
        };
        int r;

        store.kinds |= (unsigned) options->reads_classes << STORE_PRIORITY_CLASS |
                       (unsigned) options->reads_budgets << STORE_DISRUPTION_BUDGET |
                       (unsigned) options->reads_templates << STORE_RESOURCE_CLAIM_TEMPLATE;
        if (options->reads_queues)
                store.kinds |= 1u << STORE_KUEUE_WORKLOAD | 1u << STORE_KUEUE_FLAVOR;
        if (options->may_commit != NULL)
                store.may_commit = may_commit;
        store.commit_usec = options->commit_usec;
        if (c == NULL || (c->ledger = ledger_life_new()) == NULL || (c->claims = claims_new()) == NULL) {
                cluster_close(c);
                return err_set(err, -ENOMEM, "no memory");
        }
        c->options = *options;
        c->loop = loop;
        c->is_directory = store_directory(options->store) != NULL;
        if (c->is_directory)
                store.kinds &= ~(1u << STORE_LEASE);
        c->watched = store.kinds;
        ledger_chips_mark_usual(c->ledger);
        for (size_t i = 0; i < options->managed_resource_count; i++)
                ledger_chips_mark(c->ledger, options->managed_resources[i]);
        take_programs(c);
        r = store_open(loop, &store, &c->store, err);
        if (r < 0)
                cluster_close(c);
        else
                *ret = c;
        return r;
}

void cluster_close(struct cluster *cluster)
{
        if (cluster == NULL)
                return;
        if (cluster->store != NULL)
                store_close(cluster->store);
        ledger_life_free(cluster->ledger);
        cluster_ages_free(cluster);
        cluster_classes_free(cluster);
        claims_free(cluster->tried != NULL ? cluster->tried : cluster->claims);
        name_numbers_free(&cluster->speed_troubles);
        name_numbers_free(&cluster->offer_troubles);
        for (int kind = 0; kind < STORE_KIND_COUNT; kind++)
                name_numbers_free(&cluster->unreadable[kind]);
        free(cluster);
}

struct cluster *cluster_fork(const struct cluster *cluster)
{
        struct cluster *fork = calloc(1, sizeof(*fork));

        if (fork == NULL)
                return NULL;
        fork->options = cluster->options;
        fork->options.changed = NULL;
        fork->options.told = NULL;
        fork->options.node_changed = NULL;
        fork->options.observed = NULL;
        fork->options.kind_synced = NULL;
        fork->options.node_labels = NULL;
        fork->options.unreadable = NULL;
        fork->options.drifted = NULL;
        fork->synced = cluster->synced;
        memcpy(fork->programs, cluster->programs, sizeof(fork->programs));
        fork->program_count = cluster->program_count;
        fork->claims = cluster->claims;
        fork->tried = claims_new_on(cluster_claims(cluster));
        fork->ledger = fork->tried == NULL ? NULL : ledger_life_copy(cluster->ledger);
        if (fork->ledger == NULL) {
                claims_free(fork->tried);
                free(fork);
                return NULL;
        }
        return fork;
}

int cluster_take(struct cluster *cluster, const json_t *object, struct err *err)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata");
        const char *kind = "", *name = "", *namespace_ = "default";
        char key[512];

        if (json_field_is_object(&root, err) < 0 || json_field_string(&root, "kind", &kind, err) < 0 ||
            json_field_require(&metadata, "name", err) < 0 ||
            json_field_string(&metadata, "name", &name, err) < 0 ||
            json_field_string(&metadata, "namespace", &namespace_, err) < 0)
                return -EBADMSG;
        (void) text_format(key, sizeof(key), "%s/%s", namespace_, name);
        if (strcmp(kind, "Node") == 0)
                return take_node(cluster, name, object, err);
        if (strcmp(kind, "NodeAccelerators") == 0)
                return take_inventory(cluster, name, object, err);
        if (strcmp(kind, "Pod") == 0)
                return take_pod(cluster, key, object, err);
        if (strcmp(kind, "TrainingJob") == 0)
                return take_training_job(cluster, key, object, err);
        return err_set(err, -ENOTSUP, "kind: must be Node, NodeAccelerators, Pod or TrainingJob, not '%.40s'",
                       kind);
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct cluster *c = userdata;

        (void) source;
        (void) usec;
        return sd_event_exit(c->loop, -ETIMEDOUT);
}

/* Turn by turn: a loop that has ended runs no more, and who loads may go on to watch. */
static int run_until_ready(struct cluster *c)
{
        int r = 0;

        while (r >= 0 && !cluster_is_ready(c) && sd_event_get_state(c->loop) != SD_EVENT_FINISHED)
                r = sd_event_run(c->loop, UINT64_MAX);
        return r >= 0 && !cluster_is_ready(c) && sd_event_get_exit_code(c->loop, &r) < 0 ? -EINTR : r;
}

int cluster_load(sd_event *loop, const struct cluster_options *options, uint64_t timeout_usec,
                 struct cluster **ret, struct err *err)
{
        struct cluster *c = NULL;
        sd_event_source *timer = NULL;
        int r = cluster_open(loop, options, &c, err);

        if (r < 0 || c == NULL)
                return r;
        *ret = c; /* callbacks may look */
        r = sd_event_add_time_relative(loop, &timer, CLOCK_MONOTONIC, timeout_usec, 0, on_timeout, c);
        r = r < 0 ? r : run_until_ready(c);
        sd_event_source_disable_unref(timer);
        if (r < 0 || !cluster_is_ready(c)) {
                cluster_close(c);
                *ret = NULL;
                return err_set(err, r < 0 ? r : -EINTR, "the store '%s' did not tell all it has in time",
                               options->store);
        }
        return 0;
}

struct ledger *cluster_ledger(struct cluster *cluster)
{
        return cluster->ledger;
}

struct store *cluster_store(struct cluster *cluster)
{
        return cluster->store;
}

const struct rules *cluster_rules(const struct cluster *cluster)
{
        return &cluster->options.rules;
}

const struct ledger_program *cluster_programs(const struct cluster *cluster, size_t *ret_count)
{
        *ret_count = cluster->program_count;
        return cluster->programs;
}

bool cluster_is_emergency(const struct cluster *cluster, const char *namespace_, const struct job *job)
{
        const struct pod_json_policy *policy = &cluster->options.policy;

        return (job->urgency == JOB_URGENCY_EMERGENCY && pod_json_emergency_allowed(policy, namespace_)) ||
               pod_json_emergency_class(policy, job->priority_class);
}

bool cluster_is_ready(const struct cluster *cluster)
{
        return (cluster->synced & CLUSTER_NEEDED_KINDS) == CLUSTER_NEEDED_KINDS;
}
