/* Workload objects by one table each way; pod sets from a job, and back onto it what Kueue assigned. */
#include "job/controller/kueue/kueue_workload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/json/json_table.h"
#include "base/quantity.h"
#include "base/sha256.h"
#include "base/text.h"
#include "job/controller/pod_template.h"
#include "scheduler-extender/decide/open_groups.h"
#include "scheduler-extender/wire/pod_node_match.h"

#define SERVERS "s"
#define MANAGER "manager"

/* The member of a list whose `name` it is, or NULL. */
static json_t *find_named(const json_t *list, const char *name)
{
        json_t *item;
        size_t i;

        json_array_foreach((json_t *) list, i, item)
        {
                if (strcmp(json_read_word(item, "name"), name) == 0)
                        return item;
        }
        return NULL;
}

void kueue_workload_name(const char *job, const char *uid, char name[KUEUE_NAME_BYTES])
{
        char hash[SHA256_HEX_BYTES];
        struct sha256 sha256;

        sha256_init(&sha256);
        sha256_update(&sha256, uid, strlen(uid));
        sha256_final_hex(&sha256, hash);
        (void) text_format(name, KUEUE_NAME_BYTES, "trainingjob-%s-%.8s", job, hash);
}

/* The controlling owner, where it is a TrainingJob and the name is that of its Workload. */
static int decode_owner(const struct json_field *at, void *field, struct err *err)
{
        struct kueue_workload *workload = field;
        char name[KUEUE_NAME_BYTES];
        json_t *owner;
        size_t i;

        (void) err;
        json_array_foreach((json_t *) at->value, i, owner)
        {
                if (strcmp(json_read_word(owner, "kind"), "TrainingJob") != 0 ||
                    !text_starts_with(json_read_word(owner, "apiVersion"), "remuda.dev/") ||
                    !json_is_true(json_object_get(owner, "controller")))
                        continue;
                kueue_workload_name(json_read_word(owner, "name"), json_read_word(owner, "uid"), name);
                if (strcmp(name, workload->name) != 0 ||
                    !text_copy(workload->owner, sizeof(workload->owner), json_read_word(owner, "uid")) ||
                    !text_copy(workload->job, sizeof(workload->job), json_read_word(owner, "name")))
                        workload->job[0] = '\0';
                return 0;
        }
        return 0;
}

static void take_condition(struct kueue_workload *workload, const json_t *condition)
{
        const struct {
                const char *type;
                bool *field;
        } known[] = {
                { "QuotaReserved", &workload->reserved }, { "Admitted", &workload->admitted },
                { "Evicted", &workload->evicted },        { "Finished", &workload->finished },
                { "PodsReady", &workload->ready },
        };
        const char *type = json_read_word(condition, "type");

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strcmp(known[i].type, type) == 0)
                        *known[i].field = strcmp(json_read_word(condition, "status"), "True") == 0;
}

/* Of the condition that says why it is as it is. */
static void take_reason(struct kueue_workload *workload)
{
        const char *type = workload->finished ? "Finished" : workload->evicted ? "Evicted" : "QuotaReserved";
        json_t *condition;
        size_t i;

        json_array_foreach(workload->conditions, i, condition)
        {
                if (strcmp(json_read_word(condition, "type"), type) != 0)
                        continue;
                (void) text_copy(workload->reason, sizeof(workload->reason),
                                 json_read_word(condition, "reason"));
                (void) text_copy(workload->message, sizeof(workload->message),
                                 json_read_word(condition, "message"));
        }
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct kueue_workload, member)
#define WHOLE .offset = 0, .size_bytes = sizeof(struct kueue_workload)
static const struct json_table_row annotation_rows[] = {
        { KUEUE_ANNOTATION_SUSPENDED, JSON_TABLE_UNREAD, .given = offsetof(struct kueue_workload, suspended) },
        { .name = NULL },
};
static const struct json_table annotation_table = { .rows = annotation_rows, .size_bytes = sizeof(struct kueue_workload), .lenient = true, .literal = true };
static const struct json_table_row rows[] = {
        { "metadata.name",            JSON_TABLE_CHARS,  AT(name) },
        { "metadata.uid",             JSON_TABLE_CHARS,  AT(uid) },
        { "metadata.resourceVersion", JSON_TABLE_CHARS,  AT(version) },
        { "metadata.ownerReferences", JSON_TABLE_CUSTOM, WHOLE, .decode = decode_owner },
        { "metadata.annotations",     JSON_TABLE_OBJECT, WHOLE, .table = &annotation_table },
        { "spec.queueName",           JSON_TABLE_CHARS,  AT(queue) },
        { "spec.podSets",             JSON_TABLE_VALUE,  AT(pod_sets) },
        { "status.admission.clusterQueue",       JSON_TABLE_CHARS, AT(cluster_queue) },
        { "status.admission.podSetAssignments",  JSON_TABLE_VALUE, AT(assignments) },
        { "status.admissionChecks",   JSON_TABLE_VALUE,  AT(checks) },
        { "status.conditions",        JSON_TABLE_VALUE,  AT(conditions) },
        { .name = NULL },
};
static const struct json_table table = { .rows = rows, .size_bytes = sizeof(struct kueue_workload), .lenient = true };
#undef AT
/* clang-format on */

