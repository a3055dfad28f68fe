/* Pods are found by open addressing over their keys; each is in its node's list or among the pending ones. */
#include "scheduler-extender/ledger/ledger_pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "scheduler-extender/ledger/ledger_account.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"

static uint64_t pod_hash(const char *namespace_, size_t namespace_bytes, const char *name)
{
        return hash_bytes(namespace_, namespace_bytes, 0) * 31 + hash_text(name, 0);
}

static uint64_t pod_own_hash(const struct ledger_pod *pod)
{
        return pod_hash(pod->key, (size_t) (pod->name - pod->key) - 1, pod->name);
}

static void pod_insert_slot(struct ledger_pod **slots, uint32_t slot_count, struct ledger_pod *pod)
{
        uint32_t mask = slot_count - 1, i = (uint32_t) pod_own_hash(pod) & mask;

        while (slots[i] != NULL)
                i = (i + 1) & mask;
        slots[i] = pod;
}

static int insert(struct ledger *ledger, struct ledger_pod *pod)
{
        if (ledger->pod_count >= ledger->pod_slot_count / 2) {
                uint32_t count = ledger->pod_slot_count == 0 ? 256 : ledger->pod_slot_count * 2;
                struct ledger_pod **slots = calloc(count, sizeof(struct ledger_pod *));

                if (slots == NULL)
                        return -ENOMEM;
                for (uint32_t i = 0; i < ledger->pod_slot_count; i++)
                        if (ledger->pod_slots[i] != NULL)
                                pod_insert_slot(slots, count, ledger->pod_slots[i]);
                free(ledger->pod_slots);
                ledger->pod_slots = slots;
                ledger->pod_slot_count = count;
        }
        pod_insert_slot(ledger->pod_slots, ledger->pod_slot_count, pod);
        ledger->pod_count++;
        return 0;
}

static struct ledger_pod *find(const struct ledger *ledger, const char *namespace_, const char *name)
{
        size_t bytes = strlen(namespace_);
        uint32_t mask = ledger->pod_slot_count - 1;

        if (ledger->pod_slot_count == 0)
                return NULL;
        for (uint32_t i = (uint32_t) pod_hash(namespace_, bytes, name) & mask;; i = (i + 1) & mask) {
                struct ledger_pod *pod = ledger->pod_slots[i];

                if (pod == NULL ||
                    (strcmp(pod->name, name) == 0 && strncmp(pod->key, namespace_, bytes) == 0 &&
                     pod->key + bytes + 1 == pod->name))
                        return pod;
        }
}

static void take_out(struct ledger *ledger, struct ledger_pod *pod)
{
        uint32_t mask = ledger->pod_slot_count - 1, hole = (uint32_t) pod_own_hash(pod) & mask;

        while (ledger->pod_slots[hole] != pod)
                hole = (hole + 1) & mask;
        for (uint32_t i = (hole + 1) & mask; ledger->pod_slots[i] != NULL; i = (i + 1) & mask) {
                uint32_t home = (uint32_t) pod_own_hash(ledger->pod_slots[i]) & mask;

                if (((i - home) & mask) >= ((i - hole) & mask)) {
                        ledger->pod_slots[hole] = ledger->pod_slots[i];
                        hole = i;
                }
        }
        ledger->pod_slots[hole] = NULL;
        ledger->pod_count--;
}

bool ledger_pods_gives_way(const struct ledger_pod *pod, enum ledger_pods_takes takes)
{
        bool regular = pod->node != NULL && !pod->node->reserved;

        return takes == LEDGER_PODS_TAKES_ANYBODY ||
               (takes >= LEDGER_PODS_TAKES_BORROWERS && ledger_pods_borrows(pod)) ||
               (takes >= LEDGER_PODS_TAKES_PREEMPTIBLE && regular && pod->request.preemptible &&
                !pod->request.emergency);
}

bool ledger_pods_is_of(const struct ledger_pod *pod, const char *namespace_)
{
        size_t bytes = (size_t) (pod->name - pod->key) - 1;

        return strncmp(pod->key, namespace_, bytes) == 0 && namespace_[bytes] == '\0';
}

bool ledger_pods_same_namespace(const char *a, const char *b)
{
        for (; *a == *b && *a != '/'; a++, b++)
                ;
        return *a == *b;
}

