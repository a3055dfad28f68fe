/* The roles of a job, one after the other, onto the groups that the rules leave open. */
#include "scheduler-extender/decide/assignment.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/decide/placement.h"
#include "scheduler-extender/decide/stages/assignment_split.h"
#include "scheduler-extender/ledger/ledger_speeds.h"
#include "scheduler-extender/ledger/role_hint.h"

struct assigner {
        const struct open_groups_claim *claim;
        const struct ledger *ledger;
        const struct job *job;
        enum placement placement;
        struct open_groups groups;
        size_t parts_max;
        struct assignment *made;
        const struct ledger_node *equal_to; /* the configuration that equal nodes have; NULL = any */
};

/* A role while it is placed. */
struct placing {
        const struct job_role *role;
        bool server;
        uint32_t entry;
};

static void note(struct assignment *made, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct assignment *made, const char *fmt, ...)
{
        va_list args;

        if (made->note_count == ASSIGNMENT_NOTES_MAX)
                return;
        va_start(args, fmt);
        (void) vsnprintf(made->notes[made->note_count++], ASSIGNMENT_NOTE_BYTES, fmt, args);
        va_end(args);
}

const struct job_role *assignment_role(const struct job *job, bool server, size_t entry)
{
        if (server)
                return &job->servers;
        return entry < job->worker_count ? &job->workers[entry] : NULL;
}

static struct assignment_part *find_part(const struct assigner *a, const struct placing *placing,
                                         const struct open_group *candidate)
{
        for (size_t i = 0; i < a->made->count; i++) {
                struct assignment_part *part = &a->made->parts[i];

                if (part->server == placing->server && part->entry == placing->entry &&
                    part->group == candidate->group)
                        return part;
        }
        return NULL;
}

static struct assignment_part *part_for(struct assigner *a, const struct placing *placing,
                                        const struct open_group *candidate, int *ret_error)
{
        struct assignment_part *part = find_part(a, placing, candidate), *grown;

        if (part != NULL)
                return part;
        *ret_error = a->made->count >= a->parts_max ? -E2BIG : -ENOMEM;
        grown = *ret_error == -E2BIG ? NULL
                                     : reallocarray(a->made->parts, a->made->count + 1, sizeof(*grown));
        if (grown == NULL)
                return NULL;
        a->made->parts = grown;
        part = &grown[a->made->count++];
        *part = (struct assignment_part){ .server = placing->server,
                                          .entry = placing->entry,
                                          .node = candidate->node,
                                          .group = candidate->group };
        return part;
}

static int take(struct assigner *a, const struct placing *placing, struct open_group *candidate,
                uint32_t chips)
{
        int r = 0;
        struct assignment_part *part = part_for(a, placing, candidate, &r);

        if (part == NULL)
                return r;
        candidate->choice.open -= chips;
        candidate->choice.taken += chips;
        part->chips += chips;
        part->ranks += chips;
        return 0;
}

/* Return: chips that were found, at most @wanted; negative errno. */
static int64_t place(struct assigner *a, const struct placing *placing, uint32_t wanted)
{
        uint32_t left = wanted;

        while (left > 0) {
                struct open_group *candidate = open_groups_first(&a->groups, a->placement, left);
                uint32_t chips;
                int r;

                if (candidate == NULL)
                        break;
                chips = placement_portion(a->placement, &candidate->choice, left);
                r = take(a, placing, candidate, chips);
                if (r < 0)
                        return r;
                left -= chips;
        }
        return wanted - left;
}

/* A CPU group serves any number of ranks: among the CPU groups the one with the fewest beyond its chips.
 * @held: of those that the entry has already. */
static struct open_group *most_patient(struct assigner *a, const struct placing *placing, bool held)
{
        struct open_group *best = NULL;

        for (size_t i = 0; i < a->groups.count; i++) {
                struct open_group *candidate = &a->groups.items[i];
                const struct assignment_part *part = find_part(a, placing, candidate);

                if (!candidate->fits || !open_groups_is_cpu(&a->ledger->symbols, candidate->group) ||
                    (part == NULL && held) || (part != NULL && part->ranks >= ASSIGNMENT_RANKS_MAX))
                        continue;
                if (best == NULL || candidate->beyond < best->beyond ||
                    (candidate->beyond == best->beyond &&
                     placement_goes_before(PLACEMENT_UNIFORM, &candidate->choice, &best->choice, 1)))
                        best = candidate;
        }
        return best;
}

