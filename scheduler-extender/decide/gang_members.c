/* The members that are known, and copies or entries of the TrainingJob for those that are not there yet. */
#include "scheduler-extender/decide/gang_members.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/open_groups.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

bool gang_members_are_lone(const struct ledger_job *job, const struct ledger_pod *self,
                           const struct request *request)
{
        if (request->class_chips <= 1 || request_chips(request) != 1 ||
            (job != NULL && job->training != NULL))
                return false;
        return ledger_jobs_others(job, self, LEDGER_JOBS_PLACED) +
                       ledger_jobs_others(job, self, LEDGER_JOBS_WAIT) ==
               0;
}

uint32_t gang_members_there(const struct ledger_job *job, const struct ledger_pod *self, bool listed)
{
        return 1 + ledger_jobs_others(job, self, listed ? LEDGER_JOBS_CHIPS : LEDGER_JOBS_THERE);
}

/* A manager without chips may run before the others. Who has ended or goes had begun: another is made in the
 * place of one that was evicted, and the rest may be done. */
bool gang_members_are_lacking(const struct ledger_job *job, const struct ledger_pod *self,
                              const struct request *request, const struct request_member *kinds,
                              size_t kind_count)
{
        return job != NULL && job->training == NULL && job->place_count == 0 &&
               request->group == REQUEST_GROUP_NONE && job->members[LEDGER_JOBS_BEGUN] == 0 &&
               gang_members_there(job, self, kind_count > 0) < ledger_jobs_wanted(request, kinds, kind_count);
}

static bool is_kind(const struct request *request, const struct request_member *kind)
{
        return request->item_count > 0 && request->items[0].resource == kind->resource &&
               request->items[0].chips == kind->chips;
}

/* Where members may go that are not created yet: like the one that asks, unless that is a single node (a
 * selector by host name): such a pod says nothing of its fellows. */
static uint32_t match_of_copies(const struct rules_context *ctx)
{
        const struct ledger *ledger = ctx->ledger;
        size_t allowed = 0;

        for (uint32_t i = 0; i < ledger->node_count && allowed < 2; i++) {
                const struct ledger_node *node = ledger->nodes[i];

                allowed += !node->has_object || node_match_takes(&ledger->matches, ctx->request->match,
                                                                 node->name, node->index, &node->traits);
        }
        return allowed == 1 ? NODE_MATCH_ANY : ctx->request->match;
}

/* Have claims given the asking pod its chips? It has its place, and the others still need theirs. */
static bool has_its_chips(const struct rules_context *ctx)
{
        return ctx->request->by_claims && ctx->request->item_count == 0;
}

/* The member that asks. */
static struct request asking(const struct rules_context *ctx)
{
        struct request request = *ctx->request;

        request.labels = ctx->self != NULL ? ctx->self->labels : ctx->request->labels;
        return request;
}

/* A member of the kind: the asking pod, or a pending one that is known. */
static bool known_of_kind(const struct rules_context *ctx, const struct ledger_job *job,
                          const struct request_member *kind, struct request *ret)
{
        bool known = is_kind(ctx->request, kind);

        *ret = asking(ctx);
        for (const struct ledger_pod *pod = job->pods; pod != NULL && !known; pod = pod->next_in_job) {
                known = pod->node == NULL && is_kind(&pod->request, kind);
                if (known) {
                        *ret = pod->request;
                        ret->labels = pod->labels;
                        ledger_chips_only(ctx->ledger, ret);
                }
        }
        return known;
}

/* The request of a kind's members: where they may go, and what they ask for beside chips, by the one that is
 * known; of others only that those of the asking pod's resource may go where it may. */
static struct request request_of_kind(const struct rules_context *ctx, const struct ledger_job *job,
                                      const struct request_member *kind)
{
        struct request request = asking(ctx), like;
        bool known = known_of_kind(ctx, job, kind, &like),
             alike = kind->resource == ctx->request->items[0].resource;

        if (known && like.item_count == 1)
                memcpy(request.items, like.items, sizeof(request.items));
        request.beside_count = known && like.item_count == 1 ? like.beside_count : 0;
        request.needs = known ? like.needs : (struct request_needs){ 0 };
        request.match = known ? like.match : alike ? ctx->request->match : NODE_MATCH_ANY;
        request.demands = known ? like.demands : alike ? ctx->request->demands : NEIGHBOURS_NONE;
        request.labels = known ? like.labels : request.labels;
        request.item_count = 1;
        request.items[0] = (struct request_item){ .resource = kind->resource, .chips = kind->chips };
        request.lone = ctx->request->lone && kind->chips == 1;
        if (!alike)
                request.model_count = 0; /* the pod's models are of its own resource */
        return request;
}

