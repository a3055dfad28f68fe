/* Speeds of jobs: the fit, the store, the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "base/text.h"
#include "io/loop.h"
#include "io/private_folder.h"
#include "planner/shards/plan_shards.h"
#include "scheduler-extender/ledger/cluster.h"
#include "store/speed_store.h"

static double noise(uint64_t *seed, double size) /* -size .. size */
{
        return size * (2 * (double) random_below(seed, 1000001) / 1e6 - 1);
}

static void points_on_a_line_are_that_line(void **state)
{
        struct speed_fit fit = { 0 };
        double alpha = 0, beta = 0;

        (void) state;
        assert_false(speed_fit_line(&fit, &alpha, &beta));
        for (unsigned b = 32; b <= 256; b *= 2)
                assert_true(speed_fit_add(&fit, b, 3.5 + 0.25 * b, 1));
        assert_true(speed_fit_line(&fit, &alpha, &beta));
        assert_true(fabs(alpha - 3.5) < 1e-9 && fabs(beta - 0.25) < 1e-9);
        assert_true(speed_fit_valid(&fit));
}

/* The definition: the least sum of squared relative errors over alpha >= 0, beta >= 0, found by looking
 * everywhere. */
static double cost(const double (*points)[2], size_t count, double alpha, double beta)
{
        double sum = 0;

        for (size_t i = 0; i < count; i++)
                sum += pow((alpha + beta * points[i][0]) / points[i][1] - 1, 2);
        return sum;
}

static void no_other_line_is_closer(void **state)
{
        uint64_t seed = 7;

        (void) state;
        for (unsigned round = 0; round < 300; round++) {
                size_t count = 2 + random_below(&seed, 5);
                double points[8][2], alpha = 0, beta = 0, best;
                struct speed_fit fit = { 0 };

                for (size_t i = 0; i < count; i++) {
                        points[i][0] = (double) (1 + random_below(&seed, 500));
                        points[i][1] = (round % 3 == 0 ? 0 : 5 + noise(&seed, 5)) + 0.2 * points[i][0] + 0.5 +
                                       (round % 5 == 0 ? noise(&seed, 0.4) * points[i][0] * 0.5 : 0);
                        points[i][1] = fmax(points[i][1], 0.01);
                        fit.one += pow(points[i][1], -2);
                        fit.batch += points[i][0] * pow(points[i][1], -2);
                        fit.batch_batch += pow(points[i][0] / points[i][1], 2);
                        fit.ms += 1 / points[i][1];
                        fit.batch_ms += points[i][0] / points[i][1];
                        fit.weight += 1;
                }
                assert_true(speed_fit_line(&fit, &alpha, &beta));
                best = cost(points, count, alpha, beta);
                for (double a = -2; a <= 2; a += 0.25)
                        for (double b = -2; b <= 2; b += 0.25)
                                for (double step = 1; step > 1e-4; step /= 10) {
                                        double other_alpha = alpha + a * step,
                                               other_beta = beta * (1 + b * step);

                                        if (other_alpha >= 0 && other_beta > 0)
                                                assert_true(cost(points, count, other_alpha, other_beta) >=
                                                            best - 1e-6 - 1e-6 * best);
                                }
        }
}

static void a_bad_step_counts_little(void **state)
{
        struct speed_fit fit = { 0 };
        double alpha = 0, beta = 0;
        uint64_t seed = 3;

        (void) state;
        for (unsigned i = 0; i < 400; i++) {
                double b = (double) (16u << (i % 4)), ms = (2 + 0.1 * b) * (1 + noise(&seed, 0.03));

                if (i % 10 == 9)
                        ms *= 10; /* a tenth of what is seen is nonsense */
                assert_true(speed_fit_add(&fit, b, ms, 1));
        }
        assert_true(speed_fit_line(&fit, &alpha, &beta));
        for (double b = 16; b <= 128; b *= 2)
                assert_true(fabs((alpha + beta * b) / (2 + 0.1 * b) - 1) < 0.05);
        assert_true(fit.weight <= SPEED_FIT_WEIGHT_MAX + 1e-9);
}

static void a_device_that_became_slower_is_followed(void **state)
{
        struct speed_fit fit = { 0 };
        double alpha = 0, beta = 0;
        unsigned runs = 0;

        (void) state;
        for (unsigned b = 32; b <= 256; b *= 2)
                assert_true(speed_fit_add(&fit, b, 1 + 0.1 * b, 4));
        do { /* half as fast from now on, seen at one batch size */
                assert_true(speed_fit_add(&fit, 128, 2 * (1 + 0.1 * 128), 4));
                assert_true(speed_fit_line(&fit, &alpha, &beta));
                assert_true(alpha >= 0 && beta > 0);
        } while (++runs < 200 && fabs((alpha + beta * 128) / 27.6 - 1) > 0.1);
        print_message("# followed after %u runs\n", runs);
        assert_true(runs > 2 && runs < 30);
}

