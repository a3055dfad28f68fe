/* Orders of jobs, against the plainest possible oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "job/plan/job_order.h"

/* A job of the tests: its parents in one string, "a b". */
struct row {
        const char *name, *parents;
        int64_t priority;
        uint64_t chips, created_usec;
        enum job_order_state state;
};

#define ROWS_MAX 16

struct world {
        struct job_order_entry entries[ROWS_MAX];
        char parents[ROWS_MAX][4][JOB_NAME_BYTES];
        size_t count, order[ROWS_MAX];
        long ready;
};

static void judge(struct world *w, const struct row *rows, size_t count)
{
        *w = (struct world){ .count = count };
        for (size_t i = 0; i < count; i++) {
                char words[256], *rest = NULL;
                size_t n = 0;

                (void) text_copy(words, sizeof(words), rows[i].parents);
                for (char *word = strtok_r(words, " ", &rest); word != NULL;
                     word = strtok_r(NULL, " ", &rest))
                        (void) text_copy(w->parents[i][n++], JOB_NAME_BYTES, word);
                w->entries[i] =
                        (struct job_order_entry){ .name = rows[i].name,
                                                  .depends_on = (const char(*)[JOB_NAME_BYTES]) w->parents[i],
                                                  .dependency_count = n,
                                                  .priority = rows[i].priority,
                                                  .chips = rows[i].chips,
                                                  .created_usec = rows[i].created_usec,
                                                  .state = rows[i].state };
        }
        w->ready = job_order(w->entries, count, w->order);
}

static void assert_order(const struct world *w, const char *const *names, size_t count)
{
        assert_int_equal(w->ready, count);
        for (size_t i = 0; i < count; i++)
                assert_string_equal(w->entries[w->order[i]].name, names[i]);
}

static void priority_then_need_then_age_then_name(void **state)
{
        static const struct row rows[] = {
                { "late", "", 0, 2, 9, JOB_ORDER_WAITING },  { "b", "", 0, 2, 5, JOB_ORDER_WAITING },
                { "a", "", 0, 2, 5, JOB_ORDER_WAITING },     { "big", "", 0, 8, 9, JOB_ORDER_WAITING },
                { "first", "", 7, 1, 9, JOB_ORDER_WAITING }, { "last", "", -1, 64, 1, JOB_ORDER_WAITING },
                { "runs", "", 99, 1, 1, JOB_ORDER_RUNNING },
        };
        static const char *const expected[] = { "first", "big", "a", "b", "late", "last" };
        struct world w;

        (void) state;
        judge(&w, rows, ARRAY_SIZE(rows));
        assert_order(&w, expected, ARRAY_SIZE(expected));
        assert_int_equal(w.entries[6].verdict, JOB_ORDER_NOT_WAITING);
}

/* Jobs of two namespaces: the greedy one's priorities share out its own places alone. */
static void priority_counts_within_its_namespace(void **state)
{
        static const struct row rows[] = {
                { "a", "", 1000000000, 2, 9, JOB_ORDER_WAITING }, { "b", "", 0, 8, 2, JOB_ORDER_WAITING },
                { "c", "", 5, 2, 3, JOB_ORDER_WAITING },          { "d", "", 0, 4, 1, JOB_ORDER_WAITING },
                { "e", "", -7, 2, 1, JOB_ORDER_WAITING },
        };
        static const char *const namespaces[] = { "greedy", "greedy", "greedy", "modest", "modest" };
        static const char *const expected[] = { "a", "d", "e", "c",
                                                "b" }; /* greedy's places: 1st, 4th, 5th */
        struct world w;

        (void) state;
        judge(&w, rows, ARRAY_SIZE(rows));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                w.entries[i].namespace_ = namespaces[i];
        w.ready = job_order(w.entries, w.count, w.order);
        assert_order(&w, expected, ARRAY_SIZE(expected));
}

static void classes_order_between_namespaces(void **state)
{
        static const struct row rows[] = {
                { "big", "", 1000000000, 64, 1, JOB_ORDER_WAITING },
                { "gold", "", 0, 1, 9, JOB_ORDER_WAITING },
                { "wish", "", 9, 1, 9, JOB_ORDER_WAITING },
                { "tin", "", 0, 64, 1, JOB_ORDER_WAITING },
        };
        static const char *const namespaces[] = { "a", "b", "b", "a" };
        static const char *const expected[] = { "gold", "big", "wish", "tin" };
        struct world w;

        (void) state;
        judge(&w, rows, ARRAY_SIZE(rows));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                w.entries[i].namespace_ = namespaces[i];
        w.entries[1].class_value = 1000; /* also before a larger priority of its own namespace */
        w.entries[3].class_value = -1;
        w.ready = job_order(w.entries, w.count, w.order);
        assert_order(&w, expected, ARRAY_SIZE(expected));
}