/* The members that the job lists, less those that are bound. The asking pod is one of them. */
static int list_kinds(const struct rules_context *ctx, const struct ledger_job *job,
                      const struct gang_demand *demand, struct gang_members *ret)
{
        size_t total = 0;

        for (size_t i = 0; i < demand->kind_count; i++)
                total += demand->kinds[i].members;
        ret->requests = calloc(total + 1, sizeof(*ret->requests));
        if (ret->requests == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < demand->kind_count; i++) {
                const struct request_member *kind = &demand->kinds[i];
                const struct request like = request_of_kind(ctx, job, kind);
                uint32_t left = kind->members, there = is_kind(ctx->request, kind);

                for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                        if ((pod != ctx->self || has_its_chips(ctx)) && is_kind(&pod->request, kind)) {
                                left -= left > 0 && (pod->node != NULL || pod == ctx->self ||
                                                     ledger_pods_has_claimed(pod));
                                there += pod != ctx->self && ledger_pods_waits(pod);
                        }
                for (; left > 0; left--) {
                        struct request *request = &ret->requests[ret->count++];

                        *request = like;
                        request->absent = there == 0;
                        there -= there > 0;
                }
        }
        return 0;
}

/* Does it ask for no chips, or have claims given it some? */
static bool needs_no_place(const struct ledger_pod *pod)
{
        return pod->request.item_count == 0 || ledger_pods_has_claimed(pod);
}

/* Members that are on a node, and those who need no place of ours. */
static size_t there_already(const struct ledger_job *job, const struct ledger_pod *self)
{
        size_t count = 0;

        for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                count += pod != self &&
                         (pod->node != NULL || (needs_no_place(pod) && !pod->ended && !pod->deleting));
        return count;
}

/* The asking pod, the pending ones that are known, and copies for the rest. */
static int list_copies(const struct rules_context *ctx, const struct ledger_job *job,
                       struct gang_members *ret)
{
        size_t bound = there_already(job, ctx->self), left;

        bound += has_its_chips(ctx);
        left = ctx->request->gang_size > bound ? ctx->request->gang_size - bound : 0;
        ret->requests = calloc(left + 1, sizeof(*ret->requests));
        if (ret->requests == NULL)
                return -ENOMEM;
        if (left == 0)
                return 0;
        if (!has_its_chips(ctx))
                ret->requests[ret->count++] = asking(ctx);
        for (const struct ledger_pod *pod = job->pods; pod != NULL && ret->count < left;
             pod = pod->next_in_job)
                if (pod != ctx->self && pod->node == NULL && !pod->ended && !pod->deleting &&
                    !needs_no_place(pod)) {
                        struct request *request = &ret->requests[ret->count++];

                        *request = pod->request;
                        request->labels = pod->labels;
                        request->absent = !ledger_pods_waits(pod);
                        ledger_chips_only(ctx->ledger, request);
                        request->class_chips = ctx->request->class_chips;
                }
        for (uint32_t match = match_of_copies(ctx); ret->count < left; ret->count++) {
                ret->requests[ret->count] = asking(ctx);
                ret->requests[ret->count].match = match;
                ret->requests[ret->count].absent = true;
        }
        return 0;
}

#define RESOURCES_MAX 16 /* that one entry could mean */

/* One entry of its workers, or its servers. */
struct entry {
        const struct job_role *role;
        bool servers;
        uint64_t left;     /* chips that no known member asks for */
        uint32_t unit;     /* chips of a known member; 0 = none is known */
        uint32_t resource; /* whose chips it would get; 0 = nobody has such chips */
};

struct listing {
        const struct rules_context *context;
        const struct ledger_job *job;
        struct entry entries[JOB_ROLES_MAX + 1];
        size_t entry_count, known; /* known: members of the store, bound ones and the asking one included */
        bool strange;              /* a member is of no entry */
};

static uint64_t usable_chips(const struct ledger *ledger, const struct job_role *role, uint32_t resource)
{
        uint64_t usable = 0;

        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[n]->groups[g];

                        if (group->resource == resource && open_groups_takes(role, &ledger->symbols, group))
                                usable += group->usable;
                }
        return usable;
}

