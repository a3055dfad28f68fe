/* What a rank's process is given, whoever starts it, and what it can read of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/plan/launch_levels.h"
#include "job/plan/launch_ranks.h"

static const uint64_t layers[2] = { 3, 5 };
static const struct launch_rank ranks[] = {
        { .node = "",
          .address = "127.0.0.1",
          .runtime = "cpu",
          .vendor = "cpu",
          .group = "c",
          .server = true },
        { .node = "",
          .address = "127.0.0.1",
          .runtime = "cuda",
          .vendor = "nvidia",
          .group = "g",
          .device = "GPU-1",
          .pci = "0000:18:00.0",
          .device_index = 1,
          .batch = 10,
          .weight = 0.625,
          .begin = 0,
          .end = 63,
          .layers = layers,
          .known = { "/opt/train", "ab", "measured", "", 0.5, 0.25 } },
        { .node = "",
          .address = "127.0.0.1",
          .runtime = "cuda",
          .vendor = "nvidia",
          .group = "g",
          .device = "GPU-7",
          .device_index = 7,
          .visible = "MIG-7",
          .batch = 6,
          .weight = 0.375,
          .begin = 63,
          .end = 100 },
};
static const uint64_t segments[] = { 4, 9 };
static const struct launch_world planned = { .job = "j",
                                             .ranks = ranks,
                                             .count = ARRAY_SIZE(ranks),
                                             .global_batch = 16,
                                             .number = 2,
                                             .restarts = 1,
                                             .restart_max = 3,
                                             .port = 7000,
                                             .segments = segments,
                                             .segment_count = 2 };
static const struct launch_ranks_files files = { .folder = "/work/j",
                                                 .tag = "rank",
                                                 .plan = "/work/j/plan.json",
                                                 .table = "/work/j/ranktable.json",
                                                 .checkpoint = "/ckpt",
                                                 .shares = "/work/j/rank-0.shares",
                                                 .threads = 4 };

/* clang-format off */
static const struct { size_t rank; const char *name, *value; } wanted[] = {
        { 1, "REMUDA_JOB", "j" },              { 0, "REMUDA_ROLE", "server" },   { 1, "REMUDA_ROLE", "worker" },
        { 1, "REMUDA_VENDOR", "nvidia" },      { 1, "REMUDA_DEVICES", "GPU-1" }, { 0, "REMUDA_DEVICES", NULL },
        { 1, "REMUDA_PCI", "0000:18:00.0" },   { 2, "REMUDA_PCI", NULL },
        { 1, "CUDA_VISIBLE_DEVICES", "1" },    { 2, "CUDA_VISIBLE_DEVICES", "MIG-7" }, { 0, "CUDA_VISIBLE_DEVICES", NULL },
        { 1, "REMUDA_WEIGHT", "0.625" },       { 0, "REMUDA_WEIGHT", "0" },      { 1, "REMUDA_BATCH", "10" },
        { 1, "REMUDA_SHARD", "0:63" },         { 0, "REMUDA_SHARD", NULL },      { 1, "REMUDA_GROUP", "g" },
        { 1, "REMUDA_LAYERS", "3:5" },         { 2, "REMUDA_LAYERS", NULL },     { 2, "REMUDA_SEGMENTS", "4,9" },
        { 1, "REMUDA_WORLD", "2" },            { 1, "REMUDA_RESTARTS", "1" },    { 1, "REMUDA_CHECKPOINT", "/ckpt" },
        { 1, "REMUDA_PLAN", "/work/j/plan.json" }, { 2, "REMUDA_PROGRESS", "/work/j/rank-12.progress" },
        { 1, "REMUDA_SHARES", "/work/j/rank-0.shares" }, { 1, "REMUDA_GROUPS", "2" }, { 0, "REMUDA_GROUPS", "2" },
        { 1, "OMP_NUM_THREADS", "4" },         { 1, "TORCHELASTIC_RESTART_COUNT", "1" }, { 1, "TORCHELASTIC_MAX_RESTARTS", "3" },
        { 1, "TORCHELASTIC_RUN_ID", "j" },     { 2, "LOCAL_RANK", "2" },         { 2, "MASTER_PORT", "7000" },
        { 2, "DEVICE_ID", "2" }, /* no Ascend chip is of the job: as its rank table lists them */
};
/* clang-format on */

