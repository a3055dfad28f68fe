/* Jobs and the leases of gangs. */
#include "scheduler-extender/ledger/ledger_jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "scheduler-extender/ledger/ledger_account.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

static bool same_key(const struct ledger_job *job, const char *namespace_, size_t bytes, const char *name)
{
        return strncmp(job->key, namespace_, bytes) == 0 && job->key[bytes] == '/' &&
               strcmp(job->key + bytes + 1, name) == 0;
}

static size_t bucket(const char *namespace_, size_t bytes, const char *name)
{
        return (size_t) (hash_bytes(namespace_, bytes, 0) * 31 + hash_text(name, 0)) % LEDGER_JOB_BUCKETS;
}

struct ledger_job *ledger_jobs_find(const struct ledger *ledger, const char *namespace_, const char *name)
{
        size_t bytes = strlen(namespace_);
        struct ledger_job *job = ledger->jobs[bucket(namespace_, bytes, name)];

        while (job != NULL && !same_key(job, namespace_, bytes, name))
                job = job->next;
        return job;
}

struct ledger_job *ledger_jobs_refer(struct ledger *ledger, const char *namespace_, const char *name)
{
        struct ledger_job *job = ledger_jobs_find(ledger, namespace_, name);
        size_t bytes = strlen(namespace_), name_bytes = strlen(name);
        struct ledger_job **place = &ledger->jobs[bucket(namespace_, bytes, name)];

        if (job == NULL) {
                job = calloc(1, sizeof(*job) + bytes + name_bytes + 2);
                if (job == NULL)
                        return NULL;
                memcpy(job->key, namespace_, bytes);
                job->key[bytes] = '/';
                memcpy(job->key + bytes + 1, name, name_bytes + 1);
                job->next = *place;
                *place = job;
        }
        job->references++;
        return job;
}

void ledger_jobs_set_words(struct ledger_job *job, const struct ledger_job_words *words)
{
        free(job->words);
        job->words = words == NULL ? NULL : malloc(sizeof(*words));
        if (job->words != NULL)
                *job->words = *words;
}

static void drop_training(struct ledger_job *job)
{
        if (!job->training_borrowed) {
                job_free(job->training);
                free(job->training);
        }
        job->training_borrowed = false;
        job->training = NULL;
        ledger_jobs_set_words(job, NULL);
}

static void remove_job(struct ledger *ledger, struct ledger_job *job)
{
        const char *slash = strchr(job->key, '/');
        size_t bytes = (size_t) (slash - job->key);
        struct ledger_job **place = &ledger->jobs[bucket(job->key, bytes, slash + 1)];

        while (*place != job)
                place = &(*place)->next;
        *place = job->next;
        drop_training(job);
        free(job->places);
        free(job);
}

void ledger_jobs_release(struct ledger *ledger, struct ledger_job *job)
{
        if (--job->references == 0)
                remove_job(ledger, job);
}

static unsigned what_is(const struct ledger_pod *pod)
{
        bool chips = pod->request.item_count > 0, placed = pod->node != NULL;
        bool there = !pod->ended && !pod->deleting && !request_is_held_back(&pod->request);

        return (unsigned) there << LEDGER_JOBS_THERE | (unsigned) (there && chips) << LEDGER_JOBS_CHIPS |
               (unsigned) ledger_pods_waits(pod) << LEDGER_JOBS_WAIT |
               (unsigned) placed << LEDGER_JOBS_PLACED |
               (unsigned) (chips && (placed || pod->started_usec != 0)) << LEDGER_JOBS_BEGUN;
}

static unsigned is_counted(const struct ledger_pod *pod, unsigned which)
{
        return (unsigned) pod->counted_as >> which & 1;
}

static void set(struct ledger_pod *pod, unsigned now)
{
        for (unsigned i = 0; pod->job != NULL && i < LEDGER_JOBS_COUNT; i++)
                pod->job->members[i] += (now >> i & 1) - is_counted(pod, i);
        pod->counted_as = now & 0x7f;
}

void ledger_jobs_recount(struct ledger_pod *pod)
{
        set(pod, pod->job == NULL ? 0 : what_is(pod));
}

