#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/launcher/rendezvous_pb.h"
#include "job/launcher/subtask.h"

static void an_order_survives_the_wire(void **state)
{
        char *argv[] = { (char *) "orted", (char *) "-mca", (char *) "", NULL };
        struct rendezvous_order order = { .id = 1ULL << 40, .kind = ORDER_START, .argv = argv, .argc = 3 },
                                again;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct err err = { 0 };
        size_t size;

        (void) state;
        bytes = rendezvous_order_encode(&order, &size);
        assert_non_null(bytes);
        assert_int_equal(rendezvous_order_decode(bytes, size, &again, &err), 0);
        assert_true(again.id == order.id && again.kind == ORDER_START && again.argc == 3);
        assert_string_equal(again.argv[2], "");
        assert_null(again.argv[3]);
        assert_null(again.subtask);
        rendezvous_order_free(&again);
}

static void what_cannot_be_is_refused(void **state)
{
        struct rendezvous_join join = { .version = 1, .chips = 0 }, again;
        struct rendezvous_order order;
        CLEANUP(free_p) uint8_t *bytes = NULL, *bad = NULL;
        struct err err = { 0 };
        size_t size;

        (void) state;
        strcpy(join.group, "g1");
        bytes = rendezvous_join_encode(&join, &size);
        assert_int_equal(rendezvous_join_decode(bytes, size, &again, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "chips: 0 is not in 1.."));
        strcpy(join.group, "../g1");
        join.chips = 1;
        bad = rendezvous_join_encode(&join, &size);
        assert_int_equal(rendezvous_join_decode(bad, size, &again, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "group: '../g1'"));
        free(bad);
        strcpy(join.group, "g1");
        strcpy(join.program_sha256, "0123");
        bad = rendezvous_join_encode(&join, &size);
        assert_int_equal(rendezvous_join_decode(bad, size, &again, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "program_sha256"));
        free(bad);
        strcpy(join.program_sha256, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
        bad = rendezvous_join_encode(&join, &size);
        assert_int_equal(rendezvous_join_decode(bad, size, &again, &err), 0);
        assert_string_equal(again.program_sha256, join.program_sha256);
        assert_int_equal(rendezvous_order_decode((const uint8_t *) "\x10\x09", 2, &order, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "kind: 9"));
        assert_int_equal(rendezvous_order_decode((const uint8_t *) "\xff\xff", 2, &order, &err), -EBADMSG);
}

static const char plan_text[] =
        "{\"job\":\"j\",\"global_batch\":100,\"samples\":1000,\"args\":[\"-v\"],\"environment\":{\"EXTRA\":"
        "\"1\"},\"groups\":["
        "{\"name\":\"a\",\"runtime\":\"cuda\",\"chips\":3,\"speed\":4},{\"name\":\"b\",\"runtime\":\"cpu\","
        "\"chips\":2,\"speed\":1}]}";

static const char *value_of(const json_t *environment, const char *name)
{
        return json_string_value(json_object_get(environment, name));
}

static void the_work_is_cut_at_two_levels(void **state)
{
        json_t *value = json_loads(plan_text, 0, NULL);
        struct subtask_ranks ranks;
        struct subtask_plan plan;
        struct err err = { 0 };
        CLEANUP(free_p) char *text = NULL;
        const json_t *list, *environment;
        json_t *table;

        (void) state;
        assert_int_equal(subtask_plan_decode(value, &plan, &err), 0);
        assert_true(plan.world_size == 5 && plan.groups[0].batch == 80 && plan.groups[1].batch == 20);
        assert_true(plan.groups[1].first_rank == 3 && plan.groups[1].begin == 800 &&
                    plan.groups[1].end == 1000);

        strcpy(plan.groups[0].address, "10.0.0.1");
        strcpy(plan.groups[1].address, "10.0.0.2");
        plan.groups[0].port = plan.groups[1].port = 7000;
        text = subtask_encode(&plan, 0);
        assert_int_equal(subtask_cut(text, "/logs", NULL, &ranks, &err), 0);
        list = json_object_get(ranks.file, "ranks");
        assert_int_equal(json_array_size(list), 3);
        environment = json_object_get(json_array_get(list, 2), "environment");
        /* 80 over three equal chips: 27 + 27 + 26, and 800 samples cut in the same places */
        assert_string_equal(value_of(environment, "REMUDA_BATCH"), "26");
        assert_string_equal(value_of(environment, "REMUDA_SHARD"), "540:800");
        assert_string_equal(value_of(environment, "RANK"), "2");
        assert_string_equal(value_of(environment, "WORLD_SIZE"), "5");
        assert_string_equal(value_of(environment, "MASTER_ADDR"), "10.0.0.1");
        assert_string_equal(value_of(environment, "CUDA_VISIBLE_DEVICES"), "2");
        assert_string_equal(value_of(environment, "PADDLE_TRAINER_ENDPOINTS"),
                            "10.0.0.1:7001,10.0.0.1:7002,10.0.0.1:7003,10.0.0.2:7001,10.0.0.2:7002");
        assert_string_equal(value_of(environment, "EXTRA"), "1");
        table = json_loads(ranks.table, JSON_REJECT_DUPLICATES, NULL);
        assert_string_equal(value_of(table, "server_count"), "2");
        assert_string_equal(value_of(table, "version"), "1.0");
        json_decref(table);
        subtask_ranks_free(&ranks);

        /* one chip was seen at half the others' speed, and the other group is gone */
        plan.groups[0].chip_speeds = calloc(3, sizeof(double));
        for (size_t i = 0; i < 3; i++)
                plan.groups[0].chip_speeds[i] = i == 1 ? 1 : 2;
        plan.groups[1].used = false;
        assert_int_equal(subtask_plan_cut(&plan, &err), 0);
        assert_true(plan.world_size == 3 && plan.groups[0].batch == 100 && plan.groups[0].end == 1000);
        free(text);
        text = subtask_encode(&plan, 0);
        assert_int_equal(subtask_cut(text, "/logs", NULL, &ranks, &err), 0);
        environment = json_object_get(json_array_get(json_object_get(ranks.file, "ranks"), 1), "environment");
        assert_string_equal(value_of(environment, "REMUDA_BATCH"), "20");
        subtask_ranks_free(&ranks);
        subtask_plan_free(&plan);
        json_decref(value);
}

/* clang-format off */
static const struct { const char *fields, *says; } plans[] = {
        { "",                                                                          "job: 1 to 63" },
        { "\"job\":\"j\"",                                                             "groups: a list" },
        { "\"job\":\"j\",\"groups\":[{}]",                                             "groups[0]: name" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":0}]",  "groups[0]: chips" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1,\"role\":\"x\"}]", "role: worker or server" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1,\"batch\":3}]", "add up to global_batch, 8" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1,\"role\":\"server\"}]", "no worker is left" },
        { "\"job\":\"j\",\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1},{\"name\":\"b\",\"runtime\":\"cpu\",\"chips\":1,"
          "\"role\":\"server\"}]",                                                    "servers come before" },
        { "\"job\":\"j\",\"environment\":{\"LD_PRELOAD\":\"x\"}",                  "the loader's variables" },
        { "\"job\":\"j\",\"environment\":{\"A=B\":\"x\"}",                         "a name without '='" },
        { "\"job\":\"j\",\"restart\":[],\"groups\":[{\"name\":\"a\",\"runtime\":\"cpu\",\"chips\":1}]", "restart: an object" },
        { "\"job\":\"j\",\"resume_args\":\"--resume\"",                              "resume_args: a list" },
};
/* clang-format on */

static void a_bad_plan_is_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(plans); i++) {
                char text[1024];
                struct subtask_plan plan;
                struct err err = { 0 };
                json_t *value;

                snprintf(text, sizeof(text), "{\"global_batch\":8%s%s}",
                         plans[i].fields[0] == '\0' ? "" : ",", plans[i].fields);
                value = json_loads(text, 0, NULL);
                assert_non_null(value);
                if (subtask_plan_decode(value, &plan, &err) != -EINVAL ||
                    strstr(err.msg, plans[i].says) == NULL)
                        fail_msg("%s: want '%s', got '%s'", text, plans[i].says, err.msg);
                json_decref(value);
        }
}