static void an_emergency_goes_before_every_priority(void **state)
{
        static const struct row rows[] = { { "high", "", 1000, 1, 1, JOB_ORDER_WAITING },
                                           { "urgent", "", -1000, 1, 2, JOB_ORDER_WAITING } };
        struct world w;

        (void) state;
        judge(&w, rows, 2);
        assert_string_equal(w.entries[w.order[0]].name, "high");
        w.entries[1].urgency = JOB_URGENCY_EMERGENCY;
        assert_int_equal(job_order(w.entries, 2, w.order), 2);
        assert_string_equal(w.entries[w.order[0]].name, "urgent");
}

static void children_wait_for_all_parents(void **state)
{
        static const struct row rows[] = {
                { "done", "", 0, 1, 1, JOB_ORDER_SUCCEEDED },
                { "runs", "", 0, 1, 1, JOB_ORDER_RUNNING },
                { "ready", "done", 0, 1, 1, JOB_ORDER_WAITING },
                { "waits", "done runs", 9, 1, 1, JOB_ORDER_WAITING },
                { "later", "ready", 9, 1, 1, JOB_ORDER_WAITING },
                { "lonely", "done nobody", 0, 1, 1, JOB_ORDER_WAITING },
        };
        static const char *const expected[] = { "ready" };
        struct world w;

        (void) state;
        judge(&w, rows, ARRAY_SIZE(rows));
        assert_order(&w, expected, 1);
        assert_int_equal(w.entries[3].verdict, JOB_ORDER_PARENT_UNFINISHED);
        assert_int_equal(w.entries[3].parent, 1);
        assert_int_equal(w.entries[4].verdict, JOB_ORDER_PARENT_UNFINISHED);
        assert_int_equal(w.entries[5].verdict, JOB_ORDER_PARENT_UNKNOWN);
        assert_int_equal(w.entries[5].parent, 1);
}

static void a_failed_parent_fails_all_below_it(void **state)
{
        static const struct row rows[] = {
                { "grandchild", "child", 0, 1, 1, JOB_ORDER_WAITING },
                { "child", "ok failed", 0, 1, 1, JOB_ORDER_WAITING },
                { "ok", "", 0, 1, 1, JOB_ORDER_SUCCEEDED },
                { "failed", "", 0, 1, 1, JOB_ORDER_FAILED },
                { "other", "ok", 0, 1, 1, JOB_ORDER_WAITING },
        };
        static const char *const expected[] = { "other" };
        struct world w;

        (void) state;
        judge(&w, rows, ARRAY_SIZE(rows));
        assert_order(&w, expected, 1);
        assert_int_equal(w.entries[1].verdict, JOB_ORDER_PARENT_FAILED);
        assert_int_equal(w.entries[1].parent, 1);
        assert_int_equal(w.entries[0].verdict, JOB_ORDER_PARENT_FAILED);
}

static void a_circle_is_named_by_each_of_its_jobs(void **state)
{
        static const struct row rows[] = {
                { "a", "b", 0, 1, 1, JOB_ORDER_WAITING },
                { "b", "free c", 0, 1, 1, JOB_ORDER_WAITING },
                { "c", "a", 0, 1, 1, JOB_ORDER_WAITING },
                { "free", "", 0, 1, 1, JOB_ORDER_WAITING },
                { "below", "c", 0, 1, 1, JOB_ORDER_WAITING },
                { "self", "self", 0, 1, 1, JOB_ORDER_WAITING },
                { "other", "free a", 0, 1, 1, JOB_ORDER_WAITING },
        };
        static const char *const expected[] = { "free" };
        struct text circle = { 0 };
        struct world w;

        (void) state;
        judge(&w, rows, ARRAY_SIZE(rows));
        assert_order(&w, expected, 1);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(w.entries[i].verdict, JOB_ORDER_CYCLE);
        assert_int_equal(w.entries[1].parent, 1);
        assert_int_equal(w.entries[4].verdict, JOB_ORDER_PARENT_FAILED);
        assert_int_equal(w.entries[5].verdict, JOB_ORDER_CYCLE);
        assert_int_equal(w.entries[6].verdict, JOB_ORDER_PARENT_FAILED);
        job_order_cycle(w.entries, w.count, 1, &circle);
        assert_string_equal(circle.data, "b -> c -> a -> b");
        text_reset(&circle);
        job_order_cycle(w.entries, w.count, 5, &circle);
        assert_string_equal(circle.data, "self -> self");
        text_free(&circle);
}

/* a and b share a circle, b and c another one: each is told one that it is itself in. */
static void of_two_circles_everyone_is_told_its_own(void **state)
{
        static const struct row rows[] = { { "a", "b", 0, 1, 1, JOB_ORDER_WAITING },
                                           { "b", "a c", 0, 1, 1, JOB_ORDER_WAITING },
                                           { "c", "b", 0, 1, 1, JOB_ORDER_WAITING } };
        struct text circle = { 0 };
        struct world w;

        (void) state;
        judge(&w, rows, 3);
        job_order_cycle(w.entries, 3, 2, &circle);
        assert_string_equal(circle.data, "c -> b -> c");
        text_free(&circle);
}