void ledger_jobs_uncount(struct ledger_pod *pod)
{
        set(pod, 0);
}

uint32_t ledger_jobs_others(const struct ledger_job *job, const struct ledger_pod *self,
                            enum ledger_jobs_members which)
{
        bool own = self != NULL && self->job == job && is_counted(self, which) != 0;

        return job == NULL ? 0 : job->members[which] - own;
}

uint32_t ledger_jobs_wanted(const struct request *request, const struct request_member *kinds,
                            size_t kind_count)
{
        uint32_t members = 0;

        for (size_t i = 0; i < kind_count; i++)
                members += kinds[i].members;
        return kind_count > 0 ? members : request->gang_size;
}

int ledger_jobs_set_training(struct ledger *ledger, const char *namespace_, const char *name,
                             struct job *training)
{
        struct ledger_job *job = ledger_jobs_find(ledger, namespace_, name);
        bool had = job != NULL && job->training != NULL;

        if (training == NULL && !had)
                return 0;
        if (!had)
                job = ledger_jobs_refer(ledger, namespace_, name); /* the TrainingJob's own reference */
        if (job == NULL) {
                job_free(training);
                free(training);
                return -ENOMEM;
        }
        drop_training(job);
        job->training = training;
        ledger->generation++;
        if (training == NULL)
                ledger_jobs_release(ledger, job);
        return 0;
}

void ledger_jobs_refer_texts(struct ledger *ledger, const struct request *request)
{
        node_match_refer(&ledger->matches, request->match);
        neighbours_refer(&ledger->neighbours, request->demands, request->labels);
}

void ledger_jobs_release_texts(struct ledger *ledger, const struct request *request)
{
        node_match_release(&ledger->matches, request->match);
        neighbours_release(&ledger->neighbours, request->demands, request->labels);
}

int ledger_jobs_add_slot(struct ledger *ledger, struct ledger_job *job, struct ledger_node *node,
                         const struct request *request)
{
        struct ledger_job_slot *slot = malloc(sizeof(*slot));

        if (slot == NULL)
                return -ENOMEM;
        if (job->slots == NULL)
                job->references++; /* the lease's own */
        *slot = (struct ledger_job_slot){
                .job = job,
                .node = node,
                .next_on_node = node->slots,
                .next_in_job = job->slots,
                .request = *request,
        };
        ledger_jobs_refer_texts(ledger, request); /* the slot may outlive the pod */
        neighbours_moved(&ledger->neighbours, job, request->demands, request->labels);
        node->slots = slot;
        job->slots = slot;
        job->slot_count++;
        ledger->slot_total++;
        ledger_account_refresh(ledger, node);
        return 0;
}

void ledger_jobs_drop_slot(struct ledger *ledger, struct ledger_job_slot *slot)
{
        struct ledger_job_slot **place;

        for (place = &slot->node->slots; *place != slot;)
                place = &(*place)->next_on_node;
        *place = slot->next_on_node;
        for (place = &slot->job->slots; *place != slot;)
                place = &(*place)->next_in_job;
        *place = slot->next_in_job;
        ledger_account_refresh(ledger, slot->node);
        slot->job->slot_count--;
        ledger->slot_total--;
        neighbours_moved(&ledger->neighbours, slot->job, slot->request.demands, slot->request.labels);
        ledger_jobs_release_texts(ledger, &slot->request);
        if (slot->job->slots == NULL)
                ledger_jobs_release(ledger, slot->job);
        free(slot);
}

void ledger_jobs_drop_lease(struct ledger *ledger, struct ledger_job *job)
{
        job->references++; /* the last slot's going must not take the job away under us */
        while (job->slots != NULL)
                ledger_jobs_drop_slot(ledger, job->slots);
        job->together = false;
        ledger_jobs_release(ledger, job);
}

bool ledger_jobs_namespace(const struct ledger_job *job, char *ret, size_t bytes)
{
        return text_format(ret, bytes, "%.*s", (int) (strchr(job->key, '/') - job->key), job->key);
}

