/* Bundle: files have limits and clean names, what has no room is named; what is kept of objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/bundle/bundle.h"
#include "cli/bundle/bundle_prune.h"

static const char *why(const struct bundle *bundle, size_t i)
{
        return json_string_value(json_object_get(json_array_get(bundle->missing, i), "why"));
}

static void names_are_cleaned_and_there_once(void **state)
{
        struct bundle bundle = { 0 };

        (void) state;
        bundle_add_bytes(&bundle, "logs", BUNDLE_PARTS("../..", "a b", "txt"), "x", 1);
        assert_string_equal(bundle.files[0].name, "logs/_._...a_b.txt");
        bundle_add_bytes(&bundle, "logs", BUNDLE_PARTS("../..", "a_b", "txt"), "y", 1);
        bundle_add_json(&bundle, "logs", BUNDLE_PARTS("../..", "a/b", "txt"), json_true());
        assert_int_equal(bundle.file_count, 1);
        assert_int_equal(json_array_size(bundle.missing), 2);
        assert_string_equal(why(&bundle, 0), "there are two of this name");
        bundle_free(&bundle);
}

/* As of a namespace with 40 and a job with 55 characters. */
static void a_long_name_costs_no_file(void **state)
{
        char long_name[400], deep[131];
        struct bundle bundle = { 0 };
        struct text archive = { 0 };
        struct err err = { 0 };

        (void) state;
        memset(long_name, 'n', sizeof(long_name) - 1);
        long_name[sizeof(long_name) - 1] = '\0';
        memset(deep, 'd', sizeof(deep) - 1);
        deep[sizeof(deep) - 1] = '\0';
        bundle_add_bytes(&bundle, "explain", BUNDLE_PARTS(long_name, "json"), "x", 1);
        bundle_add_bytes(&bundle, "explain", BUNDLE_PARTS(long_name, "a", "json"), "x", 1);
        bundle_add_bytes(&bundle, deep, BUNDLE_PARTS(long_name), "x", 1); /* of no archive */
        bundle_add_bytes(&bundle, "logs", BUNDLE_PARTS("short", "txt"), "x", 1);
        assert_int_equal(bundle.file_count, 4);
        assert_int_equal(json_array_size(bundle.missing), 0);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(strlen(bundle.files[i].name), strlen("explain/") + 100);
                assert_true(text_ends_with(bundle.files[i].name, ".json"));
        }
        assert_string_not_equal(bundle.files[0].name, bundle.files[1].name);
        assert_int_equal(bundle_pack(&bundle, UINT64_C(1795852800000000), &archive, &err), 0);
        assert_true(archive.size_bytes > 0);
        assert_int_equal(json_array_size(bundle.missing), 1);
        assert_non_null(strstr(why(&bundle, 0), "too long"));
        text_free(&archive);
        bundle_free(&bundle);
}

static void what_has_no_room_is_missing(void **state)
{
        CLEANUP(free_p) char *much = calloc(1, BUNDLE_FILE_BYTES + 1);
        struct bundle bundle = { 0 };
        char name[] = "0";

        (void) state;
        bundle_add_bytes(&bundle, "a", BUNDLE_PARTS("large"), much, BUNDLE_FILE_BYTES + 1);
        assert_int_equal(bundle.file_count, 0);
        for (size_t i = 0; i <= BUNDLE_BYTES / BUNDLE_FILE_BYTES; i++, name[0]++)
                bundle_add_bytes(&bundle, "a", BUNDLE_PARTS(name), much, BUNDLE_FILE_BYTES);
        assert_int_equal(bundle.file_count, BUNDLE_BYTES / BUNDLE_FILE_BYTES);
        assert_int_equal(json_array_size(bundle.missing), 2);
        assert_true(text_starts_with(why(&bundle, 1), "no room"));
        bundle_free(&bundle);
}

static void a_reason_is_a_line_of_ascii(void **state)
{
        struct bundle bundle = { 0 };

        (void) state;
        bundle_miss(&bundle, "a\n\xff", "b\n%s", "\xc3\xa4\x1b[2J");
        assert_string_equal(why(&bundle, 0), "b???\x3f[2J");
        bundle_free(&bundle);
}

static json_t *pruned(json_t *(*prune)(const json_t *object), const char *text)
{
        json_t *object = json_loads(text, JSON_DECODE_ANY, NULL), *copy;

        assert_non_null(object);
        copy = prune(object);
        assert_non_null(copy);
        json_decref(object);
        return copy;
}