/* On groups of the entry's own. An entry of processes that has none shares others'; pods cannot. */
static int64_t place_beyond(struct assigner *a, const struct placing *placing, uint32_t wanted)
{
        bool held = most_patient(a, placing, true) != NULL || !a->claim->processes;
        uint32_t placed = 0;

        for (struct open_group *candidate;
             placed < wanted && (candidate = most_patient(a, placing, held)) != NULL;) {
                int r = 0;
                struct assignment_part *part = part_for(a, placing, candidate, &r);

                if (part == NULL)
                        return r;
                part->ranks++;
                candidate->beyond++;
                placed++;
        }
        if (placed > 0)
                note(a->made, "Oversubscribed: %u ranks of %s share CPU groups with others", placed,
                     placing->server ? "the servers" : "a worker entry");
        return placed;
}

#define ROLE_WORDS_BYTES 480

static const char *role_words(const struct job_role *role, char words[ROLE_WORDS_BYTES])
{
        const char *const parts[] = { role->runtime, role->vendor, role->model, role->group };

        words[0] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                if (parts[i][0] != '\0')
                        (void) text_format(words + strlen(words), ROLE_WORDS_BYTES - strlen(words), "%s%s",
                                           words[0] == '\0' ? " of " : " ", parts[i]);
        if (role->device_class[0] != '\0')
                (void) text_format(words + strlen(words), ROLE_WORDS_BYTES - strlen(words),
                                   " by claims of class %s", role->device_class);
        return words;
}

static int no_place(int code, const struct assigner *a, struct err *err)
{
        if (code == -E2BIG)
                return err_set(err, code,
                               "the job would need more than %zu device groups; ask for larger groups or "
                               "fewer chips",
                               a->parts_max);
        return err_set(err, code, "no memory for the plan");
}

/* The fewest chips that will do. Without @err nobody asks why not: that costs a look at the whole ledger. */
static int place_least(struct assigner *a, const struct placing *placing, struct err *err)
{
        uint32_t wanted = (uint32_t) placing->role->min_chips;
        int64_t placed, beyond;
        char words[ROLE_WORDS_BYTES], hint[ROLE_HINT_BYTES], older[64] = "", network[64] = "";
        uint64_t held;

        open_groups_consider(&a->claim->job, placing->role, &a->groups);
        placed = place(a, placing, wanted);
        if (placed < 0)
                return no_place((int) placed, a, err);
        beyond = place_beyond(a, placing, wanted - (uint32_t) placed);
        if (beyond < 0)
                return no_place((int) beyond, a, err);
        if (placed + beyond == wanted)
                return 0;
        a->made->lacking = placing->role;
        a->made->found = (uint64_t) (placed + beyond);
        if (err == NULL)
                return -EBUSY;
        held = open_groups_held(a->claim, a->equal_to, placing->role);
        if (held > 0)
                (void) text_format(older, sizeof(older), "; %llu are held for older pods",
                                   (unsigned long long) held);
        if (a->job->min_network_mbps > 0)
                (void) text_format(network, sizeof(network), " on nodes that do %llu Mbit/s (minNetworkMbps)",
                                   (unsigned long long) a->job->min_network_mbps);
        return err_set(err, -EBUSY, "%s needs %u chips%s%s, and only %llu are free for it now%s%s",
                       placing->server ? "spec.servers" : "an entry of spec.workers", wanted,
                       role_words(placing->role, words), network, (unsigned long long) a->made->found, older,
                       role_hint(a->claim->job.ledger, placing->role, hint));
}

/* Parts as the cut of the batch sees them. @ret: room for all */
static void groups_of(const struct open_groups_claim *claim, const struct assignment *made,
                      struct batch_cut_group *ret)
{
        const struct symbols *symbols = &claim->job.ledger->symbols;

        for (size_t i = 0; i < made->count; i++) {
                const struct assignment_part *part = &made->parts[i];
                const struct job_role *role = assignment_role(claim->job.job, part->server, part->entry);

                ret[i] = (struct batch_cut_group){
                        .runtime = open_groups_runtime(symbols, role, part->group),
                        .device = ledger_speeds_device(symbols, part->group),
                        .entry = part->entry,
                        .node = part->node->name,
                        .name = symbols_name(symbols, part->group->name),
                        .group = part->group,
                        .chips = part->chips,
                        .ranks = part->ranks,
                        .server = part->server,
                };
        }
}