void ledger_pods_free_one(struct ledger_pod *pod)
{
        if (pod != NULL) {
                free(pod->kinds);
                free(pod->spared_why);
                free(pod->nominated);
        }
        free(pod);
}

/* Canonical order, so that the accounts do not depend on the order of events. */
int ledger_pods_compare(const struct ledger_pod *a, const struct ledger_pod *b)
{
        if (a->created_usec != b->created_usec)
                return a->created_usec < b->created_usec ? -1 : 1;
        return strcmp(a->key, b->key);
}

static void add_pending(struct ledger *ledger, struct ledger_pod *pod)
{
        pod->previous_pending = NULL;
        pod->next_pending = ledger->pending;
        if (ledger->pending != NULL)
                ledger->pending->previous_pending = pod;
        ledger->pending = pod;
        ledger->pending_count++;
}

static void remove_pending(struct ledger *ledger, struct ledger_pod *pod)
{
        if (pod->previous_pending == NULL && ledger->pending != pod)
                return; /* ledger_pods_detach() has taken it off its node */
        if (pod->previous_pending != NULL)
                pod->previous_pending->next_pending = pod->next_pending;
        else
                ledger->pending = pod->next_pending;
        if (pod->next_pending != NULL)
                pod->next_pending->previous_pending = pod->previous_pending;
        pod->previous_pending = pod->next_pending = NULL;
        ledger->pending_count--;
}

/* @there: is it one of the node's pods? */
static void count_ending(struct ledger *ledger, struct ledger_node *node, struct ledger_pod *pod, bool there)
{
        bool ends = there && (pod->request.deadline_sec != 0 || pod->deletion_usec != 0);

        node->ending += (uint32_t) ends - pod->counted_ending;
        pod->counted_ending = ends;
        ledger->roster.seats[node->index].ends = node->ending > 0;
}

static void attach(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node)
{
        struct ledger_pod **place = &node->pods;

        while (*place != NULL && ledger_pods_compare(*place, pod) < 0)
                place = &(*place)->next_on_node;
        pod->next_on_node = *place;
        *place = pod;
        count_ending(ledger, node, pod, true);
        remove_pending(ledger, pod);
        pod->node = node;
        ledger_jobs_recount(pod);
        neighbours_changed(&ledger->neighbours);
        ledger_account_refresh(ledger, node);
}

void ledger_pods_detach(struct ledger *ledger, struct ledger_pod *pod)
{
        struct ledger_node *node = pod->node;
        struct ledger_pod **place = &node->pods;

        while (*place != pod)
                place = &(*place)->next_on_node;
        *place = pod->next_on_node;
        count_ending(ledger, node, pod, false);
        pod->node = NULL;
        ledger_jobs_recount(pod);
        pod->next_on_node = NULL;
        neighbours_changed(&ledger->neighbours);
        ledger_account_refresh(ledger, node);
}

static void detach(struct ledger *ledger, struct ledger_pod *pod)
{
        struct ledger_node *node = pod->node;

        if (node == NULL)
                return;
        ledger_pods_detach(ledger, pod);
        add_pending(ledger, pod);
        ledger_nodes_forget_if_empty(ledger, node);
        if (pod->request.item_count > 0)
                ledger->departure_count++;
}

void ledger_pods_wait(struct ledger *ledger, struct ledger_pod *pod)
{
        add_pending(ledger, pod);
}

void ledger_pods_attach(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node)
{
        attach(ledger, pod, node);
}

static void leave_job(struct ledger *ledger, struct ledger_pod *pod)
{
        struct ledger_pod **place;

        if (pod->job == NULL)
                return;
        for (place = &pod->job->pods; *place != NULL && *place != pod;)
                place = &(*place)->next_in_job;
        if (*place == pod)
                *place = pod->next_in_job;
        ledger_jobs_uncount(pod);
        pod->job->pod_count--;
        if (pod->job->pods == NULL && pod->job->place_count == 0)
                ledger_jobs_abandon(ledger, pod->job);
        ledger_jobs_release(ledger, pod->job);
        pod->job = NULL;
}

void ledger_pods_drop_reservations_on(struct ledger *ledger, const struct ledger_pod *pod,
                                      struct ledger_node *node)
{
        for (struct ledger_backfill **place = &node->backfills; *place != NULL;) {
                struct ledger_backfill *backfill = *place;

                if (backfill->pod != pod) {
                        place = &backfill->next;
                        continue;
                }
                *place = backfill->next;
                ledger->backfill_total--;
                ledger_touch(ledger, node);
                free(backfill);
        }
}