static void one_batch_size_is_a_line_through_the_origin(void **state)
{
        struct speed_fit fit = { 0 };
        double alpha = 1, beta = 0;

        (void) state;
        for (unsigned i = 0; i < 50; i++)
                assert_true(speed_fit_add(&fit, 64, 8, 1));
        assert_true(speed_fit_line(&fit, &alpha, &beta));
        assert_true(alpha == 0 && fabs(beta - 0.125) < 1e-12);
        assert_false(speed_fit_add(&fit, 0, 8, 1));
        assert_false(speed_fit_add(&fit, 64, 0, 1));
        assert_false(speed_fit_add(&fit, 64, NAN, 1));
        assert_false(speed_fit_add(&fit, 64, 8, 0));
        assert_false(speed_fit_add(&fit, INFINITY, 8, 1));
}

static void a_table_is_read_and_refined(void **state)
{
        const char *text =
                "{\"kind\":\"SpeedTable\",\"speeds\":{\"aa/mlp/H100 NVL/x\":{\"alpha_ms\":1,\"beta_ms\":0.5},"
                "\"-/mlp/Old\":{\"alpha_ms\":2,\"beta_ms\":3},\"bb/mlp/Old\":{\"alpha_ms\":0,\"beta_ms\":9,"
                "\"updated\":\"2026-01-01T00:00:00Z\"},\"no\":{\"alpha_ms\":1,\"beta_ms\":1},\"a/b/\":{},"
                "\"cc/mlp/Bad\":{\"alpha_ms\":-1,\"beta_ms\":1},\"cc/mlp/"
                "Bad2\":{\"alpha_ms\":1,\"beta_ms\":\"x\"}}}";
        struct speed_table_observation seen = { .program = "aa",
                                                .model = "mlp",
                                                .device = "H100 NVL/x",
                                                .batch = 100,
                                                .step_ms = 102,
                                                .weight = 30 };
        json_t *object = json_loads(text, 0, NULL), *again;
        struct speed_table table;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(speed_table_decode(object, &table, &err), 0);
        assert_int_equal(table.count, 3);
        assert_true(speed_table_find(&table, "aa", "mlp", "H100 NVL/x")->beta_ms == 0.5);
        assert_true(speed_table_find(&table, NULL, "mlp", "Old")->beta_ms == 9); /* the one updated last */
        assert_true(speed_table_find(&table, "zz", "mlp", "Old")->beta_ms ==
                    3); /* of a program that is not known */
        assert_null(speed_table_find(&table, "aa", "cnn", "H100 NVL/x"));
        speed_table_free(&table);

        again = speed_table_refine(object, &seen, 1, 5000000, &err);
        assert_int_equal(speed_table_decode(again, &table, &err), 0);
        assert_int_equal(table.count, 3);
        {
                const struct speed_table_row *row = speed_table_find(&table, "aa", "mlp", "H100 NVL/x");
                double at_100 = row->alpha_ms + row->beta_ms * 100;

                assert_true(at_100 > 52 &&
                            at_100 < 102); /* between what was written by hand and what is seen */
                assert_int_equal(row->updated_usec, 5000000);
        }
        assert_string_equal(table.rows[2].device, "Old"); /* sorted by update: 2026 is last */
        speed_table_free(&table);
        json_decref(again);
        json_decref(object);

        object = json_pack("{s:s}", "kind", "Pod");
        assert_null(speed_table_refine(object, &seen, 1, 1, &err));
        assert_int_equal(speed_table_decode(object, &table, &err), -EBADMSG);
        json_decref(object);
}

static void a_table_has_an_end(void **state)
{
        json_t *object = NULL;

        (void) state;
        for (unsigned i = 0; i < 3; i++) {
                static struct speed_table_observation seen[2000];
                static char devices[2000][16];
                json_t *next;

                for (unsigned k = 0; k < 2000; k++) {
                        (void) text_format(devices[k], sizeof(devices[k]), "d%u-%u", i, k);
                        seen[k] = (struct speed_table_observation){
                                .model = "m", .device = devices[k], .batch = 1, .step_ms = 1, .weight = 1
                        };
                }
                next = speed_table_refine(object, seen, 2000, (i + 1) * UINT64_C(1000000), NULL);
                json_decref(object);
                object = next;
        }
        assert_int_equal(json_object_size(json_object_get(object, "speeds")), SPEED_TABLE_ROWS_MAX);
        assert_non_null(json_object_get(json_object_get(object, "speeds"), "-/m/d2-1999"));
        json_decref(object);
}