/* Return: the length of a step of what is placed so far, but for so many ranks of a part; -1 = no memory. */
static double step_ms(const struct assigner *a, const struct assignment_part *of, uint32_t without,
                      struct chip_speed_verdict *ret_verdict)
{
        CLEANUP(free_p) struct batch_cut_group *groups = calloc(a->made->count + 1, sizeof(*groups));

        if (groups == NULL)
                return -1;
        groups_of(a->claim, a->made, groups);
        return batch_cut_step_ms(&a->claim->job, groups, a->made->count, (size_t) (of - a->made->parts),
                                 without, ret_verdict);
}

int assignment_cut(const struct open_groups_claim *claim, const struct assignment *assignment,
                   struct batch_cut_share *ret_shares, struct chip_speed_verdict *ret_verdict,
                   struct err *err)
{
        CLEANUP(free_p) struct batch_cut_group *groups = calloc(assignment->count + 1, sizeof(*groups));

        if (groups == NULL)
                return err_set(err, -ENOMEM, "no memory for the shares");
        groups_of(claim, assignment, groups);
        return batch_cut(&claim->job, groups, assignment->count, ret_shares, ret_verdict, err);
}

static void give_back(struct assigner *a, const struct placing *placing, const struct open_group *candidate,
                      uint32_t chips)
{
        struct assignment_part *part = find_part(a, placing, candidate);

        if (part == NULL) /* there was no room for one more */
                return;
        part->chips -= chips;
        part->ranks -= chips;
        if (part->ranks == 0)
                a->made->count--; /* the last one: it was made for these chips */
}

/* Chips beyond minChips are added only where they shorten the step. */
static int place_more(struct assigner *a, const struct placing *placing, struct err *err)
{
        uint32_t left = (uint32_t) (placing->role->chips - placing->role->min_chips);
        struct open_group *candidate;

        open_groups_consider(&a->claim->job, placing->role, &a->groups);
        while (left > 0 && (candidate = open_groups_first(&a->groups, a->placement, left)) != NULL) {
                uint32_t chips = placement_portion(a->placement, &candidate->choice, left);
                int r = take(a, placing, candidate, chips);
                const struct assignment_part *part = find_part(a, placing, candidate);
                double with = r == 0 ? step_ms(a, part, 0, NULL) : INFINITY,
                       step = r == 0 ? step_ms(a, part, chips, NULL) : INFINITY;

                if (r == -ENOMEM || with < 0 || step < 0)
                        return no_place(-ENOMEM, a, err);
                if (with < step) {
                        left -= chips;
                        continue;
                }
                if (r == 0)
                        give_back(a, placing, candidate, chips);
                candidate->choice.open = 0; /* not asked again */
                note(a->made, "NotAdded: %u chips of %s on %s would slow the job", chips,
                     symbols_name(&a->ledger->symbols, candidate->group->name), candidate->node->name);
        }
        return 0;
}

/* Servers have no share of a batch that would speak against more of them. */
static int place_servers(struct assigner *a, struct err *err)
{
        struct placing servers = { .role = &a->job->servers, .server = true };
        int r = place_least(a, &servers, err);
        int64_t more =
                r < 0 ? 0 : place(a, &servers, (uint32_t) (servers.role->chips - servers.role->min_chips));

        return more < 0 ? no_place((int) more, a, err) : r;
}

/* Onto the groups of @a, as they were collected. */
static int place_roles(struct assigner *a, struct err *err)
{
        int r = 0;

        for (uint32_t i = 0; i < a->job->worker_count && r == 0; i++)
                r = place_least(a, &(struct placing){ .role = &a->job->workers[i], .entry = i }, err);
        if (r == 0 && job_server_chips(a->job) > 0)
                r = place_servers(a, err);
        for (uint32_t i = 0; i < a->job->worker_count && r == 0; i++)
                if (a->job->workers[i].min_chips < a->job->workers[i].chips)
                        r = place_more(a, &(struct placing){ .role = &a->job->workers[i], .entry = i }, err);
        return r;
}