void ledger_jobs_abandon(struct ledger *ledger, struct ledger_job *job)
{
        char namespace_[256];

        if (job->slots == NULL)
                return;
        if (ledger_jobs_namespace(job, namespace_, sizeof(namespace_)))
                (void) name_numbers_set(&ledger->gang_left, namespace_, 1);
        ledger->departure_count++;
        ledger_jobs_drop_lease(ledger, job);
}

static bool is_for(const struct ledger_job_slot *slot, const struct request *own)
{
        return slot->request.match == own->match && slot->request.demands == own->demands &&
               request_same_needs(&slot->request, own);
}

/* Rather one on the same node, and of those one that members of other models do not need; and that was made
 * for one that asks for the same beside chips. */
static bool is_better(const struct ledger_job_slot *slot, const struct ledger_job_slot *than,
                      const struct request *own, const struct ledger_node *node)
{
        if ((slot->node == node) != (than->node == node))
                return slot->node == node;
        if (request_same_models(&slot->request, own) != request_same_models(&than->request, own))
                return request_same_models(&slot->request, own);
        return is_for(slot, own) && !is_for(than, own);
}

void ledger_jobs_give_up_slot(struct ledger *ledger, const struct ledger_pod *pod,
                              const struct ledger_node *node)
{
        struct ledger_job_slot *chosen = NULL;
        struct request own = pod->request;

        if (pod->job == NULL || pod->job->place_count > 0 || ledger_pods_has_claimed(pod))
                return;
        ledger_chips_only(ledger, &own); /* as the slots are: NICs are leased to nobody */
        for (struct ledger_job_slot *slot = pod->job->slots; slot != NULL; slot = slot->next_in_job)
                if (request_chips(&slot->request) == request_chips(&own) &&
                    slot->request.items[0].resource == own.items[0].resource &&
                    (chosen == NULL || is_better(slot, chosen, &own, node)))
                        chosen = slot;
        if (chosen != NULL)
                ledger_jobs_drop_slot(ledger, chosen);
}

void ledger_jobs_set_claimed(struct ledger *ledger, struct ledger_pod *pod, bool claimed,
                             const struct ledger_node *node)
{
        if (claimed && pod->request.by_claims && pod->node == NULL)
                ledger_jobs_give_up_slot(ledger, pod, node);
        pod->claimed = claimed;
        if (!pod->request.by_claims)
                return;
        ledger_jobs_recount(pod);
        if (pod->node != NULL)
                ledger_account_refresh(ledger, pod->node);
        ledger->generation++;
}

/* What `claimed_places` has of a node: never 0, which is none. */
static uint64_t node_number(const char *node)
{
        return hash_text(node, 0) | 1;
}

/* Has a claim of its name its chips there, before there is a pod? One of an earlier plan may have others' for
 * a while. */
static bool is_claimed(const struct ledger *ledger, const char *namespace_,
                       const struct ledger_job_place *place)
{
        char key[512];

        return ledger->claimed_places.map.count > 0 &&
               text_format(key, sizeof(key), "%s/%s", namespace_, place->pod) &&
               name_numbers_get(&ledger->claimed_places, key) == node_number(place->node);
}

/* The node of a place that no pod of its name has taken, nor a claim of its, or NULL. */
static struct ledger_node *open_node(const struct ledger *ledger, const char *namespace_,
                                     const struct ledger_job_place *place)
{
        const struct ledger_pod *pod = ledger_pods_find(ledger, namespace_, place->pod);

        if (is_claimed(ledger, namespace_, place))
                return NULL;
        if (pod != NULL && (pod->node != NULL || pod->ended || pod->claimed))
                return NULL;
        return ledger_nodes_find(ledger, place->node, strlen(place->node));
}

/* Are all members there, and one of them placed? The others follow at once, and without them it has its chips
 * for nothing. */
static bool is_being_placed(const struct ledger_job *gang)
{
        for (const struct ledger_pod *pod = gang->pods; pod != NULL; pod = pod->next_in_job) {
                enum ledger_jobs_members there = pod->kind_count > 0 ? LEDGER_JOBS_CHIPS : LEDGER_JOBS_THERE;

                if (is_counted(pod, LEDGER_JOBS_THERE) &&
                    gang->members[there] < ledger_jobs_wanted(&pod->request, pod->kinds, pod->kind_count))
                        return false;
        }
        return gang->members[LEDGER_JOBS_PLACED] > 0;
}