void kueue_workload_decode(const json_t *object, struct kueue_workload *ret)
{
        json_t *condition;
        size_t i;

        *ret = (struct kueue_workload){ .name = "" };
        (void) json_table_decode(&table, object, ret, NULL);
        ret->inactive = json_is_false(json_object_get(json_object_get(object, "spec"), "active"));
        json_array_foreach(ret->conditions, i, condition) take_condition(ret, condition);
        ret->reserved = ret->reserved || ret->assignments != NULL;
        ret->admitted = ret->admitted && ret->assignments != NULL;
        ret->evicted = ret->evicted && ret->reserved; /* it stays True until the next admission */
        take_reason(ret);
}

void kueue_workload_free(struct kueue_workload *workload)
{
        json_table_free(&table, workload);
}

static uint64_t chips_of(const struct job_role *role)
{
        return role->spec_chips != 0 ? role->spec_chips : role->chips;
}

static uint64_t least_of(const struct job_role *role)
{
        return role->spec_chips != 0 ? role->spec_min_chips : role->min_chips;
}

static const json_t *requests_of(const json_t *set)
{
        const json_t *spec = json_object_get(json_object_get(set, "template"), "spec");

        return json_object_get(
                json_object_get(json_array_get(json_object_get(spec, "containers"), 0), "resources"),
                "requests");
}

/* Is the one name better than the other (NULL = none yet)? What a Workload asks for already stands; else as
 * most chips are called, whoever has them. */
static bool is_better(const struct ledger *ledger, const struct ledger_group *one,
                      const struct ledger_group *other, const json_t *asked)
{
        const char *name = symbols_name(&ledger->symbols, one->resource), *than;
        bool stands = json_object_get(asked, name) != NULL, other_stands;

        if (other == NULL)
                return true;
        than = symbols_name(&ledger->symbols, other->resource);
        other_stands = json_object_get(asked, than) != NULL;
        if (stands != other_stands)
                return stands;
        return one->usable != other->usable ? one->usable > other->usable : strcmp(name, than) < 0;
}

/* What the chips that a role may take are called on the nodes. */
static const char *resource_in(const struct ledger *ledger, const struct job_role *role, const json_t *asked)
{
        const struct ledger_group *best = NULL;

        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[n]->groups[g];

                        if (group->resource != 0 && open_groups_takes(role, &ledger->symbols, group) &&
                            is_better(ledger, group, best, asked))
                                best = group;
                }
        return best != NULL ? symbols_name(&ledger->symbols, best->resource) : NULL;
}

/* ... by those who make them. */
static const char *resource_by_vendor(const struct job_role *role, const json_t *asked)
{
        const char *name = NULL;

        for (size_t i = 0; vendors[i] != NULL; i++) {
                const struct vendor *vendor = vendors[i];

                if (role->vendor[0] != '\0' ? strcmp(vendor->name, role->vendor) != 0
                                            : !vendor_serves(vendor->runtime, role->runtime))
                        continue;
                if (json_object_get(asked, vendor->resource) != NULL)
                        return vendor->resource;
                name = name == NULL ? vendor->resource : name;
        }
        return name;
}

static const char *resource_of(const struct ledger *ledger, const struct job_role *role, const json_t *asked)
{
        const char *name = resource_in(ledger, role, asked);

        return name != NULL ? name : resource_by_vendor(role, asked);
}

/* @resource: NULL = no chip */
static json_t *pod_set(const char *name, uint64_t count, const struct job_template *template,
                       const char *resource)
{
        json_t *resources = pod_template_resources(template);

        if (resource != NULL) {
                (void) json_object_set_new(json_object_get(resources, "requests"), resource,
                                           json_string("1"));
                (void) json_object_set_new(json_object_get(resources, "limits"), resource, json_string("1"));
        }
        return json_pack("{s:s, s:I, s:{s:{s:s, s:[{s:s, s:o}]}}}", "name", name, "count", (json_int_t) count,
                         "template", "spec", "restartPolicy", "Never", "containers", "name", "main",
                         "resources", resources);
}