/* Chips and ranks of all parts: as many of both, or a CPU group serves ranks that had chips of their own. */
static bool is_as_much(const struct assignment *a, const struct assignment *b)
{
        uint64_t a_chips = 0, b_chips = 0, a_ranks = 0, b_ranks = 0;

        for (size_t i = 0; i < a->count; i++) {
                a_chips += a->parts[i].chips;
                a_ranks += a->parts[i].ranks;
        }
        for (size_t i = 0; i < b->count; i++) {
                b_chips += b->parts[i].chips;
                b_ranks += b->parts[i].ranks;
        }
        return a_chips == b_chips && a_ranks == b_ranks;
}

/* Do the parts lie under several switches, as far as nodes say under which they are? */
static bool is_apart(const struct assignment *made)
{
        for (size_t i = 1; i < made->count; i++)
                if (made->parts[i].node->switch_domain != made->parts[0].node->switch_domain)
                        return true;
        return false;
}

/* Is it the first part under its switch? */
static bool is_first_under(const struct assignment *made, size_t index)
{
        for (size_t i = 0; i < index; i++)
                if (made->parts[i].node->switch_domain == made->parts[index].node->switch_domain)
                        return false;
        return made->parts[index].node->switch_domain != 0;
}

static int by_switch(const void *a, const void *b)
{
        const struct open_group *x = a, *y = b;

        if (x->node->switch_domain != y->node->switch_domain)
                return x->node->switch_domain < y->node->switch_domain ? -1 : 1;
        return 0;
}

/* @sorted: by_switch(). Return: those under one switch, as they were collected; borrowed. */
static struct open_groups groups_under(const struct open_groups *sorted, uint32_t domain)
{
        size_t from = 0, to = sorted->count;

        while (from < to) {
                size_t middle = from + (to - from) / 2;

                if (sorted->items[middle].node->switch_domain < domain)
                        from = middle + 1;
                else
                        to = middle;
        }
        for (; to < sorted->count && sorted->items[to].node->switch_domain == domain; to++) {
                struct open_group *group = &sorted->items[to];

                group->choice.open = group->found;
                group->choice.taken = group->beyond = 0;
        }
        return (struct open_groups){ .items = sorted->items + from, .count = to - from };
}

struct step {
        double ms;
        struct chip_speed_verdict speeds;
};

static struct step step_of(const struct assigner *a)
{
        struct step step = { 0 };

        step.ms = step_ms(a, &a->made->parts[0], 0, &step.speeds);
        return step;
}

/* Steps compare where their figures are of one kind: milliseconds that were measured say nothing beside what
 * a data sheet promises. */
static bool is_as_short(const struct step *together, const struct step *apart)
{
        return together->ms >= 0 && together->ms <= apart->ms &&
               chip_speed_same_kind(&together->speeds, &apart->speeds);
}

/* The whole job under one of the switches that its parts lie under, if it fits there and no step gets longer:
 * what its ranks say to each other then passes that switch alone. Example: 16 chips on nodes of 8, a and c
 * under s1, b under s2: not a and b, as their names go, but a and c. The ledger is asked once: each switch
 * has a stretch of what was collected, and no group is looked at under two. */
static int place_under_a_switch(struct assigner *a, struct err *err)
{
        int r = open_groups_collect(a->claim, a->equal_to, &a->groups);
        struct open_groups all;
        struct assignment apart;
        struct step before, step;
        bool found = false;

        assignment_free(a->made);
        r = r < 0 ? no_place(r, a, err) : place_roles(a, err);
        if (r < 0 || !is_apart(a->made))
                return r;
        all = a->groups;
        before = step_of(a);
        apart = *a->made;
        qsort(all.items, all.count, sizeof(*all.items), by_switch);
        for (size_t i = 0; i < apart.count && !found; i++) {
                if (!is_first_under(&apart, i))
                        continue;
                *a->made = (struct assignment){ 0 };
                a->groups = groups_under(&all, apart.parts[i].node->switch_domain);
                if (place_roles(a, NULL) == 0 && is_as_much(a->made, &apart)) {
                        step = step_of(a);
                        found = is_as_short(&step, &before);
                }
                if (!found)
                        assignment_free(a->made);
        }
        a->groups = all;
        if (found)
                assignment_free(&apart);
        else
                *a->made = apart;
        return 0;
}

static int by_name(const void *a, const void *b)
{
        return strcmp((*(const struct ledger_node *const *) a)->name,
                      (*(const struct ledger_node *const *) b)->name);
}

/* Equal nodes: each configuration is tried, in the order of the nodes' names, until the job fits. Where none
 * has room, what is said is of the one that has most. */
