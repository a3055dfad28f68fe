#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "codec/rendezvous_pb.h"
#include "core/cleanup.h"
#include "launcher/subtask.h"

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
        assert_int_equal(rendezvous_order_decode((const uint8_t *) "\x10\x09", 2, &order, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "kind: 9"));
        assert_int_equal(rendezvous_order_decode((const uint8_t *) "\xff\xff", 2, &order, &err), -EBADMSG);
}

static const char plan_text[] =
        "{\"job\":\"j\",\"global_batch\":100,\"samples\":1000,\"args\":[\"-v\"],\"groups\":["
        "{\"name\":\"a\",\"runtime\":\"cuda\",\"chips\":3,\"speed\":4},{\"name\":\"b\",\"runtime\":\"cpu\","
        "\"chips\":2,\"speed\":1}]}";

static void the_work_is_cut_at_two_levels(void **state)
{
        json_t *value = json_loads(plan_text, 0, NULL), *ranks = NULL;
        struct subtask_plan plan;
        struct err err = { 0 };
        CLEANUP(free_p) char *text = NULL;
        const json_t *list, *environment;

        (void) state;
        assert_int_equal(subtask_plan_decode(value, &plan, &err), 0);
        assert_true(plan.world_size == 5 && plan.groups[0].batch == 80 && plan.groups[1].batch == 20);
        assert_true(plan.groups[1].first_rank == 3 && plan.groups[1].begin == 800 &&
                    plan.groups[1].end == 1000);

        text = subtask_encode(&plan, 0, "10.0.0.1", 7000);
        assert_int_equal(subtask_cut(text, "/logs", &ranks, &err), 0);
        list = json_object_get(ranks, "ranks");
        assert_int_equal(json_array_size(list), 3);
        environment = json_object_get(json_array_get(list, 2), "environment");
        /* 80 over three equal chips: 27 + 27 + 26, and 800 samples cut in the same places */
        assert_string_equal(json_string_value(json_object_get(environment, "REMUDA_BATCH")), "26");
        assert_string_equal(json_string_value(json_object_get(environment, "REMUDA_SHARD")), "540:800");
        assert_string_equal(json_string_value(json_object_get(environment, "RANK")), "2");
        assert_string_equal(json_string_value(json_object_get(environment, "WORLD_SIZE")), "5");
        json_decref(ranks);
        subtask_plan_free(&plan);
        json_decref(value);
}

/* clang-format off */
static const struct { const char *text, *says; } subtasks[] = {
        { "",                                 "not a JSON object" },
        { "{}",                               "version: a whole number" },
        { "{\"version\":2}",                  "the manager speaks 2" },
        { "{\"version\":1}",                  "job, group, runtime and master" },
        { "{\"version\":1,\"job\":\"j\",\"group\":\"g\",\"runtime\":\"cpu\",\"master\":\"m\",\"chips\":4,\"first_rank\":1,"
          "\"world_size\":4,\"batch\":1,\"global_batch\":1,\"port\":1,\"shard\":[0,0]}", "larger than the whole" },
        { "{\"version\":1,\"job\":\"j\",\"group\":\"g\",\"runtime\":\"cpu\",\"master\":\"m\",\"chips\":1,\"first_rank\":0,"
          "\"world_size\":4,\"batch\":1,\"global_batch\":1,\"port\":1,\"shard\":[5,0]}", "shard: [begin, end]" },
};
/* clang-format on */

static void a_bad_subtask_is_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(subtasks); i++) {
                json_t *ranks = NULL;
                struct err err = { 0 };

                if (subtask_cut(subtasks[i].text, "/logs", &ranks, &err) != -EINVAL ||
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
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