/* Of the chips of a role; NULL: nobody can say what these are called, and none of them may go uncounted. */
static json_t *role_set(const char *name, const char *field, const struct job_role *role,
                        const struct ledger *ledger, const struct kueue_workload *workload, struct err *err)
{
        const json_t *present = workload != NULL ? find_named(workload->pod_sets, name) : NULL;
        const char *resource = resource_of(ledger, role, requests_of(present));

        if (resource == NULL) {
                (void) err_set(err, -ENOENT,
                               "%s: no node shows what chips of this kind are called; give its vendor",
                               field);
                return NULL;
        }
        return pod_set(name, chips_of(role), &role->template, resource);
}

/* Kueue takes one pod set that may be smaller: the first entry that may. Return: 0 or -ENOENT. */
static int add_workers(const struct job *job, const struct ledger *ledger,
                       const struct kueue_workload *workload, json_t *list, struct err *err)
{
        bool partial = false;
        char name[24], field[32];

        for (size_t i = 0; i < job->worker_count; i++) {
                const struct job_role *role = &job->workers[i];
                json_t *set;

                (void) text_format(name, sizeof(name), "w%zu", i);
                (void) text_format(field, sizeof(field), "spec.workers[%zu]", i);
                set = role_set(name, field, role, ledger, workload, err);
                if (set == NULL)
                        return -ENOENT;
                if (!partial && least_of(role) < chips_of(role)) {
                        partial = true;
                        (void) json_object_set_new(set, "minCount",
                                                   json_integer((json_int_t) least_of(role)));
                }
                (void) json_array_append_new(list, set);
        }
        return 0;
}

json_t *kueue_workload_pod_sets(const struct job *job, const struct ledger *ledger,
                                const struct kueue_workload *workload, struct err *err)
{
        json_t *list = json_array(), *set = NULL;
        int r = add_workers(job, ledger, workload, list, err);

        if (r == 0 && job_server_chips(job) > 0) {
                set = role_set(SERVERS, "spec.servers", &job->servers, ledger, workload, err);
                r = set != NULL ? json_array_append_new(list, set) : -ENOENT;
        }
        if (r < 0) {
                json_decref(list);
                return NULL;
        }
        (void) json_array_append_new(list, pod_set(MANAGER, 1, NULL, NULL));
        return list;
}

json_t *kueue_workload_new(const struct job *job, const struct job_pods_owner *owner, const char *queue,
                           int64_t priority, json_t *pod_sets)
{
        char name[KUEUE_NAME_BYTES];
        json_t *object;

        kueue_workload_name(owner->name, owner->uid, name);
        object = json_pack("{s:{s:s, s:s, s:{s:s, s:s}, s:[{s:s, s:s, s:s, s:s, s:b, s:b}]}, s:{s:s, s:o}}",
                           "metadata", "name", name, "namespace", owner->namespace_, "labels",
                           "app.kubernetes.io/managed-by", "remuda", KUEUE_LABEL_JOB, owner->uid,
                           "ownerReferences", "apiVersion", "remuda.dev/v1alpha1", "kind", "TrainingJob",
                           "name", owner->name, "uid", owner->uid, "controller", 1, "blockOwnerDeletion", 1,
                           "spec", "queueName", queue, "podSets", pod_sets);
        if (job->priority_class[0] != '\0')
                (void) json_object_update_new(json_object_get(object, "spec"),
                                              json_pack("{s:s, s:s, s:I}", "priorityClassName",
                                                        job->priority_class, "priorityClassSource",
                                                        "scheduling.k8s.io/priorityclass", "priority",
                                                        (json_int_t) priority));
        return object;
}

/* A quantity may have been written anew: "1024Mi" as "1Gi". */
static bool is_as_much(const json_t *one, const json_t *other)
{
        int64_t a, b;

        return json_is_string(one) && json_is_string(other) &&
               quantity_parse_milli(json_string_value(one), &a) == 0 &&
               quantity_parse_milli(json_string_value(other), &b) == 0 && a == b;
}