static void a_rank_is_told_its_part(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
                json_t *entry = launch_ranks_entry(&planned, wanted[i].rank, wanted[i].rank + 10, &files);
                const char *got = json_string_value(
                        json_object_get(json_object_get(entry, "environment"), wanted[i].name));

                if ((got == NULL) != (wanted[i].value == NULL) ||
                    (got != NULL && strcmp(got, wanted[i].value) != 0))
                        fail_msg("rank %zu, %s: want %s, got %s", wanted[i].rank, wanted[i].name,
                                 wanted[i].value == NULL ? "none" : wanted[i].value,
                                 got == NULL ? "none" : got);
                assert_non_null(
                        strstr(json_string_value(json_object_get(entry, "report")), "/work/j/rank-1"));
                json_decref(entry);
        }
}

static void nobody_is_told_what_is_not_planned_yet(void **state)
{
        struct launch_world measured = planned;
        struct launch_ranks_files plain = files;
        const json_t *environment;
        json_t *entry;

        (void) state;
        measured.global_batch = 0;
        measured.segment_count = 0;
        plain.checkpoint = "";
        plain.shares = NULL;
        plain.threads = 0;
        entry = launch_ranks_entry(&measured, 1, 1, &plain);
        environment = json_object_get(entry, "environment");
        assert_null(json_object_get(environment, "REMUDA_WEIGHT"));
        assert_null(json_object_get(environment, "REMUDA_BATCH"));
        assert_null(json_object_get(environment, "REMUDA_SHARES"));
        assert_null(json_object_get(environment, "REMUDA_STRATEGY"));
        assert_null(json_object_get(environment, "REMUDA_SEGMENTS"));
        assert_null(json_object_get(environment, "REMUDA_CHECKPOINT"));
        assert_null(json_object_get(environment, "OMP_NUM_THREADS"));
        json_decref(entry);
}

/* clang-format off */
static const struct { const char *name, *split, *staleness; } said[] = {
        { "REMUDA_STRATEGY", "split", "ps-ssp" },     { "REMUDA_MODEL", "bert", NULL },
        { "REMUDA_SEED", "18446744073709551615", NULL }, { "REMUDA_GLOBAL_BATCH", "512", "256" },
        { "REMUDA_EPOCHS", "7", NULL },                { "REMUDA_STALENESS", NULL, "9" },
        { "REMUDA_MICROBATCHES", "8", NULL },         { "REMUDA_LEARNING_RATE", "0.01", NULL },
        { "REMUDA_NEIGHBOUR_EXCHANGE", "0.25", NULL }, { "REMUDA_CHECKPOINT_EVERY", "50", NULL },
        { "REMUDA_DATA", "/data", NULL },             { "REMUDA_FORMAT", "raw", NULL },
        { "REMUDA_ORDER", "round-robin", NULL },      { "REMUDA_DISTRIBUTE", "manager", NULL },
        { "REMUDA_PREPROCESS", "normalise", NULL },   { "REMUDA_POLL", "5", NULL },
};
/* clang-format on */

static void wanted_of(const struct job *job, const char *name, const char *value)
{
        struct launch_world world = planned;
        json_t *entry;
        const char *got;

        world.spec = job;
        entry = launch_ranks_entry(&world, 1, 1, &files);
        got = json_string_value(json_object_get(json_object_get(entry, "environment"), name));
        if ((got == NULL) != (value == NULL) || (got != NULL && strcmp(got, value) != 0))
                fail_msg("%s: want %s, got %s", name, value == NULL ? "none" : value,
                         got == NULL ? "none" : got);
        json_decref(entry);
}

static void what_a_job_says_reaches_a_program_of_ones_own(void **state)
{
        struct job split, plain;

        (void) state;
        job_init(&split);
        job_init(&plain);
        split.strategy = JOB_STRATEGY_SPLIT;
        split.seed = UINT64_MAX;
        split.global_batch = 512;
        split.epochs = 7;
        split.microbatches = 8;
        split.learning_rate = 0.01;
        split.neighbour_exchange = 0.25;
        split.checkpoint.given = split.data.given = true;
        split.has_model = split.has_seed = split.has_epochs = true;
        split.checkpoint.every_steps = 50;
        split.data.format = JOB_FORMAT_RAW;
        split.data.order = JOB_ORDER_ROUND_ROBIN;
        split.data.distribute = JOB_DATA_MANAGER;
        split.data.poll_seconds = 5;
        (void) text_copy(split.model, sizeof(split.model), "bert");
        (void) text_copy(split.data.path, sizeof(split.data.path), "/data");
        (void) text_copy(split.data.preprocess, sizeof(split.data.preprocess), "normalise");
        plain.strategy = JOB_STRATEGY_PS_SSP;
        plain.staleness = 9;
        for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
                wanted_of(&split, said[i].name, said[i].split);
                wanted_of(&plain, said[i].name, said[i].staleness);
        }
}