static void of_a_pod_nothing_says_how_it_runs(void **state)
{
        json_t *pod = pruned(
                bundle_prune_pod,
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"annotations\":{\"a\":\"S\",\"remuda.dev/"
                "b\":\"c\"},"
                "\"managedFields\":[\"S\"]},\"spec\":{\"nodeName\":\"n\",\"volumes\":[\"S\"],\"containers\":["
                "{\"name\":"
                "\"c\",\"env\":[{\"name\":\"X\",\"value\":\"S\"}],\"args\":[\"S\"],\"command\":[\"S\"],"
                "\"livenessProbe\":\"S\"}]},\"status\":{\"phase\":\"Running\",\"hostIP\":\"S\"}}");
        CLEANUP(free_p) char *text = json_dumps(pod, JSON_COMPACT);

        (void) state;
        assert_null(strstr(text, "\"S\""));
        assert_non_null(strstr(text, "\"remuda.dev/b\":\"c\""));
        assert_non_null(strstr(text, "\"phase\":\"Running\""));
        json_decref(pod);
}

static void of_a_jobs_pod_the_last_words_are_left_out(void **state)
{
        static const char text[] =
                "{\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"state\":{\"terminated\":{"
                "\"exitCode\":1,\"message\":\"LAST\"}},\"lastState\":{\"terminated\":{\"exitCode\":2,"
                "\"message\":\"LAST\"}}},{\"state\":{\"waiting\":{\"message\":\"no image\"}}},7],"
                "\"initContainerStatuses\":[{\"state\":{\"terminated\":{\"message\":\"LAST\"}}}]}}";
        json_t *without = pruned(bundle_prune_job_pod, text), *whole = pruned(bundle_prune_pod, text);
        CLEANUP(free_p) char *left = json_dumps(without, JSON_COMPACT);
        CLEANUP(free_p) char *all = json_dumps(whole, JSON_COMPACT);

        (void) state;
        assert_null(strstr(left, "LAST"));
        assert_non_null(strstr(left, "\"exitCode\":2,\"message\":\"" BUNDLE_PRUNE_LEFT_OUT "\""));
        assert_non_null(strstr(left, "no image"));
        assert_non_null(strstr(all, "LAST"));
        json_decref(without);
        json_decref(whole);
}

static void of_a_job_all_but_variables_is_kept(void **state)
{
        json_t *job =
                pruned(bundle_prune_job,
                       "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"workers\":[{\"chips\":8,\"template\":{"
                       "\"env\":[{\"name\":\"X\",\"value\":\"S\"}],\"envFrom\":[\"S\"],\"shm\":1}}]},"
                       "\"status\":{\"phase\":\"Pending\"}}");
        CLEANUP(free_p) char *text = json_dumps(job, JSON_COMPACT);

        (void) state;
        assert_string_equal(text, "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"workers\":[{\"chips\":8,"
                                  "\"template\":{\"shm\":1}}]},"
                                  "\"status\":{\"phase\":\"Pending\"}}");
        json_decref(job);
}

static void objects_that_are_none_are_taken_as_they_are(void **state)
{
        static const char *const texts[] = { "5",
                                             "null",
                                             "[]",
                                             "{}",
                                             "{\"metadata\":7,\"spec\":[],\"status\":\"x\"}",
                                             "{\"spec\":{\"containers\":{\"a\":1}}}" };
        json_t *(*const prunes[])(const json_t *) = { bundle_prune_pod,      bundle_prune_node,
                                                      bundle_prune_job_pod,  bundle_prune_job,
                                                      bundle_prune_workload, bundle_prune_event,
                                                      bundle_prune_other };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                for (size_t k = 0; k < ARRAY_SIZE(prunes); k++)
                        json_decref(pruned(prunes[k], texts[i]));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_cleaned_and_there_once),
                cmocka_unit_test(a_long_name_costs_no_file),
                cmocka_unit_test(what_has_no_room_is_missing),
                cmocka_unit_test(a_reason_is_a_line_of_ascii),
                cmocka_unit_test(of_a_pod_nothing_says_how_it_runs),
                cmocka_unit_test(of_a_jobs_pod_the_last_words_are_left_out),
                cmocka_unit_test(of_a_job_all_but_variables_is_kept),
                cmocka_unit_test(objects_that_are_none_are_taken_as_they_are),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