uint32_t gang_members_resource(const struct ledger *ledger, const struct job_role *role)
{
        uint32_t tried[RESOURCES_MAX] = { 0 }, best = 0;
        uint64_t most = 0, usable;
        size_t count = 0;

        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count && count < RESOURCES_MAX; g++) {
                        const struct ledger_group *group = &ledger->nodes[n]->groups[g];
                        bool seen = !open_groups_takes(role, &ledger->symbols, group);

                        for (size_t i = 0; i < count && !seen; i++)
                                seen = tried[i] == group->resource;
                        if (seen)
                                continue;
                        tried[count++] = group->resource;
                        usable = usable_chips(ledger, role, group->resource);
                        if (usable <= most)
                                continue;
                        most = usable;
                        best = group->resource;
                }
        return best;
}

/* Could the member be one of the entry's? Of a bound one its chips say so, of another those that it accepts.
 */
static bool is_of(const struct ledger *ledger, const struct entry *entry, const struct request *request,
                  const struct ledger_node *bound)
{
        if (request->serves != entry->servers)
                return false;
        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[n]->groups[g];

                        if ((bound == NULL || bound == ledger->nodes[n]) &&
                            group->resource == request->items[0].resource &&
                            request_accepts(request, group->model) &&
                            open_groups_takes(entry->role, &ledger->symbols, group))
                                return true;
                }
        return false;
}

static void count_member(struct listing *l, const struct request *request, const struct ledger_node *bound)
{
        l->known++;
        for (size_t i = 0; i < l->entry_count; i++) {
                struct entry *entry = &l->entries[i];

                if (entry->left == 0 || !is_of(l->context->ledger, entry, request, bound))
                        continue;
                entry->left -= request_chips(request) < entry->left ? request_chips(request) : entry->left;
                entry->unit = request_chips(request);
                return;
        }
        l->strange = true;
}

static bool is_member(const struct ledger_pod *pod, const struct rules_context *ctx)
{
        return pod != ctx->self && !pod->ended && !pod->deleting && pod->request.item_count > 0;
}

static void add_entry(struct listing *l, const struct job_role *role, bool servers, bool least)
{
        l->entries[l->entry_count++] =
                (struct entry){ .role = role,
                                .servers = servers,
                                .left = least ? role->min_chips : role->chips,
                                .resource = gang_members_resource(l->context->ledger, role) };
}

/* Chips of each member that is not created yet: as those that are known, else as the one that asks if that
 * divides what is left, else all in one. */
static uint32_t unit_of(const struct listing *l, const struct entry *entry)
{
        uint32_t own = request_chips(l->context->request);

        assert(own > 0); /* an item asks for a chip at least */
        if (entry->unit != 0)
                return entry->unit;
        return entry->resource == l->context->request->items[0].resource && entry->left % own == 0
                       ? own
                       : (uint32_t) entry->left;
}

static size_t missing_of(const struct listing *l, const struct entry *entry)
{
        return entry->left == 0 ? 0 : (size_t) ((entry->left + unit_of(l, entry) - 1) / unit_of(l, entry));
}

/* The models that the entry takes; all of them where it does not say. */
static void accept_models(const struct ledger *ledger, const struct entry *entry, struct request *request)
{
        request->model_count = 0;
        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[n]->groups[g];

                        if (group->resource == entry->resource && group->model != 0 &&
                            request->model_count < REQUEST_MODELS_MAX &&
                            (request->model_count == 0 || !request_accepts(request, group->model)) &&
                            open_groups_takes(entry->role, &ledger->symbols, group))
                                request->models[request->model_count++] = group->model;
                }
}

static void add_missing(const struct listing *l, const struct entry *entry, struct gang_members *ret)
{
        struct request like = asking(l->context);
        uint32_t unit = unit_of(l, entry);

        if (entry->left == 0)
                return;
        like.item_count = 1;
        like.beside_count = 0;
        if (entry->resource != l->context->request->items[0].resource) {
                like.needs = (struct request_needs){ 0 };
                like.demands = NEIGHBOURS_NONE;
        }
        like.serves = entry->servers;
        like.share_given = false;
        like.absent = true;
        like.match = entry->resource != l->context->request->items[0].resource ? NODE_MATCH_ANY
                                                                               : match_of_copies(l->context);
        accept_models(l->context->ledger, entry, &like);
        for (uint64_t left = entry->left; left > 0; left -= like.items[0].chips) {
                like.items[0] = (struct request_item){ .resource = entry->resource,
                                                       .chips = unit < left ? unit : (uint32_t) left };
                ret->requests[ret->count++] = like;
        }
}

/* Return: 0; 1 = it does not say who the members are (their number is another one); -ENOMEM. */
static int list_training(const struct rules_context *ctx, const struct ledger_job *job, bool least,
                         struct gang_members *ret)
{
        const struct job *training = job->training;
        struct listing l = { .context = ctx, .job = job };
        size_t missing = 0;