static void a_plan_says_what_is_known(void **state)
{
        json_t *list = launch_ranks_plan(&planned), *rank = json_array_get(list, 1);

        (void) state;
        assert_int_equal(json_array_size(list), 3);
        assert_string_equal(json_string_value(json_object_get(rank, "program")), "/opt/train");
        assert_true(json_real_value(json_object_get(json_object_get(rank, "speed"), "beta_ms")) == 0.25);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(rank, "shard"), 1)), 63);
        assert_int_equal(json_integer_value(json_array_get(json_object_get(rank, "layers"), 0)), 3);
        assert_null(json_object_get(json_array_get(list, 2), "speed"));
        assert_null(json_object_get(json_array_get(list, 2), "layers"));
        json_decref(list);
}

static void weights_are_one_in_any_order(void **state)
{
        static const uint64_t batches[][6] = {
                { 1, 1, 1 }, { 7, 11, 13, 17, 1, 0 }, { 100, 0, 0, 1 }, { 5 }
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(batches); i++) {
                double weights[6], left = 1, forth = 0, back = 0;
                uint64_t before = 0, all = 0;

                for (size_t k = 0; k < 6; k++)
                        all += batches[i][k];
                for (size_t k = 0; k < 6; k++) {
                        weights[k] = launch_weight(before, batches[i][k], all, &left);
                        before += batches[i][k];
                        assert_true(weights[k] >= 0 && (batches[i][k] > 0 || weights[k] == 0));
                }
                for (size_t k = 0; k < 6; k++) {
                        forth += weights[k];
                        back += weights[5 - k];
                }
                assert_true(forth == 1 && back == 1);
        }
}

static void threads_share_the_host(void **state)
{
        (void) state;
        assert_int_equal(launch_ranks_threads(64, 8), 8);
        assert_int_equal(launch_ranks_threads(64, 65), 1);
        assert_int_equal(launch_ranks_threads(2, 0), 1);
}

static void text_of(const struct launch_world *world, size_t rank, char *ret, size_t bytes)
{
        struct text text = { 0 };

        launch_environment(world, rank, false, &text);
        (void) text_copy(ret, bytes, text.data == NULL ? "" : text.data);
        text_free(&text);
}

/* Four workers on each of two hosts, a gigabit between them. */
static struct launch_world two_hosts(struct launch_rank eight[8])
{
        for (size_t i = 0; i < 8; i++)
                eight[i] = (struct launch_rank){ .node = i < 4 ? "a" : "b",
                                                 .address = "x",
                                                 .runtime = "cpu",
                                                 .vendor = "cpu",
                                                 .group = "g",
                                                 .batch = 1,
                                                 .weight = 0.125,
                                                 .network_mbps = 1000 };
        return (struct launch_world){ .job = "j", .ranks = eight, .count = 8, .global_batch = 8 };
}

static void levels_follow_from_the_links(void **state)
{
        struct launch_rank eight[8];
        struct launch_world world = two_hosts(eight);
        struct launch_levels levels;
        char text[1024];
        struct job job;

        (void) state;
        job_init(&job);
        assert_int_equal(launch_levels_choose(&world, &job, &levels), 0);
        assert_true(levels.two && levels.hosts);
        assert_string_equal(levels.proposed, "auto:4,4");
        assert_string_equal(levels.why,
                            "two levels, groups 4,4: a host's link carries 1.00 times the gradients "
                            "instead of a ring's 1.75, at 1000 Mbit/s");
        world.levels = levels.proposed; /* every rank is told, whoever starts it */
        text_of(&world, 7, text, sizeof(text));
        assert_non_null(strstr(text, "REMUDA_LEVELS=auto:4,4"));
        launch_levels_free(&levels);
        job_free(&job);
}

