/* Stages of a job over the device groups of a cluster: the order of its pods, what forbids a plan, what the
 * manager is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/launcher/subtask.h"
#include "job/plan/job_plan.h"
#include "job/plan/stages/stage_message.h"
#include "tests/support/job_fixture.h"
#include "tests/support/manager_plan_fixture.h"

/* "d 0:1 0:1 | a 2:3": each group's node and layers, in rank order. */
static const char *stages_of(const struct job_state *state, char text[256])
{
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < state->group_count; i++)
                used += (size_t) snprintf(text + used, 256 - used, "%s%s %s", i == 0 ? "" : " | ",
                                          state->groups[i].node, state->groups[i].layers);
        return text;
}

static const struct job_group *group_on(const struct job_state *state, const char *node)
{
        for (size_t i = 0; i < state->group_count; i++)
                if (strcmp(state->groups[i].node, node) == 0)
                        return &state->groups[i];
        return NULL;
}

#define SPLIT                                                                                                \
        "  strategy: split\n  args: []\n  placement: packed\n  workers: [{model: H100, chips: 2}, {model: "  \
        "A100, chips: 1}]\n"                                                                                 \
        "  profile: {layers: [{name: a, ms: {H100: 1, A100: 2}, memory_bytes: 100}, {name: b, ms: {H100: "   \
        "1, A100: 2}},\n"                                                                                    \
        "    {name: c, ms: {H100: 1, A100: 2}}, {name: d, ms: {H100: 1, A100: 2}}, {name: e, ms: {H100: 1, " \
        "A100: 2}}]}\n"

/* Ranks stand in the order of the stages; memory and stages that are bound decide it, and what cannot be is
 * said with its layer. */
