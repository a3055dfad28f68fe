/* What the programs of other frameworks find in their environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/plan/launch_frameworks.h"

/* A server and two worlds of chips on two hosts. */
static const struct launch_rank ranks[] = {
        { .node = "a", .address = "10.0.0.1", .runtime = "cpu", .server = true },
        { .node = "a", .address = "10.0.0.1", .runtime = "cuda", .device_index = 5 },
        { .node = "b", .address = "fd00::2", .runtime = "cann", .device_index = 6 },
        { .node = "b", .address = "fd00::2", .runtime = "cann", .device_index = 7 },
};
static const struct launch_world world = {
        .job = "j", .ranks = ranks, .count = ARRAY_SIZE(ranks), .port = 7000
};

/* clang-format off */
static const struct { size_t rank; const char *name, *value; } wanted[] = {
        { 0, "RANK", "0" },             { 3, "RANK", "3" },            { 3, "LOCAL_RANK", "1" },
        { 3, "LOCAL_WORLD_SIZE", "2" }, { 3, "GROUP_RANK", "1" },      { 0, "GROUP_WORLD_SIZE", "2" },
        { 2, "MASTER_ADDR", "10.0.0.1" },
        /* HCCL counts Ascend chips alone, and has no others */
        { 2, "RANK_ID", "0" },          { 3, "RANK_ID", "1" },         { 3, "RANK_SIZE", "2" },
        { 3, "DEVICE_ID", "7" },        { 3, "RANK_TABLE_FILE", "/t" }, { 1, "RANK_ID", NULL },
        { 1, "RANK_TABLE_FILE", NULL },
        { 0, "MS_ROLE", "MS_PSERVER" }, { 1, "MS_ROLE", "MS_WORKER" }, { 1, "MS_WORKER_NUM", "3" },
        { 1, "MS_SERVER_NUM", "1" },    { 0, "TRAINING_ROLE", "PSERVER" },
        { 3, "PADDLE_CURRENT_ENDPOINT", "[fd00::2]:7002" },
        { 0, "PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:7002,[fd00::2]:7001,[fd00::2]:7002" },
        { 3, "PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:7001" },
        { 0, "PADDLE_TRAINER_ID", "0" }, { 1, "PADDLE_TRAINER_ID", "0" }, { 3, "PADDLE_TRAINER_ID", "2" },
        { 0, "PADDLE_TRAINERS_NUM", "3" }, { 3, "POD_IP", "fd00::2" }, { 3, "PADDLE_PORT", "7002" },
        { 1, "MS_LOCAL_WORKER", "1" }, { 3, "MS_LOCAL_WORKER", "2" },
};
/* clang-format on */

static void every_framework_finds_its_place(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
                json_t *environment = json_object();
                const struct launch_variables to = launch_variables_json(environment);
                const char *got;

                launch_frameworks_add(&world, wanted[i].rank, "/t", &to);
                got = json_string_value(json_object_get(environment, wanted[i].name));
                if ((got == NULL) != (wanted[i].value == NULL) ||
                    (got != NULL && strcmp(got, wanted[i].value) != 0))
                        fail_msg("rank %zu, %s: want %s, got %s", wanted[i].rank, wanted[i].name,
                                 wanted[i].value == NULL ? "none" : wanted[i].value,
                                 got == NULL ? "none" : got);
                json_decref(environment);
        }
}

static json_t *table_of(const struct launch_world *of)
{
        struct text text = { 0 };
        struct err err = { 0 };
        json_t *table;

        assert_int_equal(launch_frameworks_table(of, &text, &err), 0);
        table = json_loadb(text.data, text.size_bytes, JSON_REJECT_DUPLICATES, NULL);
        text_free(&text);
        assert_non_null(table);
        return table;
}

static void the_rank_table_lists_ascend_chips_or_all_workers(void **state)
{
        const struct launch_world others = { .job = "j", .ranks = ranks, .count = 2, .port = 1 };
        const struct launch_world servers = { .job = "j", .ranks = ranks, .count = 1, .port = 1 };
        json_t *table = table_of(&world), *list = json_object_get(table, "server_list");
        struct text text = { 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(json_array_size(list), 1);
        assert_int_equal(json_array_size(json_object_get(json_array_get(list, 0), "device")), 2);
        json_decref(table);
        table = table_of(&others);
        list = json_object_get(table, "server_list");
        assert_int_equal(json_array_size(json_object_get(json_array_get(list, 0), "device")), 1);
        json_decref(table);
        assert_true(launch_frameworks_table(&servers, &text, &err) < 0);
        text_free(&text);
}

/* Its server is first, its worker comes behind that of another node. */
static void a_node_that_comes_again_counts_on(void **state)
{
        static const struct launch_rank again[] = {
                { .node = "a", .address = "10.0.0.1", .runtime = "cpu", .server = true },
                { .node = "b", .address = "10.0.0.2", .runtime = "cuda" },
                { .node = "a", .address = "10.0.0.1", .runtime = "cuda" },
        };
        static const struct launch_world of = { .job = "j", .ranks = again, .count = 3, .port = 7000 };
        json_t *table = table_of(&of), *environment = json_object(), *device;
        const struct launch_variables to = launch_variables_json(environment);

        (void) state;
        launch_frameworks_add(&of, 2, "/t", &to);
        device = json_array_get(
                json_object_get(json_array_get(json_object_get(table, "server_list"), 1), "device"), 0);
        assert_string_equal(json_string_value(json_object_get(environment, "DEVICE_ID")), "1");
        assert_string_equal(json_string_value(json_object_get(device, "device_id")), "1");
        assert_string_equal(json_string_value(json_object_get(environment, "PADDLE_CURRENT_ENDPOINT")),
                            "10.0.0.1:7002");
        assert_string_equal(json_string_value(json_object_get(environment, "PADDLE_TRAINER_ENDPOINTS")),
                            "10.0.0.2:7001,10.0.0.1:7002");
        json_decref(environment);
        json_decref(table);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_framework_finds_its_place),
                cmocka_unit_test(the_rank_table_lists_ascend_chips_or_all_workers),
                cmocka_unit_test(a_node_that_comes_again_counts_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
