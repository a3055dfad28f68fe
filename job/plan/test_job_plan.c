/* Plans of whole jobs, their status and their pods. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "job/controller/job_pods.h"
#include "job/plan/job_plan.h"
#include "job/plan/job_status.h"
#include "job/spec/job_yaml.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_speeds.h"
#include "tests/support/cluster_fixture.h"

#define HEAD "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec:\n"

static struct job parse(const char *spec)
{
        struct text text = { 0 };
        struct err err = { 0 };
        struct job job;

        text_append(&text, HEAD);
        text_append(&text, spec);
        if (job_yaml_parse(text.data, text.size_bytes, &job, &err) < 0)
                fail_msg("%s", err.msg);
        text_free(&text);
        return job;
}

static struct open_groups_claim claim_of(const struct ledger *ledger, const struct job *job)
{
        return (struct open_groups_claim){ .job = { .ledger = ledger, .job = job },
                                           .rules = &fixture_rules,
                                           .now_usec = 1000000 };
}

/* Three nodes of H100: 8, 4 and 2 free; and one node that has only A100. */
static struct ledger *cluster(void)
{
        struct ledger *l = ledger_life_new();

        ledger_mark_chips(l, GPU);
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", 4, 4);
        add_node(l, "c", NODE_CLASS_ANY, "regular", "H100", 2, 2);
        add_node(l, "d", NODE_CLASS_ANY, "regular", "A100", 8, 8);
        return l;
}

/* "a=4 b=2": where the groups are, in rank order. */
static const char *places(const struct job_state *state, char text[256])
{
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < state->group_count; i++)
                used += (size_t) snprintf(text + used, 256 - used, "%s%s=%u", i == 0 ? "" : " ",
                                          state->groups[i].node, state->groups[i].chips);
        return text;
}