static void a_split_is_planned_over_groups(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(SPLIT);
        struct job bound = job_fixture_parse(SPLIT "  stages: [{layers: \"0:0\", \"on\": {model: A100}}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(stages_of(&plan, text), "c 0:1,2:3 | d 4:4");
        assert_int_equal(group_on(&plan, "c")->first_rank, 0);
        assert_int_equal(group_on(&plan, "d")->first_rank, 2);

        claim.job.job = &bound; /* the A100 first, so its pod has rank 0 */
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(stages_of(&plan, text), "d 0:0 | c 1:2,3:4");
        assert_int_equal(group_on(&plan, "d")->first_rank, 0);

        for (uint32_t n = 0; n < l->node_count; n++) /* no chip holds layer a any more */
                for (uint32_t g = 0; g < l->nodes[n]->group_count; g++)
                        l->nodes[n]->groups[g].memory_bytes = 50;
        assert_int_equal(job_plan(&claim, &plan, &err), -ERANGE);
        assert_non_null(strstr(err.msg, "layer a needs 100 bytes"));
        assert_int_equal(plan.group_count, 0);
        job_state_free(&plan);
        job_free(&job);
        job_free(&bound);
        ledger_life_free(l);
}

#define ANY_TWO                                                                                              \
        "  strategy: split\n  args: []\n  workers: [{model: H100|A100, chips: 2}]\n"                         \
        "  profile: {layers: [{name: a, ms: {H100: 1, A100: 9}}, {name: b, ms: {H100: 9, A100: 1}}]}\n"

/* The groups are those of the shortest step, and it is said; a policy of the job's own is obeyed. */
static void a_splits_chips_are_chosen_by_its_plan(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(ANY_TWO);
        struct job packed = job_fixture_parse(ANY_TWO "  placement: packed\n");
        struct job replicas = job_fixture_parse(ANY_TWO "  replicas: 2\n");
        struct job any = job_fixture_parse(ANY_TWO "  replicas: auto\n");
        struct job bound =
                job_fixture_parse(ANY_TWO "  stages: [{layers: \"0:0\", \"on\": {model: A100}}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = job_state_new();
        char text[256];

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        assert_string_equal(stages_of(&plan, text), "c 0:0 | d 1:1");
        assert_non_null(strstr(plan.notes[0], "ChipsChosen: a planned step takes"));
        claim.job.job = &packed;
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        assert_string_equal(stages_of(&plan, text), "c 0:0,1:1");
        claim.job.job = &replicas; /* a pipeline each: none of the chips is better than another */
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        assert_non_null(strstr(stages_of(&plan, text), "0:1"));
        assert_non_null(strstr(plan.notes[plan.note_count - 1], "Split: 2 replicas, 2 stages"));
        claim.job.job = &any; /* one pipeline over both is shorter: the same chips as without */
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        assert_string_equal(stages_of(&plan, text), "c 0:0 | d 1:1");
        claim.job.job = &bound; /* none of the chips that are fastest one by one is such */
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        assert_string_equal(stages_of(&plan, text), "d 0:0,1:1");
        job_state_free(&plan);
        job_free(&job);
        job_free(&packed);
        job_free(&replicas);
        job_free(&any);
        job_free(&bound);
        ledger_life_free(l);
}

/* The manager is told the layers of every rank, and that the last one has the loss. */
static void the_manager_is_told_of_every_rank(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(SPLIT);
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = job_state_new();
        CLEANUP(free_p) char *stages = NULL;
        json_t *json;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        json = manager_plan(&job, &plan, "0123456789abcdef");
        assert_true(json_is_true(json_object_get(json, "staged")));
        stages = json_dumps(json_object_get(json_array_get(json_object_get(json, "groups"), 0), "stages"),
                            JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(stages, "[{\"first\":0,\"last\":1},{\"first\":2,\"last\":3}]");
        json_decref(json);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* With what each rank was planned the manager reads again: by it slow stages are found. A row of times for
 * each kind of chip; nothing where nothing is known, or there would be too much of it. */
static void the_manager_is_told_what_was_planned_with(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(SPLIT);
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = job_state_new();
        struct stage_ranks ranks = { 0 };
        struct pb_arena arena;
        Subtask__Plan *read;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        read = manager_plan_fixture_read(&job, &plan, &arena);
        assert_int_equal(stage_message_read(read, &ranks, NULL), 0);
        assert_int_equal(ranks.problem.worker_count, 0);
        pb_arena_free(&arena);

        assert_int_equal(job_plan_split(&claim.job, &plan, NULL), 0);
        read = manager_plan_fixture_read(&job, &plan, &arena);
        assert_int_equal(read->split->n_times, 2);
        assert_true(read->restart->resplit);
        assert_int_equal(stage_message_read(read, &ranks, NULL), 0);
        assert_int_equal(ranks.problem.worker_count, 3);
        assert_int_equal(ranks.problem.layer_count, 5);
        assert_int_equal(ranks.problem.microbatches, plan.split.problem.microbatches);
        assert_int_equal(ranks.problem.layers[0].state_bytes, 100);
        for (size_t i = 0; i < 3; i++) {
                const struct pipeline_worker *a = &ranks.problem.workers[i],
                                             *b = &plan.split.problem.workers[i];

                assert_true(a->chips == 1 && a->memory_bytes == b->memory_bytes &&
                            a->bytes_per_ms == b->bytes_per_ms);
                assert_memory_equal(a->ms, b->ms, 5 * sizeof(*a->ms));
        }
        assert_true(ranks.problem.workers[2].ms[0] == 2 * ranks.problem.workers[0].ms[0]);
        read->split->times[1]->n_ms = 4;
        assert_int_equal(stage_message_check(read, NULL), -EINVAL);
        read->split->times[1]->n_ms = 5;
        read->groups[1]->times = 2;
        assert_int_equal(stage_message_check(read, NULL), -EINVAL);
        read->groups[1]->times = 1;
        assert_int_equal(stage_message_check(read, NULL), 0);
        read->groups[1]->stages[0]->last = 5; /* of layers 0 to 4: a time that is not there would be read */
        assert_int_equal(stage_message_check(read, NULL), -EINVAL);
        stage_ranks_free(&ranks);
        pb_arena_free(&arena);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

#define REPLICAS(workers)                                                                                    \
        "  strategy: split\n  args: []\n  placement: packed\n  replicas: auto\n  microbatches: 16\n  "       \
        "globalBatch: 64\n  workers: [" workers "]\n  profile: {layers: [{ms: {H100: 1, A100: 2}, "          \
        "memory_bytes: 40}, {ms: {H100: 1, A100: 2}, memory_bytes: 40}, {ms: {H100: 1, A100: 2}, "           \
        "memory_bytes: 40}, {ms: {H100: 1, A100: 2}, memory_bytes: 40}]}\n"

static void set_memory(struct ledger *l, const char *model, uint64_t bytes)
{
        for (uint32_t n = 0; n < l->node_count; n++)
                for (uint32_t g = 0; g < l->nodes[n]->group_count; g++)
                        if (strcmp(symbols_name(&l->symbols, l->nodes[n]->groups[g].model), model) == 0)
                                l->nodes[n]->groups[g].memory_bytes = bytes;
}

/* What the manager is told of them adds up; no group may leave. */
static void check_groups(const struct job *job, struct job_state *plan)
{
        struct pb_arena arena;
        uint64_t batch = 0, ranks = 0;
        Subtask__Plan *read;

        for (size_t i = 0; i < plan->group_count; i++) {
                const struct job_group *group = &plan->groups[i];

                assert_int_equal(group->first_rank, ranks);
                assert_int_equal(group->chips, group->ranks);
                assert_true(group->weight == (double) group->batch / 64);
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(group->name, plan->groups[k].name);
                assert_false(job_plan_may_leave(job, plan, i));
                batch += group->batch;
                ranks += group->ranks;
        }
        assert_int_equal(batch, 64);
        read = manager_plan_fixture_read(job, plan, &arena);
        assert_true(subtask_has_stages(read));
        assert_true(read->staged && read->batches_given);
        read->groups[0]->stages[0]->last--; /* a pipeline that lacks a layer */
        assert_false(subtask_has_stages(read));
        pb_arena_free(&arena);
}

/* No A100 holds the model: each takes a part of it beside an H100, and the chips of a node that are of two
 * pipelines become two groups. Pipelines of a chip each that take the same stay one. */
static void replicas_are_groups(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(REPLICAS("{model: H100, chips: 2}, {model: A100, chips: 3}"));
        struct job alike = job_fixture_parse(REPLICAS("{model: H100, chips: 2}"));
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = job_state_new();
        char text[256];

        (void) state;
        set_memory(l, "H100", 1000);
        set_memory(l, "A100", 90);
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        assert_string_equal(stages_of(&plan, text), "c 0:1 | d 2:2,3:3 | c 0:2 | d 3:3");
        assert_non_null(strstr(plan.notes[plan.note_count - 1],
                               "Split: 2 replicas, 5 stages, by the profile's times: 88 ms a step of 16 "
                               "microbatches, "));
        assert_non_null(strstr(plan.notes[plan.note_count - 1], "; of each batch 36 + 28; stages"));
        assert_int_equal(plan.groups[0].batch + plan.groups[1].batch, 36);
        check_groups(&job, &plan);

        claim.job.job = &alike;
        assert_int_equal(job_plan(&claim, &plan, NULL), 0);
        assert_string_equal(stages_of(&plan, text), "c 0:3,0:3");
        check_groups(&alike, &plan);
        assert_int_equal(job_plan_split(&claim.job, &plan, NULL), 0);
        assert_int_equal(plan.split.problem.worker_count, 2);
        job_state_free(&plan);
        job_free(&job);
        job_free(&alike);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_split_is_planned_over_groups),
                cmocka_unit_test(a_splits_chips_are_chosen_by_its_plan),
                cmocka_unit_test(replicas_are_groups),
                cmocka_unit_test(the_manager_is_told_of_every_rank),
                cmocka_unit_test(the_manager_is_told_what_was_planned_with),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