static bool are_like(const json_t *one, const json_t *other)
{
        const json_t *have = requests_of(other);
        const char *name;
        json_t *value;

        if (strcmp(json_read_word(one, "name"), json_read_word(other, "name")) != 0 ||
            json_integer_value(json_object_get(one, "count")) !=
                    json_integer_value(json_object_get(other, "count")) ||
            json_integer_value(json_object_get(one, "minCount")) !=
                    json_integer_value(json_object_get(other, "minCount")) ||
            json_object_size(requests_of(one)) != json_object_size(have))
                return false;
        json_object_foreach((json_t *) requests_of(one), name, value)
        {
                if (!is_as_much(value, json_object_get(have, name)))
                        return false;
        }
        return true;
}

bool kueue_workload_asks(const struct kueue_workload *workload, const json_t *pod_sets)
{
        if (json_array_size(workload->pod_sets) != json_array_size(pod_sets))
                return false;
        for (size_t i = 0; i < json_array_size(pod_sets); i++)
                if (!are_like(json_array_get(pod_sets, i), json_array_get(workload->pod_sets, i)))
                        return false;
        return true;
}

/* Members of @from into @to; two that say unlike things are refused. */
static int merge(json_t *to, const json_t *from, const char *what, struct err *err)
{
        const char *name;
        json_t *value, *present;

        json_object_foreach((json_t *) from, name, value)
        {
                if (!json_is_string(value))
                        continue;
                present = json_object_get(to, name);
                if (present != NULL && !json_equal(present, value))
                        return err_set(err, -EINVAL,
                                       "%s say two things of '%.60s': '%.60s' and '%.60s'; mend the "
                                       "ResourceFlavors or admission checks",
                                       what, name, json_string_value(present), json_string_value(value));
                (void) json_object_set(to, name, value);
        }
        return 0;
}

static void add_tolerations(json_t *to, const json_t *from)
{
        json_t *toleration;
        size_t i;

        json_array_foreach((json_t *) from, i, toleration)
        {
                if (json_is_object(toleration))
                        (void) json_array_append(to, toleration);
        }
}

static int take_flavors(const json_t *assignment, const json_t *flavors, struct job_role_place *place,
                        struct err *err)
{
        json_t *seen = json_object(), *flavor;
        const char *resource, *name;
        int r = 0;

        json_object_foreach(json_object_get(assignment, "flavors"), resource, flavor)
        {
                const json_t *spec;

                name = json_string_value(flavor);
                if (r < 0 || name == NULL || json_object_get(seen, name) != NULL)
                        continue;
                (void) json_object_set_new(seen, name, json_true());
                spec = json_object_get(flavors, name);
                if (spec == NULL)
                        r = err_set(err, -ENOENT, "there is no ResourceFlavor '%.100s', which it was given",
                                    name);
                else
                        r = merge(place->node_selector, json_object_get(spec, "nodeLabels"), "its flavors",
                                  err);
                add_tolerations(place->tolerations, json_object_get(spec, "tolerations"));
        }
        json_decref(seen);
        return r;
}

static int take_updates(const struct kueue_workload *workload, const char *name, struct job_role_place *place,
                        struct err *err)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < json_array_size(workload->checks); i++) {
                const json_t *update = find_named(
                        json_object_get(json_array_get(workload->checks, i), "podSetUpdates"), name);

                r = merge(place->node_selector, json_object_get(update, "nodeSelector"),
                          "flavors and admission checks", err);
                if (r == 0)
                        r = merge(place->labels, json_object_get(update, "labels"), "admission checks", err);
                if (r == 0)
                        r = merge(place->annotations, json_object_get(update, "annotations"),
                                  "admission checks", err);
                add_tolerations(place->tolerations, json_object_get(update, "tolerations"));
        }
        return r;
}

/* The lines by which nodes are judged. */
static char *match_of(const struct job_role_place *place)
{
        json_t *pod = json_pack("{s:{s:O, s:O}}", "spec", "nodeSelector", place->node_selector, "tolerations",
                                place->tolerations);
        struct text text = { 0 };

        text_append(&text, "");
        pod_node_match(pod, &text);
        json_decref(pod);
        return text_take(&text, NULL);
}

static int place_of(const struct kueue_workload *workload, const json_t *flavors, const char *name,
                    struct job_role_place *ret, struct err *err)
{
        const json_t *assignment = find_named(workload->assignments, name);
        int r;