static void placements_differ(void **state)
{
        static const struct {
                const char *what, *spec, *want;
        } cases[] = {
                { "packed: the smallest group that holds all",
                  "  placement: packed\n  workers: [{model: H100, chips: 3}]\n", "b=3" },
                { "packed: else the largest first",
                  "  placement: packed\n  workers: [{model: H100, chips: 10}]\n", "a=8 c=2" },
                { "largest-free: the emptiest first",
                  "  placement: largest-free\n  workers: [{model: H100, chips: 3}]\n", "a=3" },
                { "uniform: evenly over all holders",
                  "  placement: uniform\n  workers: [{model: H100, chips: 5}]\n", "a=2 b=2 c=1" },
                { "a model that is asked for", "  workers: [{model: A100, chips: 2}]\n", "d=2" },
                { "either of two models", "  placement: uniform\n  workers: [{model: A100|H100, chips: 4}]\n",
                  "a=1 b=1 c=1 d=1" },
                { "a fixed count and a range take what there is",
                  "  placement: packed\n  workers: [{model: H100, chips: 30, minChips: 2}]\n",
                  "c=2 a=8 b=4" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ledger *l = cluster();
                struct job job = parse(cases[i].spec);
                struct open_groups_claim claim = claim_of(l, &job);
                struct job_state plan = { 0 };
                struct err err = { 0 };
                char text[256];

                if (job_plan(&claim, &plan, &err) < 0)
                        fail_msg("%s: %s", cases[i].what, err.msg);
                if (strcmp(places(&plan, text), cases[i].want) != 0)
                        fail_msg("%s: want %s, got %s", cases[i].what, cases[i].want, text);
                job_state_free(&plan);
                job_free(&job);
                ledger_life_free(l);
        }
}

static void what_does_not_fit_is_said(void **state)
{
        struct ledger *l = cluster();
        struct job job = parse("  workers: [{model: H100, chips: 15}]\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY);
        assert_non_null(strstr(err.msg, "15 chips of H100"));
        assert_non_null(strstr(err.msg, "only 14 are free"));
        assert_int_equal(plan.group_count, 0);
        job_free(&job);
        ledger_life_free(l);
}

static void equal_nodes_are_equal(void **state)
{
        struct ledger *l = cluster();
        struct job job =
                parse("  equalNodes: true\n  placement: uniform\n  workers: [{runtime: cuda, chips: 9}]\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY); /* no two nodes are alike */
        add_node(l, "e", NODE_CLASS_ANY, "regular", "A100", 8, 8);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(places(&plan, text), "d=5 e=4");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void measured_of(struct ledger *l, const char *program, const char *device, double alpha, double beta)
{
        struct ledger_speed speed = { .job_model = "mlp",
                                      .device = symbols_add(&l->symbols, device),
                                      .alpha_ms = alpha,
                                      .beta_ms = beta };

        (void) text_copy(speed.program, sizeof(speed.program), program);
        assert_int_equal(ledger_speeds_keep(l, &speed), 0);
}

static void measured(struct ledger *l, const char *device, double alpha, double beta)
{
        measured_of(l, "", device, alpha, beta);
}

static void a_speed_is_of_its_program(void **state)
{
        struct ledger *l = cluster();
        struct job job =
                parse("  globalBatch: 400\n  workers: [{model: H100, chips: 1}, {model: A100, chips: 1}]\n");
        struct job own = parse("  workers: [{model: H100, chips: 1}]\n"
                               "  programs: {cuda: {image: x, command: [/x]}}\n");
        uint32_t h100 = symbols_add(&l->symbols, "H100");
        struct ledger_program table[] = { { .runtime = symbols_add(&l->symbols, "cuda"), .sha256 = "aa" } };
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        claim.job.programs = table;
        claim.job.program_count = 1;
        assert_string_equal(ledger_speeds_program(l, &job, table, 1, "cuda"), "aa");
        assert_string_equal(ledger_speeds_program(l, &own, table, 1, "cuda"), ""); /* of its own image */
        assert_string_equal(ledger_speeds_program(l, &job, table, 1, "rocm"), "");
        assert_null(ledger_speeds_find(l, "", "mlp", h100));
        measured_of(l, "bb", "H100", 0, 1);
        measured_of(l, "bb", "A100", 0, 3);
        assert_null(ledger_speeds_find(l, "aa", "mlp", h100)); /* another program's is never taken */
        assert_true(ledger_speeds_find(l, "", "mlp", h100)->beta_ms == 1);
        assert_null(ledger_speeds_find(l, "", "cnn", h100));
        assert_null(ledger_speeds_find(l, "", "mlp", 0));
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.groups[0].source, JOB_SPEED_TABLE);
        assert_int_equal(plan.groups[0].batch, 200);
        measured(l, "H100", 0, 4); /* of a program that is not known */
        assert_true(ledger_speeds_find(l, "aa", "mlp", h100)->beta_ms == 4);
        measured_of(l, "aa", "H100", 0, 3);
        measured_of(l, "aa", "A100", 0, 1);
        assert_true(ledger_speeds_find(l, "aa", "mlp", h100)->beta_ms == 3);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.groups[0].source, JOB_SPEED_MEASURED);
        assert_int_equal(plan.groups[0].batch, 100);
        measured_of(l, "bb", "H100", 0, 7); /* what is seen again is the newest */
        assert_int_equal(l->speed_count, 5);
        assert_true(ledger_speeds_find(l, "", "mlp", h100)->beta_ms == 7);
        job_state_free(&plan);
        job_free(&job);
        job_free(&own);
        ledger_life_free(l);
}

static void the_fastest_is_found_among_like_figures(void **state)
{
        struct ledger *l = cluster();
        struct job job = parse("  globalBatch: 16\n  workers: [{runtime: cuda, chips: 1}]\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < l->node_count; i++) /* the H100 is the better one on paper */
                for (size_t g = 0; g < l->nodes[i]->group_count; g++)
                        l->nodes[i]->groups[g].tflops =
                                strcmp(symbols_name(&l->symbols, l->nodes[i]->groups[g].model), "H100") == 0
                                        ? 0.9
                                        : 0.3;
        measured(l, "A100", 0, 0.1); /* 10,000 samples a second, and nobody knows what the H100 does */
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(plan.groups[0].model, "H100");
        measured(l, "H100", 0, 0.2);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(plan.groups[0].model, "A100");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void shares_follow_measured_speeds(void **state)
{
        struct ledger *l = cluster();
        struct job job =
                parse("  globalBatch: 400\n  workers: [{model: H100, chips: 1}, {model: A100, chips: 1}]\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        measured(l, "H100", 0, 1);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.groups[0].source, JOB_SPEED_TABLE); /* speeds of two kinds do not mix */
        assert_int_equal(plan.groups[0].batch, 200);
        measured(l, "A100", 0, 3);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.groups[0].source, JOB_SPEED_MEASURED);
        assert_int_equal(plan.groups[0].batch, 300);
        assert_int_equal(plan.groups[1].batch, 100);
        assert_true(plan.groups[0].weight == 0.75);
        assert_true(plan.groups[0].samples_per_s == 1000);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void a_chip_that_ranks_share_has_a_speed_of_its_own(void **state)
{
        struct ledger *l = cluster();
        struct job job =
                parse("  globalBatch: 300\n  workers: [{model: H100, chips: 1}, {model: A100, chips: 1}]\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        measured(l, "H100", 0, 1);
        measured(l, "A100", 0, 5);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        plan.groups[0].ranks = 2;
        assert_int_equal(job_plan_share(&claim.job, &plan, &err), 0);
        assert_int_equal(plan.groups[0].batch, 250); /* each rank is half of the chip */
        measured(l, "H100 (shared by 2)", 0, 5);
        assert_int_equal(job_plan_share(&claim.job, &plan, &err), 0);
        assert_int_equal(plan.groups[0].batch, 200); /* or what was seen of such a half */
        assert_int_equal(plan.groups[0].source, JOB_SPEED_MEASURED);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void a_member_that_would_slow_the_job_is_not_added(void **state)
{
        struct ledger *l = cluster();
        struct job job = parse("  globalBatch: 16\n  workers: [{model: H100, chips: 2}, {model: A100, chips: "
                               "6, minChips: 1}]\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        measured(l, "H100", 0, 1);
        measured(l, "A100", 50, 1); /* a step of anything takes 50 ms there */
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(places(&plan, text), "c=2 d=1");
        assert_int_equal(plan.note_count, 1);
        assert_non_null(strstr(plan.notes[0], "NotAdded"));
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void servers_are_the_first_ranks(void **state)
{
        struct ledger *l = cluster();
        struct job job = parse("  strategy: ps-sync\n  workers: [{model: H100, chips: 2}]\n  servers: "
                               "{model: A100, chips: 1}\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.group_count, 2);
        assert_true(plan.groups[0].server);
        assert_int_equal(plan.groups[0].first_rank, 0);
        assert_int_equal(plan.groups[0].batch, 0);
        assert_int_equal(plan.groups[1].first_rank, 1);
        assert_int_equal(plan.groups[1].batch, 256);
        assert_string_equal(plan.groups[0].name, "s-1");
        assert_string_equal(plan.groups[1].name, "w0-0");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* A job of two groups on a and b; b breaks. */
static void a_group_moves_or_is_left_out(void **state)
{
        struct ledger *l = cluster();
        struct job job = parse("  placement: uniform\n  workers: [{model: H100, chips: 6, minChips: 4}]\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256], was[JOB_GROUP_NAME_BYTES];

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(places(&plan, text), "a=2 b=2 c=2");
        (void) text_copy(was, sizeof(was), plan.groups[1].name);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", 4, 0);
        assert_int_equal(job_plan_move(&claim, &plan, 1, &err), 0);
        assert_string_equal(places(&plan, text), "a=2 a=2 c=2");
        assert_string_equal(plan.groups[1].name, was); /* it keeps its name and its ranks */
        bind_pod(l, "other", "a", 8);
        add_node(l, "c", NODE_CLASS_ANY, "regular", "H100", 2, 0);
        assert_int_equal(job_plan_move(&claim, &plan, 2, &err), -EBUSY);
        assert_true(job_plan_may_leave(&job, &plan, 2));
        assert_int_equal(job_plan_leave_out(&claim, &plan, 2, &err), 0);
        assert_int_equal(plan.groups[0].batch + plan.groups[1].batch, 256);
        assert_false(job_plan_may_leave(&job, &plan, 1)); /* 3 would be fewer than minChips */
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void a_state_survives_its_status(void **state)
{
        struct ledger *l = cluster();
        struct job job = parse("  strategy: ps-sync\n  workers: [{model: H100, chips: 10}]\n  servers: "
                               "{model: A100, chips: 1}\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 }, again;
        struct err err = { 0 };
        json_t *status, *second;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        plan.world = 2;
        plan.restarts = 1;
        plan.groups[1].incarnation = 3;
        plan.progress = (struct job_progress){ .epoch = 1,
                                               .samples = 5000,
                                               .samples_total = 60000,
                                               .samples_per_s = 123.5,
                                               .accuracy = NAN,
                                               .loss = 0.5,
                                               .time_usec = 7000000 };
        job_state_set(&plan, JOB_RUNNING, 5000000, "Running", "%d ranks", 11);
        (void) strcpy(plan.last_event, "2026-11-21T10:00:00.000001Z");
        {
                struct job_rank *rank = job_state_make_rank(&plan, plan.groups[1].name, 0);

                rank->restarts = 4;
                rank->before = 3;
        }
        status = job_status_encode(&job, "j", &plan);
        assert_int_equal(job_status_decode(status, &again), 0);
        assert_string_equal(again.last_event, plan.last_event);
        assert_int_equal(job_state_rank(&again, plan.groups[1].name, 0)->before, 3);
        assert_int_equal(job_status_check(status, &job, &again, &err), 0);
        second = job_status_encode(&job, "j", &again);
        assert_true(json_equal(status, second));
        assert_int_equal(json_array_size(json_object_get(status, "ranks")), 11);
        assert_int_equal(again.next_index, plan.next_index);
        json_decref(status);
        json_decref(second);
        job_state_free(&plan);
        job_state_free(&again);
        job_free(&job);
        ledger_life_free(l);
}

/* A plan that somebody else wrote is never acted on; what is wrong with it is said. */
static void a_status_that_does_not_fit_its_job_is_refused(void **state)
{
        static const struct {
                const char *field, *value, *says;
        } wrongs[] = {
                { "batch", "7", "weight: not its part of spec.globalBatch" },
                { "weight", "0.9", "weight: not its part" },
                { "name", "\"w0-0\"", "name: another one has it, too" },
                { "name", "\"../x\"", "status.subtasks: not a list" },
                { "firstRank", "0", "firstRank: another one has these ranks" },
                { "entry", "5", "entry: spec.workers has no such entry" },
                { "ranks", "0", "status.subtasks: not a list" },
                { "chips", "9", "ranks: fewer than its chips" },
                { "runtime", "\"\"", "runtime: missing" },
                { "resource", "7", "resource: missing" },
        };
        struct ledger *l = cluster();
        struct job job = parse("  globalBatch: 64\n  workers: [{model: H100, chips: 10}]\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_state plan = { 0 }, got;
        struct err err = { 0 };
        json_t *status;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.group_count, 2);
        for (size_t i = 0; i <= ARRAY_SIZE(wrongs); i++) {
                status = job_status_encode(&job, "j", &plan);
                if (i < ARRAY_SIZE(wrongs))
                        (void) json_object_set_new(json_array_get(json_object_get(status, "subtasks"), 1),
                                                   wrongs[i].field,
                                                   json_loads(wrongs[i].value, JSON_DECODE_ANY, NULL));
                assert_int_equal(job_status_decode(status, &got), 0);
                err = (struct err){ 0 };
                assert_int_equal(job_status_check(status, &job, &got, &err),
                                 i < ARRAY_SIZE(wrongs) ? -EBADMSG : 0);
                if (i < ARRAY_SIZE(wrongs) && strstr(err.msg, wrongs[i].says) == NULL)
                        fail_msg("%s %s: %s", wrongs[i].field, wrongs[i].value, err.msg);
                job_state_free(&got);
                json_decref(status);
        }
        status = json_pack("{s:s}", "phase", "Dancing");
        assert_int_equal(job_status_decode(status, &got), 0);
        assert_int_equal(job_status_check(status, &job, &got, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "status.phase: 'Dancing'"));
        job_state_free(&got);
        json_decref(status);
        status = job_status_encode(&job, "j", &plan); /* one group fewer: the rest does not make a batch */
        (void) json_array_remove(json_object_get(status, "subtasks"), 1);
        assert_int_equal(job_status_decode(status, &got), 0);
        assert_int_equal(job_status_check(status, &job, &got, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "spec.globalBatch is 64"));
        job_state_free(&got);
        json_decref(status);
        assert_int_equal(job_status_check(NULL, &job, &plan, &err), 0);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* What is no status of ours is that of a new job. */
static void a_foreign_status_is_a_new_job(void **state)
{
        static const char *const texts[] = {
                "{}",
                "[]",
                "{\"phase\": 7, \"subtasks\": [{}], \"world\": -1}",
                "{\"subtasks\": [{\"name\": \"../x\", \"chips\": 1, \"ranks\": 1}], \"conditions\": {}}",
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                json_t *status = json_loads(texts[i], 0, NULL);
                struct job_state got;

                assert_int_equal(job_status_decode(status, &got), 0);
                assert_int_equal(got.group_count, 0);
                assert_int_equal(got.phase, JOB_PENDING);
                assert_int_equal(got.world, 0);
                job_state_free(&got);
                json_decref(status);
        }
}

static const char *at(json_t *value, const char *path)
{
        char name[64];

        while (*path != '\0' && value != NULL) {
                size_t length = strcspn(path, ".");

                (void) snprintf(name, sizeof(name), "%.*s", (int) length, path);
                value = json_is_array(value) ? json_array_get(value, (size_t) atoi(name))
                                             : json_object_get(value, name);
                path += length + (path[length] == '.');
        }
        return json_is_string(value) ? json_string_value(value) : "";
}

/* Of the main container's command, in this order. */
static bool has_words(const json_t *pod, const char *words)
{
        const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
        const json_t *command = json_object_get(json_array_get(containers, 0), "command"), *word;
        struct text text = { 0 };
        bool found;
        size_t i;

        json_array_foreach((json_t *) command, i, word) text_printf(&text, "%s ", json_string_value(word));
        found = strstr(text.data, words) != NULL;
        text_free(&text);
        return found;
}

static bool mounts_secret(const json_t *pod, const char *name)
{
        json_t *volumes = json_object_get(json_object_get(pod, "spec"), "volumes"), *volume;
        bool found = false;
        size_t i;

        json_array_foreach(volumes, i, volume) found =
                found || strcmp(at(volume, "secret.secretName"), name) == 0;
        return found;
}

static void pods_say_what_the_plan_says(void **state)
{
        struct ledger *l = cluster();
        struct job job =
                parse("  workers: [{model: H100, chips: 2}]\n  programs: {cuda: {image: img, command: "
                      "[/opt/t, -v]}}\n"
                      "  data: {path: /data, claim: pictures}\n  checkpoint: {path: /ckpt, claim: kept}\n");
        struct open_groups_claim claim = claim_of(l, &job);
        struct job_pods_options options = { .launcher_image = "us",
                                            .scheduler_name = "remuda",
                                            .grace_sec = 30 };
        struct job_owner owner = { .namespace_ = "ns", .name = "j", .uid = "u-1" };
        struct job_state plan = { 0 };
        struct err err = { 0 };
        const struct job_secrets secrets = {
                .token = "0123456789abcdef", .ca = "CA", .certificate = "CERT", .key = "KEY"
        };
        char *keys = job_keys_write(&(struct job_keys){ .secret = "j-1",
                                                        .ca = (char *) "CA",
                                                        .certificate = (char *) "LOOK",
                                                        .key = (char *) "LOOK KEY" });
        json_t *pod, *secret, *world;

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(job_pods_check(&job, &plan, &options, &err), 0);
        pod = job_group_pod(&job, &plan, &plan.groups[0], &owner, &options, keys);
        assert_string_equal(at(pod, "metadata.name"), "j-w0-0");
        assert_string_equal(
                json_string_value(json_object_get(json_object_get(json_object_get(pod, "metadata"), "labels"),
                                                  "remuda.dev/job")),
                "j");
        assert_string_equal(at(pod, "metadata.ownerReferences.0.uid"), "u-1");
        assert_string_equal(at(pod, "spec.containers.0.image"), "img");
        assert_string_equal(at(pod, "spec.schedulerName"), "remuda");
        assert_string_equal(at(pod, "spec.hostname"), "w0-0");
        world = job_manager_plan(&job, &plan, "status");
        assert_string_equal(at(world, "groups.0.name"), "w0-0");
        assert_string_equal(at(world, "args.0"), "--data");
        assert_string_equal(at(world, "shards"), "weighted");
        json_decref(world);
        job.shards = JOB_SHARDS_EQUAL; /* which the manager cannot see by the figures of the groups alone */
        world = job_manager_plan(&job, &plan, "status");
        assert_string_equal(at(world, "shards"), "equal");
        json_decref(world);
        job.shards = JOB_SHARDS_WEIGHTED;
        job.strategy = JOB_STRATEGY_SPLIT;
        world = job_manager_plan(&job, &plan, "status");
        assert_string_equal(at(world, "shards"), "equal");
        job.strategy = JOB_STRATEGY_ALLREDUCE;
        plan.groups[0].samples_per_s = 1234;
        json_decref(world);
        world = job_manager_plan(&job, &plan, "status");
        assert_true(json_number_value(json_object_get(json_array_get(json_object_get(world, "groups"), 0),
                                                      "speed")) == 1234);
        secret = job_secret(&job, &owner, &options, "j-1", &secrets);
        assert_string_equal(at(secret, "metadata.name"), "j-1");
        assert_string_equal(at(secret, "stringData.token"), "0123456789abcdef");
        assert_non_null(strstr(
                json_string_value(json_object_get(json_object_get(secret, "stringData"), "programs.yaml")),
                "/opt/t"));
        assert_string_equal(
                json_string_value(json_object_get(json_object_get(secret, "stringData"), "tls.key")), "KEY");
        assert_string_equal(json_string_value(json_object_get(
                                    json_object_get(json_object_get(pod, "metadata"), "annotations"),
                                    JOB_ANNOTATION_KEYS)),
                            keys); /* which names the Secret, and not its key */
        assert_true(has_words(pod, "--tls-cert /etc/remuda-job/tls.crt"));
        assert_true(has_words(pod, "--tls-name manager"));
        json_decref(pod);
        (void) strcpy(job.tls.secret, "own.keys");
        (void) strcpy(job.tls.server_name, "train.example");
        pod = job_group_pod(&job, &plan, &plan.groups[0], &owner, &options, keys);
        assert_true(has_words(pod, "--tls-cert /etc/remuda-tls/tls.crt --tls-key /etc/remuda-tls/tls.key "
                                   "--tls-ca /etc/remuda-tls/ca.crt --tls-name train.example"));
        assert_true(mounts_secret(pod, "own.keys") && mounts_secret(pod, "j-1"));
        assert_false(has_words(pod, "--tls-status"));
        json_decref(pod);
        pod = job_manager_pod(&job, &plan, &owner, &options, keys, "status");
        assert_true(has_words(pod, "--tls-name train.example --tls-status /etc/remuda-job"));
        assert_true(mounts_secret(pod, "own.keys") && mounts_secret(pod, "j-1"));
        assert_string_equal(job_tls_name(&job), "status.remuda.dev");
        free(keys);
        json_decref(pod);
        json_decref(secret);
        json_decref(world);
        job.programs[0].image[0] = '\0';
        assert_int_equal(job_pods_check(&job, &plan, &options, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "spec.programs.cuda.image: missing"));
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(placements_differ),
                cmocka_unit_test(what_does_not_fit_is_said),
                cmocka_unit_test(equal_nodes_are_equal),
                cmocka_unit_test(shares_follow_measured_speeds),
                cmocka_unit_test(a_speed_is_of_its_program),
                cmocka_unit_test(the_fastest_is_found_among_like_figures),
                cmocka_unit_test(a_chip_that_ranks_share_has_a_speed_of_its_own),
                cmocka_unit_test(a_member_that_would_slow_the_job_is_not_added),
                cmocka_unit_test(servers_are_the_first_ranks),
                cmocka_unit_test(a_group_moves_or_is_left_out),
                cmocka_unit_test(a_state_survives_its_status),
                cmocka_unit_test(a_foreign_status_is_a_new_job),
                cmocka_unit_test(a_status_that_does_not_fit_its_job_is_refused),
                cmocka_unit_test(pods_say_what_the_plan_says),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