/* Is more leased on the node, of what is asked for, than pods and claims have left? */
static bool is_leased_twice(const struct ledger_node *node, const struct request *request)
{
        uint64_t by_claims = 0, leased = 0, left = 0;

        for (const struct ledger_job_slot *slot = node->slots; slot != NULL; slot = slot->next_on_node)
                by_claims += slot->request.by_claims ? request_chips(&slot->request) : 0;
        if (request->by_claims)
                return node->devices != NULL && by_claims > node->devices->ours_free;
        for (uint32_t g = 0; g < node->group_count; g++)
                if (request_asks_for(request, node->groups[g].resource)) {
                        leased += node->groups[g].leased;
                        left += ledger_group_free(&node->groups[g]);
                }
        return leased > left;
}

/* Could the plan's pod have what the slot leases? An emergency's is not taken by who is none. */
static bool is_in_its_way(const struct ledger_job_slot *slot, const struct request *request)
{
        bool same = request->by_claims;

        for (size_t i = 0; i < slot->request.item_count && !same; i++)
                same = request_asks_for(request, slot->request.items[i].resource);
        return same && slot->request.by_claims == request->by_claims &&
               (request->emergency || !slot->request.emergency);
}

/* Who plans a TrainingJob knows of no gang's lease. A gang whose members are not all there, or of whom none
 * is placed, is planned again when it asks again; the plan takes as many of its chips as it lacks. Example:
 * of a node's eight chips a gang has leased six for members of which the last never comes, and a job is
 * planned onto four: the lease of one member after the other goes until four are left. */
static void take_from_gangs(struct ledger *ledger, const struct ledger_job_slot *place)
{
        for (struct ledger_job_slot *slot = place->node->slots, *next; slot != NULL; slot = next) {
                next = slot->next_on_node;
                if (!is_leased_twice(place->node, &place->request))
                        return;
                if (slot->job->place_count > 0 || !is_in_its_way(slot, &place->request) ||
                    is_being_placed(slot->job))
                        continue;
                ledger->departure_count++;
                ledger_jobs_drop_slot(ledger, slot);
        }
}

void ledger_jobs_keep_plan(struct ledger *ledger, struct ledger_job *job)
{
        char namespace_[256];

        if (job->place_count == 0 || !ledger_jobs_namespace(job, namespace_, sizeof(namespace_)))
                return;
        job->lease_ends_usec = UINT64_MAX;
        for (size_t i = 0; i < job->place_count; i++) {
                struct ledger_job_place *place = &job->places[i];
                struct ledger_node *node = open_node(ledger, namespace_, place);

                if (place->slot != NULL && place->slot->node != node) {
                        ledger_jobs_drop_slot(ledger, place->slot);
                        place->slot = NULL;
                }
                if (place->slot == NULL && node != NULL &&
                    ledger_jobs_add_slot(ledger, job, node, &place->request) == 0) {
                        place->slot = job->slots;
                        take_from_gangs(ledger, place->slot);
                }
        }
}

int ledger_jobs_claim_place(struct ledger *ledger, const char *pod_key, const char *node)
{
        uint64_t number = node != NULL ? node_number(node) : 0;
        struct ledger_job *job = ledger_jobs_planning(ledger, pod_key);
        int r = 0;

        if (name_numbers_get(&ledger->claimed_places, pod_key) == number)
                return 0;
        if (number != 0)
                r = name_numbers_set(&ledger->claimed_places, pod_key, number);
        else
                name_numbers_drop(&ledger->claimed_places, pod_key);
        if (job != NULL)
                ledger_jobs_keep_plan(ledger, job);
        return r;
}

void ledger_jobs_keep_plans(struct ledger *ledger)
{
        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                for (struct ledger_job *job = ledger->jobs[i]; job != NULL; job = job->next)
                        ledger_jobs_keep_plan(ledger, job);
}

/* A pod that a plan has a place for. */
struct planned {
        struct name_map_entry entry;
        struct ledger_job *job;
        char key[];
};