void ledger_pods_drop_reservations(struct ledger *ledger, const struct ledger_pod *pod)
{
        for (uint32_t i = 0; i < ledger->node_count && pod->waited_usec > 0 && ledger->backfill_total > 0;
             i++)
                ledger_pods_drop_reservations_on(ledger, pod, ledger->nodes[i]);
}

/* A plan's place is the pod's of that name; its label is the tenant's, and may be another, or none. */
static struct ledger_job *plan_of(const struct ledger *ledger, const struct ledger_pod *pod)
{
        struct ledger_job *planning = ledger_jobs_planning(ledger, pod->key);

        return planning != NULL ? planning : pod->job;
}

static void keep_plan(struct ledger *ledger, const struct ledger_pod *pod)
{
        struct ledger_job *job = plan_of(ledger, pod);

        if (job != NULL)
                ledger_jobs_keep_plan(ledger, job);
}

static void remove_pod(struct ledger *ledger, struct ledger_pod *pod)
{
        struct ledger_job *job = plan_of(ledger, pod);

        ledger_pods_drop_reservations(ledger, pod);
        detach(ledger, pod);
        if (job != NULL)
                job->references++; /* it may be its last pod */
        leave_job(ledger, pod);
        remove_pending(ledger, pod);
        take_out(ledger, pod);
        node_match_release(&ledger->matches, pod->request.match);
        neighbours_release(&ledger->neighbours, pod->request.demands, pod->labels);
        ledger_pods_free_one(pod);
        ledger->generation++;
        if (job == NULL)
                return;
        ledger_jobs_keep_plan(ledger, job);
        ledger_jobs_release(ledger, job);
}

static struct ledger_pod *make_pod(struct ledger *ledger, const struct ledger_pod_facts *facts)
{
        size_t namespace_bytes = strlen(facts->namespace_), name_bytes = strlen(facts->name);
        size_t uid_bytes = strlen(facts->uid);
        struct ledger_pod *pod = calloc(1, sizeof(*pod) + namespace_bytes + name_bytes + uid_bytes + 3);

        if (pod == NULL)
                return NULL;
        memcpy(pod->text, facts->namespace_, namespace_bytes);
        pod->text[namespace_bytes] = '/';
        memcpy(pod->text + namespace_bytes + 1, facts->name, name_bytes + 1);
        memcpy(pod->text + namespace_bytes + name_bytes + 2, facts->uid, uid_bytes + 1);
        pod->key = pod->text;
        pod->name = pod->text + namespace_bytes + 1;
        pod->uid = pod->text + namespace_bytes + name_bytes + 2;
        if (insert(ledger, pod) < 0) {
                free(pod);
                return NULL;
        }
        add_pending(ledger, pod);
        return pod;
}

static int join_job(struct ledger *ledger, struct ledger_pod *pod, const struct ledger_pod_facts *facts)
{
        struct ledger_job *job = NULL;

        if (facts->job != NULL && pod->job != NULL &&
            ledger_jobs_find(ledger, facts->namespace_, facts->job) == pod->job)
                return 0;
        if (facts->job != NULL && facts->job[0] != '\0') {
                job = ledger_jobs_refer(ledger, facts->namespace_, facts->job);
                if (job == NULL)
                        return -ENOMEM;
        }
        leave_job(ledger, pod);
        pod->job = job;
        if (job != NULL) {
                pod->next_in_job = job->pods;
                job->pods = pod;
                job->pod_count++;
        }
        return 0;
}

static int bind_pod(struct ledger *ledger, struct ledger_pod *pod, const char *node_name)
{
        struct ledger_node *node = ledger_nodes_make(ledger, node_name);

        if (node == NULL)
                return -ENOMEM;
        ledger_jobs_give_up_slot(ledger, pod, node);
        ledger_pods_drop_reservations(ledger, pod);
        pod->waited_usec = 0;
        attach(ledger, pod, node);
        return 0;
}

static int copy_kinds(struct ledger_pod *pod, const struct ledger_pod_facts *facts)
{
        free(pod->kinds);
        pod->kinds = NULL;
        pod->kind_count = 0;
        if (facts->kind_count == 0)
                return 0;
        pod->kinds = malloc(facts->kind_count * sizeof(*pod->kinds));
        if (pod->kinds == NULL)
                return -ENOMEM;
        memcpy(pod->kinds, facts->kinds, facts->kind_count * sizeof(*pod->kinds));
        pod->kind_count = facts->kind_count;
        return 0;
}

