/* The plan of a subtask as JSON: every field both ways, and every field of another kind refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/pb_json.h"
#include "base/text.h"
#include "job/plan/subtask.pb-c.h"

#define ARENA_BYTES 65536

static void a_plan_comes_back_as_it_was(void **state)
{
        static const char plan[] =
                "{\"version\":1,\"job\":\"j\",\"global_batch\":18446744073,\"shards\":\"equal\",\"args\":["
                "\"a\","
                "\"b\"],\"resume\":true,\"environment\":{\"A\":\"1\",\"B\":\"\"},\"restart\":{\"max\":3},"
                "\"groups\":[{\"name\":\"g\",\"role\":\"server\",\"chips\":4,\"spare\":false,\"speed\":0.5,"
                "\"stages\":[{\"first\":0,\"last\":2},{\"first\":3,\"last\":3}],\"chip_speeds\":[1.5,2.5],"
                "\"chip_batches\":[3,5],"
                "\"used\":true,\"address\":\"h\",\"port\":7,\"first_rank\":0,\"begin\":0,\"end\":9}],"
                "\"world_size\":4,\"segments\":[1,4294967296]}";
        json_t *object = json_loads(plan, 0, NULL), *again;
        struct pb_arena arena;
        struct err err = { 0 };
        ProtobufCMessage *message;

        (void) state;
        pb_arena_init(&arena, ARENA_BYTES);
        message = pb_json_decode(object, &subtask__plan__descriptor, &arena, &err);
        if (message == NULL)
                fail_msg("%s", err.msg);
        again = pb_json_encode(message);
        if (!json_equal(object, again)) {
                CLEANUP(free_p) char *text = json_dumps(again, JSON_COMPACT);

                fail_msg("%s", text);
        }
        json_decref(again);
        json_decref(object);
        pb_arena_free(&arena);
}

static void what_is_left_out_or_null_has_its_default(void **state)
{
        json_t *object = json_loads("{\"epochs\":null,\"else\":[[7]]}", 0, NULL);
        struct pb_arena arena;
        const Subtask__Plan *plan;

        (void) state;
        pb_arena_init(&arena, ARENA_BYTES);
        plan = pb_json_decode(object, &subtask__plan__descriptor, &arena, NULL);
        assert_non_null(plan);
        assert_int_equal(plan->epochs, 1);
        assert_string_equal(plan->job, "");
        assert_int_equal(plan->n_groups, 0);
        assert_null(plan->restart);
        json_decref(object);
        pb_arena_free(&arena);
}

/* clang-format off */
static const struct {
        const char *plan, *says;
} refused[] = {
        { "{\"version\":-1}",                   "version: a whole number is needed" },
        { "{\"version\":4294967296}",           "version: a whole number is needed" },
        { "{\"version\":1.5}",                  "version: a whole number is needed" },
        { "{\"global_batch\":\"8\"}",           "global_batch: a whole number is needed" },
        { "{\"job\":7}",                        "job: a string is needed" },
        { "{\"resume\":\"yes\"}",               "resume: true or false is needed" },
        { "{\"shards\":\"fair\"}",              "shards: weighted or equal is needed" },
        { "{\"shards\":1}",                     "shards: weighted or equal is needed" },
        { "{\"args\":\"a\"}",                   "args: a list of strings is needed" },
        { "{\"args\":[7]}",                     "args: a list of strings is needed" },
        { "{\"segments\":[-1]}",                "segments: a whole number is needed" },
        { "{\"environment\":[]}",               "environment: an object of strings is needed" },
        { "{\"environment\":{\"A\":7}}",        "environment.A: a string is needed" },
        { "{\"restart\":7}",                    "restart: an object is needed" },
        { "{\"restart\":{\"max\":\"x\"}}",      "restart: max: a whole number is needed" },
        { "{\"groups\":{}}",                    "groups: a list of objects is needed" },
        { "{\"groups\":[{\"speed\":\"x\"}]}",   "groups[0]: speed: a number is needed" },
        { "{\"groups\":[{},{\"chip_speeds\":[\"x\"]}]}", "groups[1]: chip_speeds: a list of numbers is needed" },
        { "{\"groups\":[{\"stages\":[{\"first\":{}}]}]}", "groups[0]: stages[0]: first: a whole number is needed" },
};
/* clang-format on */

static void a_field_of_another_kind_is_named(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                json_t *object = json_loads(refused[i].plan, 0, NULL);
                struct pb_arena arena;
                struct err err = { 0 };

                pb_arena_init(&arena, ARENA_BYTES);
                if (pb_json_decode(object, &subtask__plan__descriptor, &arena, &err) != NULL ||
                    strcmp(err.msg, refused[i].says) != 0)
                        fail_msg("%s: '%s'", refused[i].plan, err.msg);
                assert_int_equal(err.code, -EINVAL);
                json_decref(object);
                pb_arena_free(&arena);
        }
}

/* A name beyond the enumeration's, as a later version may send it. */
static void a_number_without_a_name_is_no_word(void **state)
{
        Subtask__Plan plan = SUBTASK__PLAN__INIT;
        json_t *object;

        (void) state;
        plan.has_shards = 1;
        plan.shards = (Subtask__Shards) 7;
        object = pb_json_encode(&plan.base);
        assert_string_equal(json_string_value(json_object_get(object, "shards")), "");
        json_decref(object);
}

/* Each is written by another function: a string, one of a list, one of an object. */
static void what_is_not_utf8_is_not_written(void **state)
{
        char bad[] = "\xff", *list[] = { bad };
        Subtask__Variable variable = SUBTASK__VARIABLE__INIT, *variables[] = { &variable };
        Subtask__Plan plans[] = { SUBTASK__PLAN__INIT, SUBTASK__PLAN__INIT, SUBTASK__PLAN__INIT };

        (void) state;
        plans[0].job = bad;
        plans[1].n_args = 1;
        plans[1].args = list;
        variable.key = (char *) "A";
        variable.value = bad;
        plans[2].n_environment = 1;
        plans[2].environment = variables;
        for (size_t i = 0; i < ARRAY_SIZE(plans); i++)
                assert_null(pb_json_encode(&plans[i].base));
}

static void a_plan_larger_than_any_may_be_is_refused(void **state)
{
        static const char *const plans[] = {
                "{\"job\":"
                "\"jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj\"}",
                "{\"segments\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,"
                "29]}",
        };

        (void) state;
        for (size_t bytes = 0; bytes < sizeof(Subtask__Plan) + 64; bytes += 32)
                for (size_t i = 0; i < ARRAY_SIZE(plans); i++) {
                        json_t *object = json_loads(plans[i], 0, NULL);
                        struct pb_arena arena;
                        struct err err = { 0 };

                        pb_arena_init(&arena, bytes);
                        assert_null(pb_json_decode(object, &subtask__plan__descriptor, &arena, &err));
                        assert_int_equal(err.code, -ENOMEM);
                        json_decref(object);
                        pb_arena_free(&arena);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_plan_comes_back_as_it_was),
                cmocka_unit_test(what_is_left_out_or_null_has_its_default),
                cmocka_unit_test(a_field_of_another_kind_is_named),
                cmocka_unit_test(a_number_without_a_name_is_no_word),
                cmocka_unit_test(what_is_not_utf8_is_not_written),
                cmocka_unit_test(a_plan_larger_than_any_may_be_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