static void namespaces_do_not_meet_and_names_are_unique(void **state)
{
        static const struct row rows[] = { { "a", "b", 0, 1, 1, JOB_ORDER_WAITING },
                                           { "b", "", 0, 1, 1, JOB_ORDER_FAILED },
                                           { "b", "", 0, 1, 1, JOB_ORDER_SUCCEEDED } };
        struct world w;

        (void) state;
        judge(&w, rows, 3);
        assert_int_equal(w.ready, -EEXIST);
        assert_string_equal(w.entries[w.order[0]].name, "b");
        w.entries[0].namespace_ = w.entries[2].namespace_ = "one";
        w.entries[1].namespace_ = "two";
        assert_int_equal(job_order(w.entries, 3, w.order), 1);
        assert_int_equal(job_order(w.entries, 0, w.order), 0);
}

/* Random graphs against the definition, worked out the slow way: reachability by squaring. */
#define NODES 9

static void random_graphs_are_judged_by_the_definition(void **state)
{
        static const char *const names[NODES] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8" };
        uint64_t seed = 1;

        (void) state;
        for (unsigned round = 0; round < 3000; round++) {
                bool edge[NODES][NODES] = { 0 }, way[NODES][NODES] = { 0 }, doomed[NODES] = { 0 };
                struct job_order_entry entries[NODES] = { 0 };
                char parents[NODES][NODES][JOB_NAME_BYTES];
                size_t order[NODES];

                for (size_t i = 0; i < NODES; i++) {
                        size_t state_of = random_below(&seed, 10);

                        entries[i].name = names[i];
                        entries[i].state = state_of < 7    ? JOB_ORDER_WAITING
                                           : state_of == 7 ? JOB_ORDER_RUNNING
                                           : state_of == 8 ? JOB_ORDER_SUCCEEDED
                                                           : JOB_ORDER_FAILED;
                        for (size_t k = 0; k < NODES; k++)
                                if (random_below(&seed, 100) < 5 + round % 20) {
                                        edge[i][k] = true;
                                        (void) text_copy(parents[i][entries[i].dependency_count++],
                                                         JOB_NAME_BYTES, names[k]);
                                }
                        entries[i].depends_on = (const char(*)[JOB_NAME_BYTES]) parents[i];
                }
                assert_true(job_order(entries, NODES, order) >= 0);
                for (size_t i = 0; i < NODES; i++)
                        for (size_t k = 0; k < NODES; k++)
                                way[i][k] = edge[i][k] && entries[i].state == JOB_ORDER_WAITING &&
                                            entries[k].state == JOB_ORDER_WAITING;
                for (size_t via = 0; via < NODES; via++)
                        for (size_t i = 0; i < NODES; i++)
                                for (size_t k = 0; k < NODES; k++)
                                        way[i][k] = way[i][k] || (way[i][via] && way[via][k]);
                for (size_t pass = 0; pass < NODES;
                     pass++) /* failure and circles pass down to the children */
                        for (size_t i = 0; i < NODES; i++)
                                for (size_t k = 0; k < NODES; k++)
                                        if (edge[i][k] && entries[i].state == JOB_ORDER_WAITING &&
                                            (entries[k].state == JOB_ORDER_FAILED ||
                                             (entries[k].state == JOB_ORDER_WAITING &&
                                              (way[k][k] || doomed[k]))))
                                                doomed[i] = true;
                for (size_t i = 0; i < NODES; i++) {
                        bool ready = true;

                        for (size_t k = 0; k < NODES; k++)
                                ready = ready && (!edge[i][k] || entries[k].state == JOB_ORDER_SUCCEEDED);
                        if (entries[i].state != JOB_ORDER_WAITING)
                                assert_int_equal(entries[i].verdict, JOB_ORDER_NOT_WAITING);
                        else if (way[i][i])
                                assert_int_equal(entries[i].verdict, JOB_ORDER_CYCLE);
                        else if (doomed[i])
                                assert_int_equal(entries[i].verdict, JOB_ORDER_PARENT_FAILED);
                        else
                                assert_int_equal(entries[i].verdict,
                                                 ready ? JOB_ORDER_READY : JOB_ORDER_PARENT_UNFINISHED);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(priority_then_need_then_age_then_name),
                cmocka_unit_test(priority_counts_within_its_namespace),
                cmocka_unit_test(classes_order_between_namespaces),
                cmocka_unit_test(an_emergency_goes_before_every_priority),
                cmocka_unit_test(children_wait_for_all_parents),
                cmocka_unit_test(a_failed_parent_fails_all_below_it),
                cmocka_unit_test(a_circle_is_named_by_each_of_its_jobs),
                cmocka_unit_test(of_two_circles_everyone_is_told_its_own),
                cmocka_unit_test(namespaces_do_not_meet_and_names_are_unique),
                cmocka_unit_test(random_graphs_are_judged_by_the_definition),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
