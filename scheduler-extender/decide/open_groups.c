/* Which groups' chips are open to a job, by the rules that judge pods, and how fast they are for a role. */
#include "scheduler-extender/decide/open_groups.h"
#include "agent/vendor/device_class.h"
#include "base/array.h"
#include "scheduler-extender/decide/node_match.h"
#include "scheduler-extender/ledger/ledger_account.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

bool open_groups_takes(const struct job_role *role, const struct symbols *symbols,
                       const struct ledger_group *group)
{
        return placement_fits_role(role, symbols_name(symbols, group->runtime),
                                   symbols_name(symbols, group->vendor), symbols_name(symbols, group->model),
                                   symbols_name(symbols, group->name));
}

bool open_groups_is_cpu(const struct symbols *symbols, const struct ledger_group *group)
{
        return strcmp(symbols_name(symbols, group->runtime), "cpu") == 0;
}

/* Do the labels and taints of the node let pods of the role be there? Of a node without a Node object nothing
 * is known. */
static bool node_lets(const struct job_role *role, const struct ledger_node *node)
{
        return !node->has_object || node_match_judge(role->place.match == NULL ? "" : role->place.match,
                                                     node->name, &node->traits, NULL, 0);
}

/* Quota for chips of one name is none for others that the role may take. */
static bool is_counted(const struct job_role *role, const struct symbols *symbols,
                       const struct ledger_group *group)
{
        return role->place.resource == NULL ||
               strcmp(symbols_name(symbols, group->resource), role->place.resource) == 0;
}

static bool has_places(const struct job *job)
{
        bool some = job->servers.place.match != NULL;

        for (size_t i = 0; i < job->worker_count; i++)
                some = some || job->workers[i].place.match != NULL;
        return some;
}

static struct request request_for_one(const struct open_groups_claim *claim, const struct ledger_group *group)
{
        const struct job *job = claim->job.job;
        struct request request = {
                .items = { { .resource = group->resource, .chips = 1 } },
                .item_count = 1,
                .emergency = claim->emergency,
                .preemptible = job->preemptible,
                .network_mbps = (uint32_t) job->min_network_mbps,
                .class_chips = job_worker_chips(job) + job_server_chips(job),
                /* our pods tolerate no taint; what each role demands any_role_takes() has judged */
                .match = has_places(job) ? NODE_MATCH_ANY : NODE_MATCH_NOTHING,
        };

        if (group->model != 0) {
                request.models[0] = group->model;
                request.model_count = 1;
        }
        return request;
}

uint32_t open_groups_lent(const struct ledger_node *node, const struct ledger_group *group,
                          enum ledger_pods_takes takes)
{
        RULES_SCRATCH(kept);
        uint32_t held;

        if (takes < (node->reserved ? LEDGER_PODS_TAKES_BORROWERS : LEDGER_PODS_TAKES_PREEMPTIBLE))
                return 0;
        ledger_account(node, (struct ledger_account_without){ .takes = takes }, kept);
        held = kept[group - node->groups].held;
        return group->held > held ? group->held - held : 0;
}

/* Are they offered to claims of the role's class? Where no driver offers any, nobody may have told. */
static bool is_offered(const struct job_role *role, const struct ledger *ledger,
                       const struct ledger_node *node, const struct ledger_group *group)
{
        const struct ledger_devices_offer *offer = ledger_devices_offer(node->devices, group->resource);
        bool planned = offer != NULL && offer->planned;

        if (role->device_class[0] == '\0' || !ledger->has_slices)
                return !planned;
        /* of any other class nobody here knows whether it means them: no selector is judged */
        if (planned && (!ledger->plans_claims || !device_class_promises(role->device_class)))
                return false;
        return (offer != NULL && offer->offers &&
                device_class_takes(role->device_class, symbols_name(&ledger->symbols, group->vendor),
                                   symbols_name(&ledger->symbols, group->runtime)));
}

static bool role_takes(const struct batch_cut_job *job, const struct job_role *role,
                       const struct ledger_node *node, const struct ledger_group *group)
{
        return open_groups_takes(role, &job->ledger->symbols, group) &&
               is_counted(role, &job->ledger->symbols, group) && is_offered(role, job->ledger, node, group) &&
               (!has_places(job->job) || node_lets(role, node));
}

static bool any_role_takes(const struct batch_cut_job *job, const struct ledger_node *node,
                           const struct ledger_group *group)
{
        if (job_server_chips(job->job) > 0 && role_takes(job, &job->job->servers, node, group))
                return true;
        for (size_t i = 0; i < job->job->worker_count; i++)
                if (role_takes(job, &job->job->workers[i], node, group))
                        return true;
        return false;
}

