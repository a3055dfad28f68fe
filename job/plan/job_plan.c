/* From parts of an assignment to named groups with ranks and shares, and back when one of them moves. */
#include "job/plan/job_plan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/plan/stages/group_replicas.h"
#include "job/stages/stage_plan.h"
#include "job/stages/stage_profile.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

static void put_on(const struct symbols *symbols, const struct assignment_part *part, struct job_group *group)
{
        const struct ledger_devices_offer *offer =
                ledger_devices_offer(part->node->devices, part->group->resource);

        (void) text_copy(group->node, sizeof(group->node), part->node->name);
        (void) text_copy(group->group, sizeof(group->group), symbols_name(symbols, part->group->name));
        (void) text_copy(group->vendor, sizeof(group->vendor), symbols_name(symbols, part->group->vendor));
        (void) text_copy(group->model, sizeof(group->model), symbols_name(symbols, part->group->model));
        (void) text_copy(group->resource, sizeof(group->resource),
                         symbols_name(symbols, part->group->resource));
        group->planned = offer != NULL && offer->planned;
}

/* Servers first: they are the first ranks. Names and ranks follow from the order. */
static int compare_groups(const void *a, const void *b)
{
        const struct job_group *x = a, *y = b;

        if (x->server != y->server)
                return y->server - x->server;
        if (x->layers[0] != '\0' && y->layers[0] != '\0') /* of pipelines: in the order of their stages */
                return (x->first_rank > y->first_rank) - (x->first_rank < y->first_rank);
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

static int add_groups(const struct open_groups_claim *claim, const struct assignment *assignment,
                      struct job_state *state)
{
        const struct symbols *symbols = &claim->job.ledger->symbols;

        state->groups = calloc(assignment->count + 1, sizeof(*state->groups));
        if (state->groups == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < assignment->count; i++) {
                const struct assignment_part *part = &assignment->parts[i];
                const struct job_role *role = assignment_role(claim->job.job, part->server, part->entry);
                struct job_group *group = &state->groups[state->group_count++];

                *group = (struct job_group){ .server = part->server,
                                             .entry = part->entry,
                                             .index = state->next_index++,
                                             .chips = part->chips,
                                             .ranks = part->ranks,
                                             .exit_code = -1 };
                put_on(symbols, part, group);
                (void) text_copy(group->runtime, sizeof(group->runtime),
                                 role->runtime[0] != '\0' ? role->runtime
                                                          : symbols_name(symbols, part->group->runtime));
        }
        for (size_t i = 0; i < assignment->note_count; i++)
                job_state_note(state, "%s", assignment->notes[i]);
        name_groups(state);
        return 0;
}

int job_plan(const struct open_groups_claim *claim, struct job_state *state, struct err *err)
{
        struct assignment assignment;
        int r = assignment_make(claim, JOB_GROUPS_MAX, &assignment, err);

        job_state_clear_plan(state);
        if (r == 0 && add_groups(claim, &assignment, state) < 0)
                r = err_set(err, -ENOMEM, "no memory for the plan");
        assignment_free(&assignment);
        if (r == 0)
                r = job_plan_share(&claim->job, state, err);
        if (r < 0)
                job_state_clear_plan(state);
        return r;
}

/* The part that a group of the state is; group NULL = its node or device group is gone. */
static struct assignment_part part_of(const struct ledger *ledger, const struct job_group *group)
{
        const struct ledger_node *node = ledger_nodes_find(ledger, group->node, strlen(group->node));
        struct assignment_part part = {
                .server = group->server, .entry = group->entry, .chips = group->chips, .ranks = group->ranks
        };

        for (uint32_t i = 0; node != NULL && i < node->group_count; i++)
                if (strcmp(symbols_name(&ledger->symbols, node->groups[i].name), group->group) == 0) {
                        part.node = node;
                        part.group = &node->groups[i];
                }
        return part;
}

/* Is its pod there? The ledger then counts its chips as held, also for the job. */
static bool is_bound(const struct open_groups_claim *claim, const struct ledger_node *node,
                     const struct job_group *group)
{
        const struct ledger_pod *pod = claim->ledger_job != NULL && node != NULL ? node->pods : NULL;
        char name[JOB_POD_NAME_BYTES];

        job_group_pod_name(claim->job.job->name, group, name);
        while (pod != NULL && (strcmp(pod->name, name) != 0 ||
                               ledger_jobs_planning(claim->job.ledger, pod->key) != claim->ledger_job))
                pod = pod->next_on_node;
        return pod != NULL;
}

int job_plan_move(const struct open_groups_claim *claim, struct job_state *state, size_t index,
                  struct err *err)
{
        const struct symbols *symbols = &claim->job.ledger->symbols;
        CLEANUP(free_p) struct assignment_part *parts = calloc(state->group_count, sizeof(*parts));
        struct job_group *group = &state->groups[index];
        CLEANUP(free_p) struct job_group *before = calloc(state->group_count, sizeof(*before));
        char model[DEVICE_MODEL_BYTES];
        int r = -ENOMEM;

        (void) text_copy(model, sizeof(model), group->model);
        for (size_t i = 0; parts != NULL && before != NULL && i < state->group_count; i++) {
                parts[i] = part_of(claim->job.ledger, &state->groups[i]);
                if (i != index && is_bound(claim, parts[i].node, &state->groups[i]))
                        parts[i].chips = 0;
        }
        if (parts != NULL && before != NULL)
                r = assignment_spare(claim, parts, state->group_count, index,
                                     symbols_find(symbols, model, strlen(model)), group->runtime,
                                     &parts[index]);
        if (r == -EBUSY)
                return err_set(err, r, "there are no %u spare chips for %s now", group->chips, group->name);
        if (r < 0)
                return err_set(err, r, "no memory for the plan");
        memcpy(before, state->groups, state->group_count * sizeof(*before));
        put_on(symbols, &parts[index], group);
        if (strcmp(model, group->model) == 0 &&
            (claim->job.job->strategy != JOB_STRATEGY_SPLIT || claim->job.job->replicas != 1))
                return 0;                    /* of a split the link and the memory count, too */
        if (claim->job.job->replicas != 1) { /* its pods stand: pipelines cannot be dealt out anew */
                memcpy(state->groups, before, state->group_count * sizeof(*before));
                return err_set(err, -EBUSY,
                               "there are no %u spare chips of model %s for %s now: of a job with "
                               "spec.replicas a pipeline goes on on chips of the same model alone",
                               group->chips, model, group->name);
        }
        r = job_plan_share(&claim->job, state, err);
        if (r < 0)
                memcpy(state->groups, before, state->group_count * sizeof(*before));
        return r;
}

bool job_plan_may_leave(const struct job *job, const struct job_state *state, size_t index)
{
        const struct job_group *group = &state->groups[index];
        uint64_t ranks = 0;

        if (group->server || group->entry >= job->worker_count || job->replicas != 1)
                return false; /* a pipeline without one of its stages has no model */
        for (size_t i = 0; i < state->group_count; i++)
                if (!state->groups[i].server && state->groups[i].entry == group->entry)
                        ranks += state->groups[i].ranks;
        return ranks >= job->workers[group->entry].min_chips + group->ranks;
}

int job_plan_leave_out(const struct open_groups_claim *claim, struct job_state *state, size_t index,
                       struct err *err)
{
        memmove(&state->groups[index], &state->groups[index + 1],
                (state->group_count - index - 1) * sizeof(*state->groups));
        state->group_count--;
        name_groups(state);
        return job_plan_share(&claim->job, state, err);
}

void job_plan_networks(const struct ledger *ledger, struct job_state *state)
{
        for (size_t i = 0; i < state->group_count; i++) {
                struct job_group *group = &state->groups[i];
                const struct ledger_node *node = ledger_nodes_find(ledger, group->node, strlen(group->node));

                group->network_mbps = node == NULL ? 0 : node->hardware.network_mbps;
        }
}

/* What somebody has to know of the speeds that the batch is cut by. */
static void note_speeds(const struct job *job, const struct chip_speed_verdict *verdict,
                        struct job_state *state)
{
        const struct job_group *lacking = &state->groups[verdict->lacking];
        char note[JOB_NOTE_BYTES], sentence[CHIP_SPEED_REMARK_BYTES] = "",
                                   member[JOB_GROUP_NAME_BYTES + DEVICE_MODEL_BYTES + 4];
        uint32_t ranks = 0;
        const char *word;

        for (size_t i = 0; i < state->group_count; i++)
                ranks += state->groups[i].server ? 0 : state->groups[i].ranks;
        if (ranks < 2 || !job_shares_follow_speeds(job))
                return;
        (void) text_format(member, sizeof(member), "%s (%s)", lacking->name,
                           lacking->model[0] != '\0' ? lacking->model : lacking->vendor);
        word = chip_speed_remark(verdict, member, lacking->node, sentence);
        (void) text_format(note, sizeof(note), "%s: %s", word == NULL ? "" : word, sentence);
        for (size_t i = 0; word != NULL && i < state->note_count; i++)
                if (strcmp(state->notes[i], note) == 0)
                        return; /* it is known since an earlier cut */
        if (word != NULL)
                job_state_note(state, "%s", note);
}

/* Each rank's part of the memory of its chips. */
static uint64_t memory_of(const struct job_group *group, const struct ledger_group *chips)
{
        return chips == NULL ? 0 : chips->memory_bytes * group->chips / (group->ranks > 0 ? group->ranks : 1);
}

static bool leaves_node(const struct job_state *state, const struct job_group *group)
{
        for (size_t i = 0; i < state->group_count; i++)
                if (strcmp(state->groups[i].node, group->node) != 0)
                        return true;
        return false;
}

static void describe(const struct batch_cut_job *job, const struct job_state *state,
                     const struct job_group *group, const struct batch_cut_share *share,
                     struct stage_plan_worker *ret)
{
        const struct ledger_node *node = ledger_nodes_find(job->ledger, group->node, strlen(group->node));

        *ret = (struct stage_plan_worker){
                .role = &job->job->workers[group->entry],
                .chips = group->ranks,
                .memory_bytes = memory_of(group, part_of(job->ledger, group).group),
                .leaves_node = leaves_node(state, group),
                .bytes_per_ms = stage_plan_link(node == NULL ? 0 : node->hardware.network_mbps,
                                                leaves_node(state, group)),
                .samples_per_s = share->samples_per_s / (group->ranks > 0 ? group->ranks : 1),
                .speed = share->speed,
        };
        (void) text_copy(ret->chip.vendor, sizeof(ret->chip.vendor), group->vendor);
        (void) text_copy(ret->chip.runtime, sizeof(ret->chip.runtime), group->runtime);
        (void) text_copy(ret->chip.model, sizeof(ret->chip.model), group->model);
        (void) text_copy(ret->chip.group, sizeof(ret->chip.group), group->group);
}

/* The layers of each group, as planned; the groups then stand in the order of the stages.
 * @index: of each worker's group. A group that is left idle keeps its chips until the job is planned anew. */
static int take_stages(struct job_state *state, const struct pipeline_plan *plan, const size_t *index,
                       size_t count, struct err *err)
{
        for (size_t w = 0; w < count; w++) {
                CLEANUP(free_p) char *layers = stage_plan_layers(plan, w);
                struct job_group *group = &state->groups[index[w]];

                if (layers == NULL)
                        return err_set(err, -ENOMEM, "no memory for the stages");
                for (size_t s = plan->stage_count; s-- > 0;)
                        group->first_rank = plan->stages[s].worker == w ? (uint32_t) s : group->first_rank;
                if (!text_copy(group->layers, sizeof(group->layers), layers))
                        return err_set(
                                err, -ERANGE,
                                "spec.workers: %u stages on one device group, %s, are more than a status "
                                "holds; ask for fewer chips of it",
                                group->ranks, group->group);
        }
        return 0;
}

static void say_stages(struct job_state *state, const struct stage_plan *plan)
{
        struct text said = { 0 };

        stage_plan_sentence(plan, &said);
        for (size_t i = 0; i < state->note_count; i++) /* the plan before is history */
                if (text_starts_with(state->notes[i], "Split: "))
                        memmove(&state->notes[i], &state->notes[i + 1],
                                (--state->note_count - i) * sizeof(*state->notes));
        job_state_note(state, "Split: %s", said.data == NULL ? "" : said.data);
        text_free(&said);
}

/* A split model over the groups. Every rank takes part: those of a range that would slow the job are left out
 * on one machine alone, where nothing was leased for them. */
static int plan_stages(const struct batch_cut_job *job, const struct batch_cut_share *shares,
                       struct job_state *state, struct err *err)
{
        size_t most = state->group_count + job_state_world_size(state) + 1;
        CLEANUP(free_p) struct stage_plan_worker *workers = calloc(most, sizeof(*workers));
        CLEANUP(free_p) size_t *index = calloc(most, sizeof(*index));
        CLEANUP(job_split_profile_free) struct job_split_profile own = { .samples = 1 };
        const struct job_split_profile *profile;
        struct stage_plan plan = { 0 };
        size_t count = 0, ranks = 0;
        int r;

        if (workers == NULL || index == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        for (size_t i = 0; i < state->group_count; i++) {
                state->groups[i].layers[0] = '\0';
                if (state->groups[i].server)
                        continue;
                describe(job, state, &state->groups[i], &shares[i], &workers[count]);
                ranks += state->groups[i].ranks;
                index[count++] = i;
                for (uint32_t n = 1; job->job->replicas != 1 && n < state->groups[i].ranks; n++) {
                        workers[count] = workers[count - 1]; /* each of its chips may go to any pipeline */
                        index[count++] = i;
                }
        }
        for (size_t w = 0; job->job->replicas != 1 && w < count; w++)
                workers[w].chips = 1;
        profile = stage_profile_of(job->job, ranks, &own);
        if (profile == NULL && (job->job->stage_count > 0 || job->job->replicas != 1))
                return err_set(err, -ERANGE,
                               "%s: how many layers the model has is not known; bind all of them, a "
                               "stage to each chip, or give spec.profile",
                               job->job->stage_count > 0 ? "spec.stages" : "spec.replicas");
        if (profile == NULL) {
                job_state_note(state,
                               "NotPlanned: the model's layers are not known: the program cuts itself; give "
                               "spec.profile");
                return 0;
        }
        r = stage_plan(job->job, profile, workers, count, true, PIPELINE_EFFORT_LOOP, &plan, err);
        if (r == 0 && job->job->replicas == 1)
                r = take_stages(state, &plan.pipeline, index, count, err);
        else if (r == 0)
                r = group_replicas_take(state, &plan, index, err);
        if (r == 0)
                say_stages(state, &plan);
        stage_plan_free(&plan);
        if (r == 0)
                name_groups(state);
        return r == -EINVAL ? -ERANGE : r;
}

/* What each group takes of the batch, by the speeds of now. @shares: of each */
static int cut_batch(const struct batch_cut_job *job, const struct job_state *state,
                     struct batch_cut_share *shares, struct chip_speed_verdict *verdict, struct err *err)
{
        CLEANUP(free_p) struct batch_cut_group *groups = calloc(state->group_count + 1, sizeof(*groups));

        if (groups == NULL)
                return err_set(err, -ENOMEM, "no memory for the shares");
        for (size_t i = 0; i < state->group_count; i++) {
                const struct job_group *group = &state->groups[i];

                groups[i] = (struct batch_cut_group){
                        .runtime = group->runtime,
                        .device = group->model[0] != '\0' ? group->model : group->vendor,
                        .entry = group->entry,
                        .node = group->node,
                        .name = group->group,
                        .group = part_of(job->ledger, group).group,
                        .chips = group->chips,
                        .ranks = group->ranks,
                        .server = group->server,
                };
        }
        return batch_cut(job, groups, state->group_count, shares, verdict, err);
}

int job_plan_split(const struct batch_cut_job *job, struct job_state *state, struct err *err)
{
        CLEANUP(free_p) struct batch_cut_share *shares = calloc(state->group_count + 1, sizeof(*shares));
        CLEANUP(free_p) struct stage_plan_worker *workers = calloc(state->group_count + 1, sizeof(*workers));
        CLEANUP(job_split_profile_free) struct job_split_profile own = { .samples = 1 };
        const struct job_split_profile *profile;
        struct chip_speed_verdict verdict;
        size_t ranks = 0;
        int r;

        stage_ranks_free(&state->split);
        if (shares == NULL || workers == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        for (size_t i = 0; i < state->group_count; i++) {
                if (state->groups[i].layers[0] == '\0')
                        return 0;
                ranks += state->groups[i].ranks;
        }
        r = cut_batch(job, state, shares, &verdict, err);
        for (size_t i = 0; r == 0 && i < state->group_count; i++)
                describe(job, state, &state->groups[i], &shares[i], &workers[i]);
        profile = r == 0 ? stage_profile_of(job->job, ranks, &own) : NULL;
        if (profile == NULL)
                return r;
        r = stage_plan_ranks(job->job, profile, workers, state->group_count, &state->split, err);
        return r == -EINVAL ? -ERANGE : r;
}

int job_plan_share(const struct batch_cut_job *job, struct job_state *state, struct err *err)
{
        CLEANUP(free_p) struct batch_cut_share *shares = calloc(state->group_count + 1, sizeof(*shares));
        struct chip_speed_verdict verdict = { .source = CHIP_SPEED_ASSUMED };
        int r;

        if (shares == NULL)
                return err_set(err, -ENOMEM, "no memory for the shares");
        r = cut_batch(job, state, shares, &verdict, err);
        for (size_t i = 0; r == 0 && i < state->group_count; i++) {
                struct job_group *group = &state->groups[i];

                group->source = group->server ? CHIP_SPEED_ASSUMED : verdict.source;
                (void) text_copy(group->precision, sizeof(group->precision),
                                 group->server ? "" : chip_speed_precision_names[verdict.precision]);
                group->batch = shares[i].batch;
                group->samples_per_s = shares[i].samples_per_s;
        }
        for (size_t i = 0; r == 0 && i < state->rank_count; i++)
                state->ranks[i].batch = -1; /* what they shared is cut anew */
        if (r == 0)
                note_speeds(job->job, &verdict, state);
        if (r == 0 && job->job->strategy == JOB_STRATEGY_SPLIT && job->job->shards == JOB_SHARDS_WEIGHTED)
                r = plan_stages(job, shares, state, err);
        for (size_t i = 0; r == 0 && i < state->group_count; i++)
                state->groups[i].weight = (double) state->groups[i].batch / (double) job->job->global_batch;
        return r;
}