/* What its claims came to when its gang was asked about (claims/claims_members.h) is not in its object. */
static void keep_claims(const struct request *before, struct request *now)
{
        if (!before->by_claims)
                return;
        memcpy(now->items, before->items, sizeof(now->items));
        now->item_count = before->item_count;
        now->same_group = now->same_group || before->same_group;
        now->by_claims = 1;
}

/* What the pod wishes, of one that is on no node yet. */
static void copy_wishes(struct ledger *ledger, struct ledger_pod *pod, const struct ledger_pod_facts *facts)
{
        uint32_t before = pod->request.match, demands = pod->request.demands;
        struct request wished = facts->request;

        keep_claims(&pod->request, &wished);
        pod->request = wished;
        pod->request.demands = neighbours_hold_demands(&ledger->neighbours, facts->demands);
        neighbours_release(&ledger->neighbours, demands, NEIGHBOURS_NONE);
        pod->request.match = facts->node_match == NULL ? NODE_MATCH_ANY
                                                       : node_match_hold(&ledger->matches, facts->node_match);
        node_match_release(&ledger->matches, before);
        memcpy(pod->parts, facts->parts, sizeof(pod->parts));
        pod->part_count = facts->part_count;
        pod->borrowed = facts->borrowed;
        pod->saves = facts->saves;
}

/* Without memory nobody says where it goes. */
static void copy_nominated(struct ledger_pod *pod, const char *nominated)
{
        bool some = nominated != NULL && nominated[0] != '\0';

        if (some && pod->nominated != NULL && strcmp(pod->nominated, nominated) == 0)
                return;
        free(pod->nominated);
        pod->nominated = some ? strdup(nominated) : NULL;
}

static void copy_life(struct ledger_pod *pod, const struct ledger_pod_facts *facts)
{
        copy_nominated(pod, facts->nominated);
        pod->deleting = facts->deleting;
        pod->has_claims = facts->has_claims;
        pod->ended = facts->ended;
        pod->created_usec = facts->created_usec;
        pod->started_usec = facts->started_usec;
        pod->ended_usec = facts->ended_usec;
        pod->deletion_usec = facts->deletion_usec;
        pod->weight = facts->weight;
        pod->batch_share = facts->batch_share;
}

static bool is_bound(const struct ledger_pod_facts *facts)
{
        return facts->node != NULL && facts->node[0] != '\0' && !facts->ended;
}

/* Is it on a node, and says the object nothing else? A bind of ours that is on its way is not shown yet. */
static bool stays(const struct ledger_pod *pod, const struct ledger_pod_facts *facts)
{
        if (pod->node == NULL || pod->request.unreadable) /* of the latter nothing is decided yet */
                return false;
        return is_bound(facts) ? strcmp(pod->node->name, facts->node) == 0
                               : pod->assumed && !facts->ended && !facts->deleting;
}

/* An object that was hard to read may have told too little of it; and which of many resources are chips may
 * be known by now. */
static void count_more(struct ledger_pod *pod, const struct ledger_pod_facts *facts)
{
        if (facts->request.unreadable || facts->request.item_count == 0 ||
            (!pod->request.more && request_chips(&facts->request) <= request_chips(&pod->request)))
                return;
        memcpy(pod->request.items, facts->request.items, sizeof(pod->request.items));
        pod->request.item_count = facts->request.item_count;
        pod->request.more = facts->request.more;
}

static int stay(struct ledger *ledger, struct ledger_pod *pod, const struct ledger_pod_facts *facts)
{
        count_more(pod, facts);
        if (!facts->request.unreadable)
                pod->request.needs = facts->request.needs; /* a pod can be resized where it is */
        pod->assumed = pod->assumed && !is_bound(facts);
        count_ending(ledger, pod->node, pod, true);
        ledger_jobs_recount(pod);
        ledger_account_refresh(ledger, pod->node);
        return 0;
}

/* Who says how many the gang has: the pod, or of a manager that says nothing a fellow. */
static const struct ledger_pod *speaker(const struct ledger_pod *pod)
{
        const struct ledger_pod *fellow =
                pod->request.item_count > 0 || pod->request.gang_size > 1 ? pod : NULL;

        for (const struct ledger_pod *other = pod->job->pods; other != NULL && fellow == NULL;
             other = other->next_in_job)
                fellow = other->request.item_count > 0 ? other : NULL;
        return fellow;
}

