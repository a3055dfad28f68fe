#include "job/plan/job_plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "job/plan/job_plan_shares.h"

/* A device group of a node that the rules let the job use. */
struct candidate {
        const struct ledger_node *node;
        const struct ledger_group *group;
        uint32_t open;  /* chips that are free for this job */
        uint32_t taken; /* by this plan */
        double speed;   /* of one chip, for comparing alone: of the role that compare_speeds() was told */
};

struct planner {
        const struct job_plan_question *question;
        struct candidate *candidates;
        size_t count, capacity;
        struct ledger_group (*scratch)[GROUPS_MAX];
        struct job_state *state;
        const struct ledger_node *equal_to; /* the configuration that equal nodes have; NULL = any */
        const struct job_role *compared;    /* whose speeds the candidates have; NULL = nobody's */
};

/* --- who may be used
 * --------------------------------------------------------------------------------------------- */

bool job_role_takes(const struct job_role *role, const struct symbols *symbols,
                    const struct ledger_group *group)
{
        return (role->runtime[0] == '\0' ||
                vendor_serves(symbol_name(symbols, group->runtime), role->runtime)) &&
               (role->vendor[0] == '\0' || strcmp(role->vendor, symbol_name(symbols, group->vendor)) == 0) &&
               (role->group[0] == '\0' || strcmp(role->group, symbol_name(symbols, group->name)) == 0) &&
               (role->model[0] == '\0' || job_model_matches(role->model, symbol_name(symbols, group->model)));
}

static bool is_cpu(const struct symbols *symbols, const struct ledger_group *group)
{
        return strcmp(symbol_name(symbols, group->runtime), "cpu") == 0;
}

static struct ask ask_for(const struct job_plan_question *q, const struct ledger_group *group, uint32_t chips)
{
        struct ask ask = {
                .items = { { .resource = group->resource, .chips = chips } },
                .item_count = 1,
                .emergency = q->emergency,
                .preemptible = q->job->preemptible,
                .class_chips = job_worker_chips(q->job) + job_server_chips(q->job),
                .match = NODE_MATCH_NOTHING, /* our pods tolerate no taint */
        };

        if (group->model != 0) {
                ask.models[0] = group->model;
                ask.model_count = 1;
        }
        return ask;
}

/* Chips of a group that a pod holds; of one that others bound only the resource is known. */
static uint32_t chips_in(const struct ledger_pod *pod, const struct ledger_group *group)
{
        uint32_t chips = 0;

        for (size_t i = 0; i < pod->part_count; i++)
                chips += pod->parts[i].group == group->name ? pod->parts[i].chips : 0;
        for (size_t i = 0; pod->part_count == 0 && i < pod->ask.item_count; i++)
                chips += pod->ask.items[i].resource == group->resource ? pod->ask.items[i].chips : 0;
        return chips;
}

/* Chips of a group that borrowers of the reserve would give back. */
static uint32_t lent_chips(const struct ledger_node *node, const struct ledger_group *group)
{
        uint32_t chips = 0;

        for (const struct ledger_pod *pod = node->pods; pod != NULL && node->reserved;
             pod = pod->next_on_node)
                chips += pod->ask.preemptible && !pod->ask.emergency ? chips_in(pod, group) : 0;
        return chips;
}