struct ledger_job *ledger_jobs_planning(const struct ledger *ledger, const char *pod_key)
{
        const struct planned *planned = (struct planned *) name_map_find(&ledger->planned, pod_key);

        return planned == NULL ? NULL : planned->job;
}

/* Without memory the pod is found by its label alone. */
static void add_planned(struct ledger *ledger, struct ledger_job *job, const char *key)
{
        struct planned *planned =
                ledger_jobs_planning(ledger, key) != NULL ? NULL : malloc(sizeof(*planned) + strlen(key) + 1);

        if (planned == NULL)
                return;
        memcpy(planned->key, key, strlen(key) + 1);
        planned->entry.key = planned->key;
        planned->job = job;
        if (name_map_insert(&ledger->planned, &planned->entry) < 0)
                free(planned);
}

static void remove_planned(struct ledger *ledger, const struct ledger_job *job, const char *key)
{
        struct planned *planned = (struct planned *) name_map_find(&ledger->planned, key);

        if (planned == NULL || planned->job != job)
                return;
        name_map_remove(&ledger->planned, &planned->entry);
        free(planned);
}

/* The pods of the job's present places are its own, or not any more. */
static void note_places(struct ledger *ledger, struct ledger_job *job, bool plans)
{
        int bytes = (int) (strchr(job->key, '/') - job->key);
        char key[256 + LEDGER_JOB_POD_BYTES];

        for (size_t i = 0; i < job->place_count; i++)
                if (!text_format(key, sizeof(key), "%.*s/%s", bytes, job->key, job->places[i].pod))
                        continue;
                else if (plans)
                        add_planned(ledger, job, key);
                else
                        remove_planned(ledger, job, key);
}

static bool same_places(const struct ledger_job *job, const struct ledger_job_place *places, size_t count)
{
        for (size_t i = 0; i < count && count == job->place_count; i++)
                if (strcmp(job->places[i].pod, places[i].pod) != 0 ||
                    strcmp(job->places[i].node, places[i].node) != 0 ||
                    memcmp(&job->places[i].request, &places[i].request, sizeof(struct request)) != 0)
                        return false;
        return count == job->place_count;
}

int ledger_jobs_set_plan(struct ledger *ledger, const char *namespace_, const char *name,
                         const struct ledger_job_place *places, size_t count)
{
        struct ledger_job *job = ledger_jobs_find(ledger, namespace_, name);
        struct ledger_job_place *copies = count == 0 ? NULL : calloc(count, sizeof(*copies));

        if ((job == NULL && count == 0) || (job != NULL && same_places(job, places, count))) {
                free(copies);
                return 0;
        }
        if ((count > 0 && copies == NULL) || (job = ledger_jobs_refer(ledger, namespace_, name)) == NULL) {
                free(copies);
                return -ENOMEM;
        }
        ledger_jobs_drop_lease(ledger, job);
        if (job->place_count == 0 && count > 0)
                job->references++; /* the plan's own */
        if (job->place_count > 0 && count == 0)
                job->references--;
        for (size_t i = 0; i < count; i++) {
                memcpy(&copies[i], &places[i], sizeof(copies[i]));
                copies[i].slot = NULL;
        }
        note_places(ledger, job, false);
        free(job->places);
        job->places = copies;
        job->place_count = count;
        note_places(ledger, job, true);
        ledger_jobs_keep_plan(ledger, job);
        ledger_jobs_release(ledger, job);
        return 0;
}

void ledger_jobs_free_all(struct ledger *ledger)
{
        for (struct name_map_entry *e = name_map_first(&ledger->planned), *next; e != NULL; e = next) {
                next = name_map_next(&ledger->planned, e);
                free(e);
        }
        name_map_free(&ledger->planned);
        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                while (ledger->jobs[i] != NULL) {
                        struct ledger_job *job = ledger->jobs[i];

                        ledger->jobs[i] = job->next;
                        for (struct ledger_job_slot *slot = job->slots, *next; slot != NULL; slot = next) {
                                next = slot->next_in_job;
                                free(slot);
                        }
                        drop_training(job);
                        free(job->places);
                        free(job);
                }
}