/* Is it there as the second of its gang, or as one of so many that the gang may begin? */
static bool makes_several(const struct ledger_pod *pod)
{
        const struct ledger_pod *of = pod->job == NULL ? NULL : speaker(pod);
        enum ledger_jobs_members which = pod->request.item_count > 0 ? LEDGER_JOBS_CHIPS : LEDGER_JOBS_THERE;
        uint32_t members, there;

        if (of == NULL || ((unsigned) pod->counted_as >> which & 1) == 0)
                return false;
        members = ledger_jobs_wanted(&of->request, of->kinds, of->kind_count);
        there = pod->job->members[of->kind_count > 0 ? LEDGER_JOBS_CHIPS : LEDGER_JOBS_THERE];
        return members > 1 && (there == 2 || there >= members);
}

static int place_anew(struct ledger *ledger, struct ledger_pod *pod, const struct ledger_pod_facts *facts)
{
        const struct ledger_job *former = makes_several(pod) ? pod->job : NULL;

        pod->assumed = false;
        detach(ledger, pod);
        if (join_job(ledger, pod, facts) < 0 || copy_kinds(pod, facts) < 0)
                return -ENOMEM;
        copy_wishes(ledger, pod, facts);
        ledger_jobs_recount(pod);
        ledger->arrival_count += pod->job != former && makes_several(pod);
        return is_bound(facts) ? bind_pod(ledger, pod, facts->node) : 0;
}

/* What others may demand of it: its labels may change at any time. */
static void copy_labels(struct ledger *ledger, struct ledger_pod *pod, const struct ledger_pod_facts *facts)
{
        uint32_t before = pod->labels;

        pod->labels = neighbours_hold_labels(&ledger->neighbours, facts->ended ? NULL : facts->labels);
        if (pod->labels != before || pod->deleting != facts->deleting)
                neighbours_changed(&ledger->neighbours);
        neighbours_release(&ledger->neighbours, NEIGHBOURS_NONE, before);
}

int ledger_pods_set(struct ledger *ledger, const struct ledger_pod_facts *facts)
{
        struct ledger_pod *pod = find(ledger, facts->namespace_, facts->name);
        int r;

        if (pod != NULL && strcmp(pod->uid, facts->uid) != 0) {
                remove_pod(ledger, pod);
                pod = NULL;
        }
        if (pod == NULL)
                pod = make_pod(ledger, facts);
        if (pod == NULL)
                return -ENOMEM;
        copy_labels(ledger, pod, facts);
        copy_life(pod, facts);
        ledger->generation++;
        r = stays(pod, facts) ? stay(ledger, pod, facts) : place_anew(ledger, pod, facts);
        keep_plan(ledger, pod);
        return r;
}

void ledger_pods_drop(struct ledger *ledger, const char *namespace_, const char *name)
{
        struct ledger_pod *pod = find(ledger, namespace_, name);

        if (pod != NULL)
                remove_pod(ledger, pod);
}

struct ledger_pod *ledger_pods_find(const struct ledger *ledger, const char *namespace_, const char *name)
{
        return find(ledger, namespace_, name);
}

int ledger_pods_assume(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node,
                       const struct ledger_pod_part *parts, size_t part_count)
{
        pod->part_count = (uint8_t) (part_count < LEDGER_POD_PARTS_MAX ? part_count : LEDGER_POD_PARTS_MAX);
        if (part_count > 0)
                memcpy(pod->parts, parts, pod->part_count * sizeof(*parts));
        pod->borrowed = node->reserved && !pod->request.emergency;
        pod->done = pod->settling = false;
        pod->assumed = true;
        ledger_jobs_give_up_slot(ledger, pod, node);
        ledger_pods_drop_reservations(ledger, pod);
        pod->waited_usec = 0;
        attach(ledger, pod, node);
        keep_plan(ledger, pod);
        return 0;
}

void ledger_pods_forget(struct ledger *ledger, struct ledger_pod *pod)
{
        if (!pod->assumed)
                return;
        pod->assumed = pod->borrowed = false;
        pod->part_count = 0;
        detach(ledger, pod);
        keep_plan(ledger, pod);
}