/* Return: the chips of the group that the job may take. */
static uint32_t open_chips(const struct planner *p, const struct ledger_node *node,
                           const struct ledger_group *group)
{
        const struct job_plan_question *q = p->question;
        struct ask ask = ask_for(q, group, 1);
        struct question question = { .ledger = q->ledger,
                                     .rules = q->rules,
                                     .ask = &ask,
                                     .job = q->ledger_job,
                                     .now_usec = q->now_usec,
                                     .unfiltered = true };
        uint32_t lent = q->take_back ? lent_chips(node, group) : 0, open;
        enum reason reason;

        if (p->equal_to != NULL && p->equal_to != node && configuration_difference(p->equal_to, node) != NULL)
                return 0;
        overflow_prepare(&question, &question.overflow);
        reason = rules_judge(&question, node);
        if (reason != REASON_NONE &&
            !(lent > 0 && (reason == REASON_CHIPS_BUSY || reason == REASON_CHIPS_LEASED)))
                return 0;
        /* the account as the job sees it: its own lease and pods are its own */
        ledger_account(node, NULL, q->ledger_job, p->scratch[0]);
        open = group_open(&p->scratch[0][group - node->groups]) + lent;
        return open < group->usable ? open : group->usable;
}

static int add_candidate(struct planner *p, const struct ledger_node *node, const struct ledger_group *group,
                         uint32_t open)
{
        if (p->count == p->capacity) {
                size_t capacity = p->capacity == 0 ? 64 : 2 * p->capacity;
                struct candidate *grown = realloc(p->candidates, capacity * sizeof(*grown));

                if (grown == NULL)
                        return -ENOMEM;
                p->candidates = grown;
                p->capacity = capacity;
        }
        p->candidates[p->count++] = (struct candidate){ .node = node, .group = group, .open = open };
        return 0;
}

/* Every group that some role of the job could use. */
static int gather(struct planner *p)
{
        const struct ledger *ledger = p->question->ledger;
        const struct job *job = p->question->job;
        struct job_role server = job_plan_server_role(job);

        p->count = 0;
        p->compared = NULL;
        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[n]->groups[g];
                        bool wanted =
                                job_server_chips(job) > 0 && job_role_takes(&server, &ledger->symbols, group);
                        uint32_t open;

                        for (size_t i = 0; i < job->worker_count && !wanted; i++)
                                wanted = job_role_takes(&job->workers[i], &ledger->symbols, group);
                        if (!wanted || group->resource == 0)
                                continue;
                        open = open_chips(p, ledger->nodes[n], group);
                        if (open > 0 && add_candidate(p, ledger->nodes[n], group, open) < 0)
                                return -ENOMEM;
                }
        return 0;
}

static uint32_t left_in(const struct candidate *candidate)
{
        return candidate->open > candidate->taken ? candidate->open - candidate->taken : 0;
}

/* --- placement
 * --------------------------------------------------------------------------------------------------- */

static bool by_name(const struct candidate *a, const struct candidate *b)
{
        int order = strcmp(a->node->name, b->node->name);

        return order != 0 ? order < 0 : a->group < b->group;
}

/* packed: the smallest group that holds all that is wanted, else the largest. */
static bool packs_better(const struct candidate *a, const struct candidate *b, uint32_t wanted)
{
        bool a_holds = left_in(a) >= wanted, b_holds = left_in(b) >= wanted;

        if (a_holds != b_holds)
                return a_holds;
        if (left_in(a) != left_in(b))
                return a_holds ? left_in(a) < left_in(b) : left_in(a) > left_in(b);
        return by_name(a, b);
}

static bool goes_before(int placement, const struct candidate *a, const struct candidate *b, uint32_t wanted)
{
        switch (placement) {
        case JOB_PLACEMENT_UNIFORM:
                return a->taken != b->taken ? a->taken < b->taken : by_name(a, b);
        case JOB_PLACEMENT_LARGEST_FREE:
                return left_in(a) != left_in(b) ? left_in(a) > left_in(b) : by_name(a, b);
        case JOB_PLACEMENT_PACKED:
                return packs_better(a, b, wanted);
        default:
                return a->speed != b->speed ? a->speed > b->speed : packs_better(a, b, wanted);
        }
}

/* Like is compared with like: what was measured if all chips that the role takes have it, else what the
 * device table says of each. */