        *ret = (struct job_role_place){ .node_selector = json_object(),
                                        .tolerations = json_array(),
                                        .labels = json_object(),
                                        .annotations = json_object() };
        if (assignment == NULL)
                return err_set(err, -EINVAL, "its admission has no podSetAssignment '%.60s'", name);
        r = take_flavors(assignment, flavors, ret, err);
        if (r == 0)
                r = take_updates(workload, name, ret, err);
        if (r == 0 && (ret->match = match_of(ret)) == NULL)
                r = err_set(err, -ENOMEM, "no memory");
        return r;
}

/* What the chips of a pod set are called: what it asks for beside its template. NULL = it asks for none. */
static char *name_of_chips(const struct kueue_workload *workload, const char *name,
                           const struct job_role *role)
{
        json_t *resources = pod_template_resources(&role->template), *value;
        const json_t *beside = json_object_get(resources, "requests");
        const char *asked, *chips = NULL;

        json_object_foreach((json_t *) requests_of(find_named(workload->pod_sets, name)), asked, value)
        {
                if (json_object_get(beside, asked) == NULL)
                        chips = asked;
        }
        json_decref(resources);
        return chips != NULL ? strdup(chips) : NULL;
}

static int role_place_of(const struct kueue_workload *workload, const json_t *flavors, const char *name,
                         const struct job_role *role, struct job_role_place *ret, struct err *err)
{
        int r = place_of(workload, flavors, name, ret, err);

        ret->resource = name_of_chips(workload, name, role);
        return r;
}

/* How many chips an entry was admitted with. Return: 0; -EINVAL: the job cannot run on so few. */
static int count_of(const struct kueue_workload *workload, const char *name, const struct job_role *role,
                    uint64_t *ret, struct err *err)
{
        const json_t *count = json_object_get(find_named(workload->assignments, name), "count");
        json_int_t admitted = json_integer_value(count);

        *ret = chips_of(role);
        if (!json_is_integer(count) || admitted >= (json_int_t) chips_of(role))
                return 0;
        if (admitted < (json_int_t) least_of(role))
                return err_set(err, -EINVAL, "its admission gives %s %lld of %llu chips, and it needs %llu",
                               name, (long long) admitted, (unsigned long long) chips_of(role),
                               (unsigned long long) least_of(role));
        *ret = (uint64_t) admitted;
        return 0;
}

static void set_place(struct job_role_place *place, struct job_role_place *from)
{
        job_role_free_place(place);
        *place = *from;
        *from = (struct job_role_place){ 0 };
}

static void set_chips(struct job_role *role, uint64_t chips)
{
        uint64_t asked = chips_of(role), least = least_of(role);

        role->spec_chips = asked;
        role->spec_min_chips = least;
        role->chips = chips;
        role->min_chips = least < chips ? least : chips;
}

/* What one pod set was given. */
struct share {
        struct job_role_place place;
        uint64_t chips;
};

/* @shares: of each entry, the servers and the manager */
static int read_shares(const struct kueue_workload *workload, const json_t *flavors, const struct job *job,
                       struct share *shares, struct err *err)
{
        size_t count = job->worker_count;
        char name[24];
        int r = 0;

        for (size_t i = 0; r == 0 && i < count; i++) {
                (void) text_format(name, sizeof(name), "w%zu", i);
                r = role_place_of(workload, flavors, name, &job->workers[i], &shares[i].place, err);
                if (r == 0)
                        r = count_of(workload, name, &job->workers[i], &shares[i].chips, err);
        }
        if (r == 0 && job_server_chips(job) > 0)
                r = role_place_of(workload, flavors, SERVERS, &job->servers, &shares[count].place, err);
        return r == 0 ? place_of(workload, flavors, MANAGER, &shares[count + 1].place, err) : r;
}

static void apply_shares(struct share *shares, struct job *job)
{
        size_t count = job->worker_count;

        for (size_t i = 0; i < count; i++) {
                set_place(&job->workers[i].place, &shares[i].place);
                set_chips(&job->workers[i], shares[i].chips);
        }
        set_place(&job->servers.place, &shares[count].place);
        set_place(&job->manager_place, &shares[count + 1].place);
}

int kueue_workload_admit(const struct kueue_workload *workload, const json_t *flavors, struct job *job,
                         struct err *err)
{
        CLEANUP(free_p) struct share *shares = calloc(job->worker_count + 2, sizeof(*shares));
        int r;

        if (shares == NULL)
                return err_set(err, -ENOMEM, "no memory");
        r = read_shares(workload, flavors, job, shares, err);
        if (r == 0)
                apply_shares(shares, job);
        for (size_t i = 0; i < job->worker_count + 2; i++)
                job_role_free_place(&shares[i].place);
        return r;
}