/* The same links, the same answer: of a manager's plan. */
static void levels_of_a_plan_are_the_same(void **state)
{
        Subtask__Variable told = SUBTASK__VARIABLE__INIT, *variables[] = { &told };
        Subtask__Group groups[2], *list[] = { &groups[0], &groups[1] };
        Subtask__Plan plan = SUBTASK__PLAN__INIT;
        struct launch_levels levels;

        (void) state;
        for (size_t i = 0; i < 2; i++) {
                subtask__group__init(&groups[i]);
                groups[i].name = (char *) (i == 0 ? "a" : "b");
                groups[i].used = true;
                groups[i].chips = 4;
        }
        plan.groups = list;
        plan.n_groups = 2;
        assert_int_equal(launch_levels_choose_plan(&plan, &levels), 0);
        assert_string_equal(levels.proposed, "auto:4,4");
        assert_non_null(strstr(levels.why, "; of 2 hosts it is not known and taken for 1000"));
        launch_levels_free(&levels);
        groups[0].node = groups[1].node = (char *) "n"; /* two pods of one node share its link */
        assert_int_equal(launch_levels_choose_plan(&plan, &levels), 0);
        assert_true(!levels.two && !levels.hosts && levels.proposed == NULL);
        launch_levels_free(&levels);
        groups[1].node = (char *) "m";
        groups[0].network_mbps = groups[1].network_mbps = 100000;
        assert_int_equal(launch_levels_choose_plan(&plan, &levels), 0);
        assert_true(!levels.two && levels.hosts);
        launch_levels_free(&levels);
        groups[0].network_mbps = groups[1].network_mbps = 1000;
        told.key = (char *) "REMUDA_LEVELS";
        told.value = (char *) "none";
        plan.environment = variables;
        plan.n_environment = 1;
        assert_int_equal(launch_levels_choose_plan(&plan, &levels), 0);
        assert_true(!levels.two && levels.hosts && levels.proposed == NULL);
        assert_string_equal(levels.why, "one level: the job says so");
        launch_levels_free(&levels);
        told.key = (char *) "REMUDA_STRATEGY";
        told.value = (char *) "ps-sync";
        assert_int_equal(launch_levels_choose_plan(&plan, &levels), 0);
        assert_true(!levels.two);
        launch_levels_free(&levels);
}

static void what_the_job_says_of_levels_stands(void **state)
{
        struct launch_rank eight[8];
        struct launch_world world = two_hosts(eight);
        struct launch_levels levels;
        uint64_t pairs[] = { 2, 2, 2, 2 };
        char text[1024];
        struct job job;

        (void) state;
        job_init(&job);
        job.levels.kind = JOB_LEVELS_LIST;
        job.levels.workers = pairs;
        job.levels.count = 4;
        assert_int_equal(launch_levels_choose(&world, &job, &levels), 0);
        assert_true(levels.two && levels.proposed == NULL);
        launch_levels_free(&levels);
        world.spec = &job;
        text_of(&world, 0, text, sizeof(text));
        assert_non_null(strstr(text, "REMUDA_LEVELS=2,2,2,2"));
        job.levels = (struct job_levels){ .kind = JOB_LEVELS_NONE };
        text_of(&world, 0, text, sizeof(text));
        assert_non_null(strstr(text, "REMUDA_LEVELS=none"));
        job.levels.kind = JOB_LEVELS_AUTO;
        job.segments = JOB_SEGMENTS_LIST;
        assert_int_equal(launch_levels_choose(&world, &job, &levels), 0);
        assert_true(!levels.two && strstr(levels.why, "segments") != NULL);
        launch_levels_free(&levels);
        job_free(&job);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(levels_follow_from_the_links),
                cmocka_unit_test(levels_of_a_plan_are_the_same),
                cmocka_unit_test(what_the_job_says_of_levels_stands),
                cmocka_unit_test(a_rank_is_told_its_part),
                cmocka_unit_test(nobody_is_told_what_is_not_planned_yet),
                cmocka_unit_test(what_a_job_says_reaches_a_program_of_ones_own),
                cmocka_unit_test(a_plan_says_what_is_known),
                cmocka_unit_test(weights_are_one_in_any_order),
                cmocka_unit_test(threads_share_the_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
