/* A job of few lines and four nodes for it, for the tests of plans, their status and their pods. */
#pragma once

#include <stdio.h>

#include "job/plan/job_plan.h"
#include "job/spec/job_yaml.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define JOB_FIXTURE_HEAD "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"

static inline struct job job_fixture_parse(const char *spec)
{
        struct text text = { 0 };
        struct err err = { 0 };
        struct job job;

        text_append(&text, JOB_FIXTURE_HEAD);
        text_append(&text, spec);
        assert_false(text.failed);
        if (job_yaml_parse(text.data, text.size_bytes, &job, &err) < 0)
                fail_msg("%s", err.msg);
        text_free(&text);
        return job;
}

static inline struct open_groups_claim job_fixture_claim(const struct ledger *ledger, const struct job *job)
{
        return (struct open_groups_claim){ .job = { .ledger = ledger, .job = job },
                                           .rules = &fixture_rules,
                                           .now_usec = 1000000 };
}

/* Three nodes of H100: 8, 4 and 2 free; and one node that has only A100. */
static inline struct ledger *job_fixture_cluster(void)
{
        struct ledger *l = test_ledger();

        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", 4, 4);
        add_node(l, "c", NODE_CLASS_ANY, "regular", "H100", 2, 2);
        add_node(l, "d", NODE_CLASS_ANY, "regular", "A100", 8, 8);
        return l;
}

/* "a=4 b=2": where the groups are, in rank order. */
static inline const char *job_fixture_places(const struct job_state *state, char text[256])
{
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < state->group_count; i++)
                used += (size_t) snprintf(text + used, 256 - used, "%s%s=%u", i == 0 ? "" : " ",
                                          state->groups[i].node, state->groups[i].chips);
        return text;
}