        for (size_t i = 0; i < training->worker_count && i < JOB_ROLES_MAX; i++) {
                add_entry(&l, &training->workers[i], false, least);
                ret->fewer = ret->fewer || training->workers[i].min_chips < training->workers[i].chips;
        }
        if (job_server_chips(training) > 0)
                add_entry(&l, &training->servers, true, false);
        for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                if (is_member(pod, ctx))
                        count_member(&l, &pod->request, pod->node);
        count_member(&l, ctx->request, NULL);
        for (size_t i = 0; i < l.entry_count; i++)
                missing += missing_of(&l, &l.entries[i]);
        if (l.strange || missing > REQUEST_GANG_MAX ||
            (!least && l.known + missing != ctx->request->gang_size &&
             l.known + missing + 1 != ctx->request->gang_size))
                return 1;
        ret->requests = calloc(l.known + missing, sizeof(*ret->requests));
        if (ret->requests == NULL)
                return -ENOMEM;
        ret->requests[ret->count++] = asking(ctx);
        for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                if (is_member(pod, ctx) && pod->node == NULL) {
                        struct request *request = &ret->requests[ret->count++];

                        *request = pod->request;
                        request->labels = pod->labels;
                        request->absent = !ledger_pods_waits(pod);
                        ledger_chips_only(ctx->ledger, request);
                        request->class_chips = ctx->request->class_chips;
                }
        for (size_t i = 0; i < l.entry_count; i++)
                add_missing(&l, &l.entries[i], ret);
        return 0;
}

static int list_members(const struct rules_context *ctx, const struct ledger_job *job,
                        const struct gang_demand *demand, bool least, struct gang_members *ret)
{
        int r = 1;

        if (demand->kind_count > 0)
                return list_kinds(ctx, job, demand, ret);
        if (job->training != NULL)
                r = list_training(ctx, job, least, ret);
        if (r <= 0)
                return r;
        ret->fewer = false;
        return list_copies(ctx, job, ret);
}

/* Labels count where a demand speaks of them; those of which all speak alike are the same to a plan: each
 * class has the labels of its first member. Without memory all are unlike. */
static void settle_labels(const struct neighbours_table *table, struct gang_members *members)
{
        CLEANUP(free_p) uint32_t *of_class = NULL;
        uint32_t classes;

        for (size_t i = 0; i < members->count; i++)
                (void) neighbours_class(table, members->requests[i].labels); /* now all are numbered */
        classes = table->classes.terms.count;
        of_class = calloc(classes + 1, sizeof(*of_class));
        for (size_t i = 0; i < members->count && of_class != NULL; i++) {
                uint32_t *labels = &members->requests[i].labels, class = neighbours_class(table, *labels);

                if (class <= classes && of_class[class] == NEIGHBOURS_NONE)
                        of_class[class] = class == NEIGHBOURS_NONE ? NEIGHBOURS_NONE : *labels;
                if (class <= classes)
                        *labels = of_class[class];
        }
}

int gang_members_list(const struct rules_context *ctx, const struct ledger_job *job,
                      const struct gang_demand *demand, bool least, struct gang_members *ret)
{
        int r;

        *ret = (struct gang_members){ 0 };
        r = list_members(ctx, job, demand, least, ret);
        settle_labels(&ctx->ledger->neighbours, ret);
        return r;
}

static int compare_requests(const void *a, const void *b)
{
        const struct request *p = a, *q = b;
        uint32_t x = request_chips(p), y = request_chips(q);

        if (x != y)
                return (x < y) - (x > y);
        if ((p->match == NODE_MATCH_ANY) != (q->match == NODE_MATCH_ANY)) /* who has less choice goes first */
                return p->match == NODE_MATCH_ANY ? 1 : -1;
        if (p->needs.cpu_milli != q->needs.cpu_milli)
                return p->needs.cpu_milli > q->needs.cpu_milli ? -1 : 1;
        if (p->needs.memory_bytes != q->needs.memory_bytes)
                return p->needs.memory_bytes > q->needs.memory_bytes ? -1 : 1;
        static_assert(sizeof(struct request) ==
                                      offsetof(struct request, class_chips) + sizeof(p->class_chips) &&
                              offsetof(struct request, fixed_bytes) ==
                                      offsetof(struct request, deadline_sec) + sizeof(p->deadline_sec) &&
                              offsetof(struct request, gang_size) ==
                                      offsetof(struct request, lacking) + sizeof(p->lacking),
                      "padding has no order");
        return memcmp(p, q, sizeof(*p));
}

void gang_members_sort(struct gang_members *members)
{
        qsort(members->requests, members->count, sizeof(*members->requests), compare_requests);
}