static void what_ranks_say_survives_the_wire(void **state)
{
        struct rendezvous_rank ranks[2] = {
                { .rank = 3, .step = -1, .loss = 0.5, .busy_seconds = 1.5, .ended = true, .exit_code = 137 },
                { .rank = 4, .lines = 7, .samples = 1LL << 40, .stopped = true }
        };
        struct rendezvous_seen seen = { .group = "g",
                                        .world = 2,
                                        .leaving = true,
                                        .ranks = ranks,
                                        .rank_count = 2 },
                               again;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct err err = { 0 };
        size_t size;

        (void) state;
        bytes = rendezvous_seen_encode(&seen, &size);
        assert_int_equal(rendezvous_seen_decode(bytes, size, &again, &err), 0);
        assert_true(again.world == 2 && again.leaving && again.rank_count == 2);
        assert_true(again.ranks[0].rank == 3 && again.ranks[0].step == -1 && again.ranks[0].exit_code == 137);
        assert_true(again.ranks[0].busy_seconds == 1.5 && again.ranks[1].busy_seconds == 0);
        assert_true(again.ranks[1].samples == 1LL << 40 && again.ranks[1].stopped && !again.ranks[1].ended);
        rendezvous_seen_free(&again);
}

/* clang-format off */
static const struct { const char *text, *says; } subtasks[] = {
        { "",                                 "not a JSON object" },
        { "{}",                               "version: a whole number" },
        { "{\"version\":1}",                  "the manager speaks 1" },
        { "{\"version\":2}",                  "job, group and runtime" },
        { "{\"version\":2,\"job\":\"j\",\"group\":\"g\",\"runtime\":\"cpu\",\"chips\":4,\"first_rank\":1,"
          "\"batch\":1,\"global_batch\":1,\"shard\":[0,0],\"hosts\":[{\"name\":\"g\",\"runtime\":\"cpu\",\"address\":\"a\",\"chips\":4,\"port\":1}]}", "larger than the whole" },
        { "{\"version\":2,\"job\":\"j\",\"group\":\"g\",\"runtime\":\"cpu\",\"chips\":1,\"first_rank\":0,"
          "\"batch\":1,\"global_batch\":1,\"shard\":[5,0],\"hosts\":[{\"name\":\"g\",\"runtime\":\"cpu\",\"address\":\"a\",\"chips\":4,\"port\":1}]}", "shard: [begin, end]" },
        { "{\"version\":2,\"job\":\"j\",\"group\":\"g\",\"runtime\":\"cpu\",\"chips\":1,\"first_rank\":0,"
          "\"batch\":1,\"global_batch\":1,\"shard\":[0,0],\"hosts\":[]}", "hosts: a list" },
        { "{\"version\":2,\"job\":\"j\",\"group\":\"g\",\"runtime\":\"cpu\",\"chips\":1,\"first_rank\":0,"
          "\"batch\":1,\"global_batch\":1,\"shard\":[0,0],\"hosts\":[{\"chips\":1,\"port\":0}]}", "hosts[0]: port" },
};
/* clang-format on */

static void a_bad_subtask_is_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(subtasks); i++) {
                struct subtask_ranks ranks;
                struct err err = { 0 };

                if (subtask_cut(subtasks[i].text, "/logs", NULL, &ranks, &err) != -EINVAL ||
                    strstr(err.msg, subtasks[i].says) == NULL)
                        fail_msg("%s: want '%s', got '%s'", subtasks[i].text, subtasks[i].says, err.msg);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_order_survives_the_wire),
                cmocka_unit_test(what_cannot_be_is_refused),
                cmocka_unit_test(the_work_is_cut_at_two_levels),
                cmocka_unit_test(a_bad_subtask_is_refused),
                cmocka_unit_test(a_bad_plan_is_refused),
                cmocka_unit_test(what_ranks_say_survives_the_wire),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