static void compare_speeds(struct planner *p, const struct job_role *role)
{
        const struct symbols *symbols = &p->question->ledger->symbols;
        bool measured = true;

        if (p->compared == role)
                return;
        p->compared = role;
        for (size_t i = 0; i < p->count; i++) {
                struct candidate *candidate = &p->candidates[i];
                const struct ledger_group *group = candidate->group;

                if (!job_role_takes(role, symbols, group))
                        continue;
                candidate->speed = job_plan_chip_speed(
                        p->question,
                        role->runtime[0] != '\0' ? role->runtime : symbol_name(symbols, group->runtime),
                        group->model);
                measured = measured && candidate->speed > 0;
        }
        for (size_t i = 0; !measured && i < p->count; i++)
                p->candidates[i].speed = p->candidates[i].group->tflops;
}

static struct candidate *best_for(struct planner *p, const struct job_role *role, uint32_t wanted)
{
        struct candidate *best = NULL;

        if (p->question->job->placement == JOB_PLACEMENT_FASTEST)
                compare_speeds(p, role);
        for (size_t i = 0; i < p->count; i++) {
                struct candidate *candidate = &p->candidates[i];

                if (left_in(candidate) == 0 ||
                    !job_role_takes(role, &p->question->ledger->symbols, candidate->group))
                        continue;
                if (best == NULL || goes_before(p->question->job->placement, candidate, best, wanted))
                        best = candidate;
        }
        return best;
}

static struct job_group *find_group(struct planner *p, bool server, size_t entry,
                                    const struct candidate *candidate)
{
        const struct symbols *symbols = &p->question->ledger->symbols;

        for (size_t i = 0; i < p->state->group_count; i++) {
                struct job_group *group = &p->state->groups[i];

                if (group->server == server && group->entry == entry &&
                    strcmp(group->node, candidate->node->name) == 0 &&
                    strcmp(group->group, symbol_name(symbols, candidate->group->name)) == 0)
                        return group;
        }
        return NULL;
}

static void put_on(const struct planner *p, const struct candidate *candidate, struct job_group *group)
{
        const struct symbols *symbols = &p->question->ledger->symbols;

        (void) text_copy(group->node, sizeof(group->node), candidate->node->name);
        (void) text_copy(group->group, sizeof(group->group), symbol_name(symbols, candidate->group->name));
        (void) text_copy(group->vendor, sizeof(group->vendor),
                         symbol_name(symbols, candidate->group->vendor));
        (void) text_copy(group->model, sizeof(group->model), symbol_name(symbols, candidate->group->model));
        (void) text_copy(group->resource, sizeof(group->resource),
                         symbol_name(symbols, candidate->group->resource));
}

/* `chips` more chips of a candidate, for `ranks` ranks. */
static int take(struct planner *p, bool server, size_t entry, const struct job_role *role,
                struct candidate *candidate, uint32_t chips, uint32_t ranks)
{
        struct job_group *group = find_group(p, server, entry, candidate);

