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
#include "job/plan/job_plan.h"
#include "job/plan/manager_plan.h"
#include "tests/support/job_fixture.h"

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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_split_is_planned_over_groups),
                cmocka_unit_test(the_manager_is_told_of_every_rank),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