/* What the holds of older pods leave of the group: what they leave of the node, without what the groups
 * before it that the job may take have of that. */
static uint64_t left_of(const struct open_groups_claim *claim, const struct rules_context *context,
                        const struct ledger_node *node, const struct ledger_group *group,
                        const struct ledger_group *accounts)
{
        uint64_t left = rules_left(context, node, group->resource);

        for (uint32_t i = 0; left != UINT64_MAX && &node->groups[i] != group; i++)
                if (node->groups[i].resource == group->resource &&
                    any_role_takes(&claim->job, node, &node->groups[i])) {
                        uint32_t before = ledger_group_open(&accounts[i]);

                        left -= before < left ? before : left;
                }
        return left;
}

static struct rules_context context_of(const struct open_groups_claim *claim, const struct request *request)
{
        struct rules_context context = { .ledger = claim->job.ledger,
                                         .rules = claim->rules,
                                         .request = request,
                                         .job = claim->ledger_job,
                                         .created_usec = claim->created_usec,
                                         .now_usec = claim->now_usec,
                                         .unfiltered = true };

        overflow_prepare(&context, &context.overflow);
        return context;
}

/* Return: the chips of the group that the job may take. @held: grows by those that an older pod waits for. */
static uint32_t open_chips(const struct open_groups_claim *claim, const struct ledger_node *node,
                           const struct ledger_group *group, uint64_t *held)
{
        struct request request = request_for_one(claim, group);
        struct rules_context context = context_of(claim, &request);
        uint32_t lent = open_groups_lent(node, group, claim->takes), open;
        RULES_SCRATCH(accounts);
        enum reason reason;
        uint64_t left;

        reason = rules_judge(&context, node);
        if (reason != REASON_NONE && reason != REASON_HELD_FOR_OLDER &&
            !(lent > 0 && (reason == REASON_CHIPS_BUSY || reason == REASON_CHIPS_LEASED)))
                return 0;
        /* the account as the job sees it: what it leases is its own */
        ledger_account(node, (struct ledger_account_without){ .job = claim->ledger_job }, accounts);
        open = ledger_group_open(&accounts[group - node->groups]) + lent;
        open = open < group->usable ? open : group->usable;
        left = left_of(claim, &context, node, group, accounts);
        if (open <= left)
                return open;
        *held += open - left;
        return (uint32_t) left;
}

/* May it never have a chip there, whoever ends? Overflow onto a node of the other class comes and goes. */
static bool is_barred(const struct open_groups_claim *claim, const struct ledger_node *node,
                      const struct ledger_group *group)
{
        struct request request = request_for_one(claim, group);
        struct rules_context context = context_of(claim, &request);
        enum reason reason = rules_judge(&context, node);

        return (reason == REASON_SINGLE_CHIP_NODE || reason == REASON_MULTI_CHIP_NODE)
                       ? claim->rules->overflow == OVERFLOW_NONE
                       : reason_text(reason)->unresolvable;
}

size_t open_groups_all(const struct ledger *ledger)
{
        size_t count = 0;

        for (uint32_t n = 0; n < ledger->node_count; n++)
                count += ledger->nodes[n]->group_count;
        return count;
}

uint64_t open_groups_possible(const struct open_groups_claim *claim, bool *ret)
{
        const struct ledger *ledger = claim->job.ledger;
        uint64_t usable = 0;

        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[n]->groups[g];
                        bool possible = group->resource != 0 &&
                                        any_role_takes(&claim->job, ledger->nodes[n], group) &&
                                        !is_barred(claim, ledger->nodes[n], group);

                        usable += possible ? group->usable : 0;
                        *ret++ = possible;
                }
        return usable;
}

/* A CPU group that has nothing open may be shared by processes, but not where the job's network is wanting.
 */
static bool is_shared(const struct open_groups_claim *claim, const struct ledger_node *node,
                      const struct ledger_group *group)
{
        struct request request = request_for_one(claim, group);

        return claim->processes && open_groups_is_cpu(&claim->job.ledger->symbols, group) &&
               !rules_network_too_slow(&request, node);
}