        if (group == NULL) {
                struct job_group *grown =
                        p->state->group_count == JOB_GROUPS_MAX
                                ? NULL
                                : realloc(p->state->groups, (p->state->group_count + 1) * sizeof(*grown));

                if (grown == NULL)
                        return p->state->group_count == JOB_GROUPS_MAX ? -E2BIG : -ENOMEM;
                p->state->groups = grown;
                group = &grown[p->state->group_count++];
                *group = (struct job_group){ .server = server,
                                             .entry = (uint32_t) entry,
                                             .index = p->state->next_index++,
                                             .exit_code = -1 };
                put_on(p, candidate, group);
                (void) text_copy(group->runtime, sizeof(group->runtime),
                                 role->runtime[0] != '\0' ? role->runtime
                                                          : symbol_name(&p->question->ledger->symbols,
                                                                        candidate->group->runtime));
        }
        candidate->taken += chips;
        group->chips += chips;
        group->ranks += ranks;
        return 0;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

/* A CPU group serves any number of ranks: those that found no chip of their own are spread over the job's. */
static uint32_t oversubscribe(struct planner *p, bool server, size_t entry, uint32_t ranks)
{
        const struct symbols *symbols = &p->question->ledger->symbols;
        uint32_t placed = 0, more = 0;
        bool progress = true;

        while (placed < ranks && progress) {
                progress = false;
                for (size_t i = 0; i < p->state->group_count && placed < ranks; i++) {
                        struct job_group *group = &p->state->groups[i];

                        if (group->server != server || group->entry != entry ||
                            strcmp(group->vendor, "cpu") != 0 || group->ranks >= JOB_GROUP_RANKS_MAX)
                                continue;
                        group->ranks++;
                        placed++;
                        progress = true;
                }
        }
        (void) symbols;
        more = placed;
        if (more > 0)
                job_state_note(p->state, "Oversubscribed: %u ranks of %s share CPU groups with others", more,
                               server ? "the servers" : "a worker entry");
        return placed;
}

/* Return: ranks that found a place (fewer than wanted where chips ran out); negative errno. */
static long place(struct planner *p, bool server, size_t entry, const struct job_role *role, uint32_t wanted,
                  uint32_t *ret_cpu_ranks)
{
        uint32_t left = wanted;

        *ret_cpu_ranks = 0;
        while (left > 0) {
                struct candidate *candidate = best_for(p, role, left);
                uint32_t chips;
                int r;

                if (candidate == NULL)
                        break;
                chips = p->question->job->placement == JOB_PLACEMENT_UNIFORM
                                ? 1
                                : smaller(left_in(candidate), left);
                if (is_cpu(&p->question->ledger->symbols, candidate->group))
                        *ret_cpu_ranks += chips;
                r = take(p, server, entry, role, candidate, chips, chips);
                if (r < 0)
                        return r;
                left -= chips;
        }
        return (long) (wanted - left);
}

static const char *role_words(const struct job_role *role, char words[160])
{
        (void) text_format(words, 160, "%s%s%s%s%s%s", role->runtime, role->runtime[0] != '\0' ? " " : "",
                           role->vendor, role->vendor[0] != '\0' ? " " : "", role->model,
                           role->group[0] != '\0' ? role->group : "");
        return words;
}

static int place_all(struct planner *p, bool server, size_t entry, const struct job_role *role,
                     uint32_t wanted, struct err *err)
{
        uint32_t cpu_ranks;
        long placed = place(p, server, entry, role, wanted, &cpu_ranks);
        char words[160];

        if (placed == -E2BIG)
                return err_set(err, -E2BIG,
                               "the job would need more than %d device groups; ask for larger groups or "
                               "fewer chips",
                               JOB_GROUPS_MAX);
        if (placed < 0)
                return err_set(err, (int) placed, "no memory for the plan");
        if (placed < wanted && cpu_ranks > 0)
                placed += oversubscribe(p, server, entry, wanted - (uint32_t) placed);
        if (placed == wanted)
                return 0;
        return err_set(err, -EBUSY, "%s needs %u chips of %sand only %ld are free for it now",
                       server ? "spec.servers" : "an entry of spec.workers", wanted, role_words(role, words),
                       placed);
}

/* --- more than the least
 * ----------------------------------------------------------------------------------------- */

/* Chips beyond minChips are added only where they shorten the step. */
static int place_extra(struct planner *p, size_t entry, const struct job_role *role, struct err *err)
{
        uint32_t left = (uint32_t) (role->chips - role->min_chips);
        double step = job_plan_step_ms(p->question, p->state);

        while (left > 0) {
                struct candidate *candidate = best_for(p, role, left);
                struct job_state before;
                uint32_t chips;
                double longer;
                int r;

                if (candidate == NULL)
                        break;
                if (job_state_copy(p->state, &before) < 0)
                        return err_set(err, -ENOMEM, "no memory for the plan");
                chips = p->question->job->placement == JOB_PLACEMENT_UNIFORM
                                ? 1
                                : smaller(left_in(candidate), left);
                r = take(p, false, entry, role, candidate, chips, chips);
                longer = r == 0 ? job_plan_step_ms(p->question, p->state) : INFINITY;
                if (r == -ENOMEM) {
                        job_state_free(&before);
                        return err_set(err, -ENOMEM, "no memory for the plan");
                }
                if (longer < step) {
                        job_state_free(&before);
                        left -= chips;
                        step = longer;
                        continue;
                }
                job_state_free(p->state);
                *p->state = before;
                candidate->open = candidate->taken = 0; /* not asked again */
                job_state_note(p->state, "NotAdded: %u chips of %s on %s would slow the job", chips,
                               symbol_name(&p->question->ledger->symbols, candidate->group->name),
                               candidate->node->name);
        }
        return 0;
}

/* --- the whole
 * --------------------------------------------------------------------------------------------------- */

static int place_job(struct planner *p, struct err *err)
{
        const struct job *job = p->question->job;
        uint32_t servers = (uint32_t) job_server_chips(job);
        struct job_role server = job_plan_server_role(job);
        int r = gather(p);

        if (r < 0)
                return err_set(err, r, "no memory for the plan");
        for (size_t i = 0; i < job->worker_count && r == 0; i++)
                r = place_all(p, false, i, &job->workers[i], (uint32_t) job->workers[i].min_chips, err);
        if (r == 0 && servers > 0)
                r = place_all(p, true, 0, &server, servers, err);
        for (size_t i = 0; i < job->worker_count && r == 0; i++)
                if (job->workers[i].min_chips < job->workers[i].chips)
                        r = place_extra(p, i, &job->workers[i], err);
        return r;
}

/* Equal nodes: each configuration is tried, in the order of the nodes' names, until the job fits. */
static int place_on_equals(struct planner *p, struct err *err)
{
        const struct ledger *ledger = p->question->ledger;
        int r = err_set(err, -EBUSY, "there is no node with chips for the job");

        for (uint32_t n = 0; n < ledger->node_count; n++) {
                bool seen = false;

                for (uint32_t k = 0; k < n && !seen; k++)
                        seen = configuration_difference(ledger->nodes[k], ledger->nodes[n]) == NULL;
                if (seen)
                        continue;
                p->equal_to = ledger->nodes[n];
                job_state_clear_plan(p->state);
                r = place_job(p, err);
                if (r != -EBUSY)
                        return r;
        }
        return r < 0 ? err_wrap(err, r, "equal nodes") : r;
}

/* Servers first: they are the first ranks. Names and ranks follow from the order. */
static int compare_groups(const void *a, const void *b)
{
        const struct job_group *x = a, *y = b;

        if (x->server != y->server)
                return y->server - x->server;
        if (x->entry != y->entry)
                return x->entry < y->entry ? -1 : 1;
        return (x->index > y->index) - (x->index < y->index);
}

static void name_groups(struct job_state *state)
{
        uint32_t rank = 0;

        qsort(state->groups, state->group_count, sizeof(*state->groups), compare_groups);
        for (size_t i = 0; i < state->group_count; i++) {
                struct job_group *group = &state->groups[i];

                group->first_rank = rank;
                rank += group->ranks;
                if (group->name[0] != '\0')
                        continue;
                if (group->server)
                        (void) text_format(group->name, sizeof(group->name), "s-%u", group->index);
                else
                        (void) text_format(group->name, sizeof(group->name), "w%u-%u", group->entry,
                                           group->index);
        }
}

static void planner_free(struct planner *p)
{
        free(p->candidates);
        free(p->scratch);
}

static int planner_init(struct planner *p, const struct job_plan_question *question, struct job_state *state,
                        struct err *err)
{
        *p = (struct planner){ .question = question, .state = state };
        p->scratch = malloc(sizeof(*p->scratch));
        return p->scratch == NULL ? err_set(err, -ENOMEM, "no memory for the plan") : 0;
}

int job_plan(const struct job_plan_question *question, struct job_state *state, struct err *err)
{
        struct planner p;
        int r = planner_init(&p, question, state, err);

        job_state_clear_plan(state);
        if (r == 0)
                r = question->job->equal_nodes ? place_on_equals(&p, err) : place_job(&p, err);
        if (r == 0) {
                name_groups(state);
                r = job_plan_share(question, state, err);
        }
        planner_free(&p);
        if (r < 0)
                job_state_clear_plan(state);
        return r;
}

/* --- changes to a plan
 * ------------------------------------------------------------------------------------------- */

static const struct job_role *role_of(const struct job *job, const struct job_group *group,
                                      struct job_role *server)
{
        *server = job_plan_server_role(job);
        if (group->server)
                return server;
        return group->entry < job->worker_count ? &job->workers[group->entry] : NULL;
}

int job_plan_move(const struct job_plan_question *question, struct job_state *state, size_t index,
                  struct err *err)
{
        struct job_group *group = &state->groups[index];
        struct candidate *best = NULL;
        struct job_role server;
        const struct job_role *role = role_of(question->job, group, &server);
        char model[DEVICE_MODEL_BYTES];
        struct planner p;
        int r = planner_init(&p, question, state, err);