static int place_on_equals(struct assigner *a, struct err *err)
{
        size_t count = a->ledger->node_count;
        CLEANUP(free_p) const struct ledger_node **nodes = calloc(count + 1, sizeof(*nodes));
        const struct ledger_node *most = NULL;
        uint64_t found = 0;
        int r = err_set(err, -EBUSY, "there is no node with chips for the job");

        if (nodes == NULL)
                return no_place(-ENOMEM, a, err);
        memcpy(nodes, a->ledger->nodes, count * sizeof(*nodes));
        qsort(nodes, count, sizeof(*nodes), by_name);
        for (size_t n = 0; n < count; n++) {
                bool seen = false;

                for (size_t k = 0; k < n && !seen; k++)
                        seen = rules_difference(nodes[k], nodes[n]) == NULL;
                if (seen)
                        continue;
                a->equal_to = nodes[n];
                r = place_under_a_switch(a, err);
                if (r != -EBUSY)
                        return r;
                if (most == NULL || a->made->found > found) {
                        most = nodes[n];
                        found = a->made->found;
                }
        }
        if (most != NULL && most != a->equal_to) {
                a->equal_to = most;
                r = place_under_a_switch(a, err);
        }
        return err_wrap(err, r, "equal nodes");
}

static void assigner_init(struct assigner *a, const struct open_groups_claim *claim, struct assignment *made)
{
        *a = (struct assigner){ .claim = claim,
                                .ledger = claim->job.ledger,
                                .job = claim->job.job,
                                .placement = placement_of_job(claim->job.job),
                                .made = made };
}

int assignment_make(const struct open_groups_claim *claim, size_t parts_max, struct assignment *ret,
                    struct err *err)
{
        struct assigner a;
        int r;

        *ret = (struct assignment){ 0 };
        assigner_init(&a, claim, ret);
        a.parts_max = parts_max;
        r = a.job->equal_nodes ? place_on_equals(&a, err) : place_under_a_switch(&a, err);
        if (r == 0 && assignment_split(claim, &a.groups, parts_max, ret) < 0)
                r = no_place(-ENOMEM, &a, err);
        open_groups_free(&a.groups);
        return r;
}

void assignment_free(struct assignment *assignment)
{
        free(assignment->parts);
        assignment->parts = NULL;
        assignment->count = assignment->note_count = 0;
}

/* Chips that the job's other parts wait for; the ledger leaves them out for the job. */
static uint32_t held_by_others(const struct assignment_part *parts, size_t count, size_t index,
                               const struct ledger_group *group)
{
        uint32_t chips = 0;

        for (size_t i = 0; i < count; i++)
                chips += i != index && parts[i].group == group ? parts[i].chips : 0;
        return chips;
}

int assignment_spare(const struct open_groups_claim *claim, const struct assignment_part *parts, size_t count,
                     size_t index, uint32_t model, const char *runtime, struct assignment_part *ret_part)
{
        const struct job_role *asked =
                assignment_role(claim->job.job, parts[index].server, parts[index].entry);
        struct job_role role = asked == NULL ? (struct job_role){ 0 } : *asked;
        uint32_t chips = parts[index].chips;
        const struct open_group *best = NULL;
        struct assigner a;
        int r;

        (void) text_copy(role.runtime, sizeof(role.runtime), runtime);
        assigner_init(&a, claim, NULL);
        r = open_groups_collect(claim, NULL, &a.groups);
        if (r == 0)
                open_groups_consider(&claim->job, &role, &a.groups);
        for (size_t i = 0; r == 0 && asked != NULL && i < a.groups.count; i++) {
                struct open_group *candidate = &a.groups.items[i];
                uint32_t held = held_by_others(parts, count, index, candidate->group);
                bool same = candidate->group->model == model;

                if (candidate->choice.open < held + chips || !candidate->fits)
                        continue;
                candidate->choice.open -= held;
                if (best == NULL || (same && best->group->model != model) ||
                    (same == (best->group->model == model) &&
                     placement_goes_before(PLACEMENT_PACKED, &candidate->choice, &best->choice, chips)))
                        best = candidate;
        }
        if (r == 0 && best != NULL) {
                ret_part->node = best->node;
                ret_part->group = best->group;
        }
        open_groups_free(&a.groups);
        return r < 0 ? r : best == NULL ? -EBUSY : 0;
}