static void a_plan_takes_its_speeds_from_the_table(void **state)
{
        json_t *table_json = json_loads("{\"speeds\":{\"-/mlp/A\":{\"alpha_ms\":2,\"beta_ms\":0.5},"
                                        "\"-/mlp/A (shared by 2)\":{\"alpha_ms\":4,\"beta_ms\":1}}}",
                                        0, NULL);
        json_t *json = json_loads(
                "{\"batch\":10,\"groups\":[{\"name\":\"g\",\"workers\":[{\"name\":\"a\",\"device\":\"A\"},"
                "{\"name\":\"b\",\"device\":\"A\",\"shared_by\":2},{\"name\":\"c\",\"device\":\"B\"},"
                "{\"name\":\"d\",\"speed\":100}]}]}",
                0, NULL);
        static const char *const sources[] = { "measured", "measured", "assumed", "measured" };
        struct plan_shards_request request;
        struct plan_speeds_known known = { .chip_count = 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(speed_table_decode(table_json, &known.table, &err), 0);
        assert_int_equal(plan_shards_request_decode(json, NULL, NULL, &request, &err), -EBADMSG);
        assert_string_equal(err.msg,
                            "groups[0].workers[0].device: has its speed in a store; give --store, or "
                            "\"speed\" (samples a second)");
        assert_int_equal(plan_shards_request_decode(json, &known, "mlp", &request, &err), 0);
        for (size_t i = 0; i < 4; i++)
                assert_string_equal(request.workers[i].source, sources[i]);
        assert_true(request.workers[1].beta_ms == 1);
        assert_true(request.workers[2].alpha_ms == 2);
        assert_true(fabs(request.workers[2].beta_ms - 11.5 / 3) < 1e-12);
        plan_shards_request_free(&request);
        plan_speeds_known_free(&known);
        json_decref(json);
        json_decref(table_json);
}

#define WRITERS 4
#define EACH    12

static void writers_lose_nothing_of_each_other(void **state)
{
        char folder[] = "/tmp/remuda-speeds-XXXXXX", spec[64];
        pid_t writers[WRITERS];
        struct speed_table table;
        struct err err = { 0 };

        (void) state;
        assert_non_null(mkdtemp(folder));
        (void) text_format(spec, sizeof(spec), "dir:%s", folder);
        assert_int_equal(speed_store_read_now(spec, NULL, &table, &err), 0); /* none yet: empty */
        assert_int_equal(table.count, 0);
        speed_table_free(&table);
        for (int w = 0; w < WRITERS; w++) {
                writers[w] = fork();
                if (writers[w] != 0)
                        continue;
                for (int i = 0; i < EACH; i++) {
                        double b = 1 + i;
                        struct speed_table_observation seen = { .program = "p",
                                                                .model = "mlp",
                                                                .device = "d",
                                                                .batch = b,
                                                                .step_ms = 5 + b,
                                                                .weight = 1 };

                        if (speed_store_refine_now(spec, NULL, &seen, 1, &err) < 0)
                                _exit(1);
                }
                _exit(0);
        }
        for (int w = 0; w < WRITERS; w++) {
                int status = 1;

                assert_int_equal(waitpid(writers[w], &status, 0), writers[w]);
                assert_int_equal(status, 0);
        }
        if (speed_store_read_now(spec, NULL, &table, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(table.count, 1);
        assert_true(fabs(table.rows[0].fit.weight - WRITERS * EACH) < 1e-9);
        assert_true(fabs(table.rows[0].alpha_ms - 5) < 1e-6 && fabs(table.rows[0].beta_ms - 1) < 1e-6);
        speed_table_free(&table);
        private_folder_remove(folder, "remuda-speeds-");
        assert_int_equal(speed_store_read_now(spec, NULL, &table, &err), -ENOENT);
        assert_int_equal(speed_store_read_now("file:x", NULL, &table, &err), -EINVAL);
}

/* Two files of few rows each may be too many together. */
static void of_several_tables_the_newest_rows_are_kept(void **state)
{
        char folder[] = "/tmp/remuda-speeds-XXXXXX", spec[64], path[80];
        struct speed_table table;
        struct err err = { 0 };

        (void) state;
        assert_non_null(mkdtemp(folder));
        for (int file = 0; file < 2; file++) {
                (void) text_format(path, sizeof(path), "%s/t%d.speedtable.json", folder, file);
                FILE *f = fopen(path, "we");
                assert_non_null(f);
                (void) fprintf(f,
                               "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"SpeedTable\",\"metadata\":"
                               "{\"name\":\"t%d\"},\"speeds\":{",
                               file);
                for (int i = 0; i < 1100; i++)
                        (void) fprintf(f,
                                       "%s\"-/m/d%d-%d\":{\"alpha_ms\":1,\"beta_ms\":1,\"updated\":"
                                       "\"2026-01-01T00:%02d:%02dZ\"}",
                                       i == 0 ? "" : ",", file, i, 2 * (i / 60) + file, i % 60);
                (void) fputs("}}", f);
                assert_int_equal(fclose(f), 0);
        }
        (void) text_format(spec, sizeof(spec), "dir:%s", folder);
        if (speed_store_read_now(spec, NULL, &table, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(table.count, SPEED_TABLE_ROWS_MAX);
        assert_non_null(strstr(table.trouble, "it has 152 rows more than 2048; the oldest"));
        assert_non_null(speed_table_find(&table, NULL, "m", "d0-1099"));
        assert_non_null(speed_table_find(&table, NULL, "m", "d1-1099"));
        assert_null(speed_table_find(&table, NULL, "m", "d0-0"));
        assert_null(speed_table_find(&table, NULL, "m", "d1-0"));
        speed_table_free(&table);
        private_folder_remove(folder, "remuda-speeds-");
}

struct told {
        sd_event *loop;
        struct cluster *cluster;
        unsigned sentences;
        int written; /* stands in the table */
        char last[300];
};

/* What comes first is a row that makes no sense, then two refinements beside it, then another such row. */
static json_t *write_row(void *userdata, const json_t *object, struct err *err)
{
        const struct told *told = userdata;

        (void) object;
        (void) err;
        return json_pack("{s:s, s:s, s:{s:s}, s:{s:{s:i}, s:{s:f, s:f, s:i}}}", "apiVersion",
                         "remuda.dev/v1alpha1", "kind", "SpeedTable", "metadata", "name", SPEED_TABLE_NAME,
                         "speeds", told->written < 3 ? "a/bad/row" : "another/bad/row", "beta_ms", -1,
                         "p/mlp/d", "alpha_ms", 1.0, "beta_ms", 1.0, "written", told->written);
}

static void note_sentence(void *userdata, const char *sentence)
{
        struct told *told = userdata;

        told->sentences++;
        (void) text_copy(told->last, sizeof(told->last), sentence);
}

static void note_table(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct told *told = userdata;
        const json_t *row = json_object_get(json_object_get(object, "speeds"), "p/mlp/d");

        (void) key;
        if (kind != STORE_SPEED_TABLE ||
            json_integer_value(json_object_get(row, "written")) != told->written || row == NULL)
                return;
        assert_int_equal(told->sentences, told->written < 3 ? 1 : 2);
        if (told->written++ == 3)
                (void) sd_event_exit(told->loop, 0);
        else
                store_change(cluster_store(told->cluster), STORE_SPEED_TABLE, NULL, SPEED_TABLE_NAME,
                             write_row, NULL, told);
}

static void give_up(void *userdata)
{
        (void) sd_event_exit(((struct told *) userdata)->loop, 1);
}

static void what_is_wrong_with_a_table_is_said_once(void **state)
{
        char folder[] = "/tmp/remuda-speeds-XXXXXX", spec[64];
        struct told told = { .written = 0 };
        struct cluster_options options = {
                .store = spec, .trouble = note_sentence, .observed = note_table, .userdata = &told
        };
        sd_event_source *timer = NULL;
        struct err err = { 0 };

        (void) state;
        assert_non_null(mkdtemp(folder));
        (void) text_format(spec, sizeof(spec), "dir:%s", folder);
        assert_int_equal(sd_event_new(&told.loop), 0);
        if (cluster_open(told.loop, &options, &told.cluster, &err) < 0)
                fail_msg("%s", err.msg);
        store_change(cluster_store(told.cluster), STORE_SPEED_TABLE, NULL, SPEED_TABLE_NAME, write_row, NULL,
                     &told);
        assert_true(loop_after(told.loop, 30000000, give_up, &told, &timer) >= 0);
        assert_int_equal(sd_event_loop(told.loop), 0);
        assert_non_null(strstr(told.last, "another/bad/row"));
        cluster_close(told.cluster);
        sd_event_source_disable_unref(timer);
        sd_event_unref(told.loop);
        private_folder_remove(folder, "remuda-speeds-");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(points_on_a_line_are_that_line),
                cmocka_unit_test(no_other_line_is_closer),
                cmocka_unit_test(a_bad_step_counts_little),
                cmocka_unit_test(a_device_that_became_slower_is_followed),
                cmocka_unit_test(one_batch_size_is_a_line_through_the_origin),
                cmocka_unit_test(a_table_is_read_and_refined),
                cmocka_unit_test(a_table_has_an_end),
                cmocka_unit_test(a_plan_takes_its_speeds_from_the_table),
                cmocka_unit_test(writers_lose_nothing_of_each_other),
                cmocka_unit_test(of_several_tables_the_newest_rows_are_kept),
                cmocka_unit_test(what_is_wrong_with_a_table_is_said_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