        (void) text_copy(model, sizeof(model), group->model);
        if (r == 0 && gather(&p) < 0)
                r = err_set(err, -ENOMEM, "no memory for the plan");
        /* what the job's other groups hold or wait for is not to be had; the ledger leaves all of the job out
         */
        for (size_t i = 0; r == 0 && i < p.count; i++)
                for (size_t k = 0; k < state->group_count; k++)
                        if (k != index && strcmp(state->groups[k].node, p.candidates[i].node->name) == 0 &&
                            strcmp(state->groups[k].group,
                                   symbol_name(&question->ledger->symbols, p.candidates[i].group->name)) == 0)
                                p.candidates[i].taken += state->groups[k].chips;
        for (size_t i = 0; r == 0 && role != NULL && i < p.count; i++) {
                struct candidate *candidate = &p.candidates[i];
                bool same =
                        strcmp(symbol_name(&question->ledger->symbols, candidate->group->model), model) == 0;
                bool best_same =
                        best != NULL &&
                        strcmp(symbol_name(&question->ledger->symbols, best->group->model), model) == 0;

                if (left_in(candidate) < group->chips ||
                    !job_role_takes(role, &question->ledger->symbols, candidate->group))
                        continue;
                if (best == NULL || (same && !best_same) ||
                    (same == best_same && packs_better(candidate, best, group->chips)))
                        best = candidate;
        }
        if (r == 0 && best == NULL)
                r = err_set(err, -EBUSY, "there are no %u spare chips for %s now", group->chips, group->name);
        if (r == 0) {
                put_on(&p, best, group);
                if (strcmp(model, group->model) != 0)
                        r = job_plan_share(question, state, err);
        }
        planner_free(&p);
        return r;
}

bool job_plan_may_leave(const struct job *job, const struct job_state *state, size_t index)
{
        const struct job_group *group = &state->groups[index];
        uint64_t ranks = 0;

        if (group->server || group->entry >= job->worker_count)
                return false;
        for (size_t i = 0; i < state->group_count; i++)
                if (!state->groups[i].server && state->groups[i].entry == group->entry)
                        ranks += state->groups[i].ranks;
        return ranks >= job->workers[group->entry].min_chips + group->ranks;
}

int job_plan_leave_out(const struct job_plan_question *question, struct job_state *state, size_t index,
                       struct err *err)
{
        memmove(&state->groups[index], &state->groups[index + 1],
                (state->group_count - index - 1) * sizeof(*state->groups));
        state->group_count--;
        name_groups(state);
        return job_plan_share(question, state, err);
}