static int add(const struct open_groups_claim *claim, const struct ledger_node *node,
               const struct ledger_group *group, struct open_groups *groups)
{
        uint64_t held = 0;
        uint32_t open = open_chips(claim, node, group, &held);
        struct open_group *added;

        if (open == 0 && !is_shared(claim, node, group))
                return 0;
        added = array_add(&groups->items, &groups->count, &groups->capacity, sizeof(*added));
        if (added == NULL)
                return -ENOMEM;
        *added = (struct open_group){
                .choice = { .open = open, .node = node->name, .index = (uint32_t) (group - node->groups) },
                .node = node,
                .group = group,
                .found = open
        };
        return 0;
}

static bool is_asked(const struct ledger_node *equal_to, const struct ledger_node *node)
{
        return equal_to == NULL || equal_to == node || rules_difference(equal_to, node) == NULL;
}

int open_groups_collect(const struct open_groups_claim *claim, const struct ledger_node *equal_to,
                        struct open_groups *groups)
{
        const struct ledger *ledger = claim->job.ledger;

        groups->count = 0;
        for (uint32_t n = 0; n < ledger->node_count; n++) {
                const struct ledger_node *node = ledger->nodes[n];

                if (!is_asked(equal_to, node))
                        continue;
                for (uint32_t g = 0; g < node->group_count; g++)
                        if (node->groups[g].resource != 0 &&
                            any_role_takes(&claim->job, node, &node->groups[g]) &&
                            add(claim, node, &node->groups[g], groups) < 0)
                                return -ENOMEM;
        }
        return 0;
}

uint64_t open_groups_held(const struct open_groups_claim *claim, const struct ledger_node *equal_to,
                          const struct job_role *role)
{
        const struct ledger *ledger = claim->job.ledger;
        uint64_t held = 0;

        for (uint32_t n = 0; n < ledger->node_count; n++) {
                const struct ledger_node *node = ledger->nodes[n];

                for (uint32_t g = 0; node->backfills != NULL && g < node->group_count; g++)
                        if (node->groups[g].resource != 0 && is_asked(equal_to, node) &&
                            role_takes(&claim->job, role, node, &node->groups[g]))
                                (void) open_chips(claim, node, &node->groups[g], &held);
        }
        return held;
}

void open_groups_free(struct open_groups *groups)
{
        free(groups->items);
        *groups = (struct open_groups){ 0 };
}

const char *open_groups_runtime(const struct symbols *symbols, const struct job_role *role,
                                const struct ledger_group *group)
{
        return role->runtime[0] != '\0' ? role->runtime : symbols_name(symbols, group->runtime);
}

static void compare_speeds(const struct batch_cut_job *job, const struct job_role *role,
                           struct open_groups *groups)
{
        struct ledger_speeds_programs programs = { .ledger = job->ledger,
                                                   .job = job->job,
                                                   .table = job->programs,
                                                   .table_count = job->program_count };
        CLEANUP(free_p) struct chip_speed_member *members = calloc(groups->count + 1, sizeof(*members));
        CLEANUP(free_p) struct shard_worker *workers = calloc(groups->count + 1, sizeof(*workers));
        size_t count = 0;

        for (size_t i = 0; i < groups->count; i++)
                groups->items[i].choice.speed = 0;
        if (members == NULL || workers == NULL)
                return; /* as if nothing were known */
        ledger_speeds_collect(&programs);
        for (size_t i = 0; i < groups->count; i++) {
                const struct ledger_group *group = groups->items[i].group;

                if (groups->items[i].fits)
                        members[count++] = ledger_speeds_member(
                                &programs, open_groups_runtime(&job->ledger->symbols, role, group), group);
        }
        chip_speed_rank(&job->ledger->speeds, job->job->model, members, count, workers);
        for (size_t i = groups->count; i-- > 0;)
                if (groups->items[i].fits)
                        groups->items[i].choice.speed = chip_speed_samples_per_s(&workers[--count]);
}

void open_groups_consider(const struct batch_cut_job *job, const struct job_role *role,
                          struct open_groups *groups)
{
        for (size_t i = 0; i < groups->count; i++)
                groups->items[i].fits = role_takes(job, role, groups->items[i].node, groups->items[i].group);
        if (placement_of_job(job->job) == PLACEMENT_FASTEST)
                compare_speeds(job, role, groups);
}

struct open_group *open_groups_first(const struct open_groups *groups, enum placement placement,
                                     uint32_t wanted)
{
        struct open_group *best = NULL;

        for (size_t i = 0; i < groups->count; i++) {
                struct open_group *group = &groups->items[i];

                if (group->fits && group->choice.open > 0 &&
                    (best == NULL || placement_goes_before(placement, &group->choice, &best->choice, wanted)))
                        best = group;
        }
        return best;
}
