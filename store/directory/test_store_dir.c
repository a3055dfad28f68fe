/* What a store of files reads beside kubectl, editors and crashes: whole files, the later of two, a directory
 * that goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "tests/support/dir_store.h"
#include "tests/support/patience.h"
#include "tests/support/refused_timers.h"

static void files_of_every_form_are_read(void **state)
{
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_write(f, "pods.json",
                        "{\"apiVersion\":\"v1\",\"items\":[" DIR_STORE_POD_A "," DIR_STORE_POD_B
                        "],\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"\"}}");
        dir_store_write(f, "nodes.json",
                        "{\"kind\":\"NodeList\",\"items\":[{\"metadata\":{\"name\":\"n1\"}}]}");
        dir_store_write(f, "n1.nodeaccelerators.json",
                        "{\"kind\":\"NodeAccelerators\",\"metadata\":{\"name\":\"n1\"},\"status\":{}}");
        dir_store_write(
                f, "job.yaml",
                "apiVersion: remuda.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: fashion}\nspec: "
                "{epochs: 3}\n---\nkind: SpeedTable\nmetadata: {name: speeds}\n");
        dir_store_write(
                f, "list.yaml",
                "kind: List\nitems:\n- kind: PriorityClass\n  metadata: {name: high}\n- kind: Widget\n "
                " metadata: {name: other}\n");
        dir_store_write(f, ".hidden.json", DIR_STORE_POD_A "x");
        dir_store_write(f, "README.txt", "nothing");
        dir_store_open(f);
        assert_string_equal(dir_store_field(f, "Pod default/a", "metadata/uid"), "u-a");
        assert_string_equal(dir_store_field(f, "Pod default/b", "spec/nodeName"), "n9");
        assert_string_equal(dir_store_field(f, "Pod default/b", "metadata/namespace"),
                            "default"); /* filled in */
        assert_true(dir_store_has(f, "Node n1"));
        assert_true(dir_store_has(f, "NodeAccelerators n1"));
        assert_true(dir_store_has(f, "TrainingJob default/fashion"));
        assert_true(dir_store_has(f, "SpeedTable speeds"));
        assert_true(dir_store_has(f, "PriorityClass high"));
        assert_int_equal(json_object_size(f->objects), 7);
        assert_int_equal(json_array_size(f->troubles), 0);
        assert_true(f->synced == (1u << STORE_KIND_COUNT) - 1);
        assert_true(store_age_usec(f->store, STORE_ALL_KINDS, loop_now_usec(f->loop)) == 0);
        assert_true(store_inventory_mtime_usec(f->store, "n1") > 0);
        assert_true(store_inventory_mtime_usec(f->store, "n2") == 0);
        dir_store_free(f);
}

static void changes_are_seen_and_nothing_else_is_delivered(void **state)
{
        struct dir_store *f = dir_store_new();
        char old[200], new[200];

        (void) state;
        dir_store_write(f, "pods.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_A "," DIR_STORE_POD_B "]}");
        dir_store_open(f);
        assert_int_equal(f->deliveries, 2);
        dir_store_write(f, "pods.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_B "," DIR_STORE_POD_A
                        "]}"); /* another order, nothing new */
        dir_store_settle(f);
        assert_int_equal(f->deliveries, 2);
        dir_store_write(f, "pods.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_B
                        ",{\"kind\":\"Pod\",\"metadata\":{\"name\":\"c\"}}]}");
        dir_store_settle(f);
        assert_int_equal(f->deliveries, 4); /* c came, a went */
        assert_false(dir_store_has(f, "Pod default/a"));
        assert_true(dir_store_has(f, "Pod default/c"));
        (void) text_format(old, sizeof(old), "%s/pods.json", f->path);
        (void) text_format(new, sizeof(new), "%s/renamed.json", f->path);
        assert_int_equal(rename(old, new), 0); /* moved, not vanished in between */
        dir_store_settle(f);
        assert_int_equal(json_object_size(f->objects), 2);
        for (unsigned before = f->deliveries; f->deliveries > before;)
                fail();
        dir_store_remove(f, "renamed.json");
        dir_store_settle(f);
        assert_int_equal(json_object_size(f->objects), 0);
        dir_store_free(f);
}

static void half_written_files_change_nothing(void **state)
{
        static const char *const broken[] = {
                "",
                "{",
                "{\"kind\":\"List\",\"items\":[",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"",
                "nonsense",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}} trailing",
                "{\"kind\":\"Pod\"}",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\"spec\":nul}",
                "[]",
                "{}",
                "{\"kind\":\"List\",\"items\":[{\"kind\":\"Pod\",\"metadata\":{\"name\":7}}]}",
        };
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_write(f, "b.yaml", "kind: Pod\nmetadata: {name: y}\n");
        dir_store_open(f);
        for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
                (void) json_array_clear(f->troubles);
                dir_store_write(f, "a.json", broken[i]);
                dir_store_settle(f);
                if (!dir_store_has(f, "Pod default/a") || !dir_store_said(f, "a.json"))
                        fail_msg("after '%s': %s", broken[i],
                                 dir_store_has(f, "Pod default/a") ? "nothing was said" : "lost");
        }
        dir_store_write(f, "b.yaml", "kind: Pod\nmetadata: {name: 'y\n");
        dir_store_settle(f);
        assert_true(dir_store_has(f, "Pod default/y"));
        assert_true(dir_store_said(f, "b.yaml"));
        dir_store_write(f, "a.json", DIR_STORE_POD_B);
        dir_store_settle(f);
        assert_false(dir_store_has(f, "Pod default/a")); /* whole again: now it counts */
        assert_true(dir_store_has(f, "Pod default/b"));
        dir_store_free(f);
}

static void of_two_files_the_later_counts(void **state)
{
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_write(f, "old.json", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"old\"}}");
        dir_store_run_for(f, 20000);
        dir_store_write(f, "new.json", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"new\"}}");
        dir_store_open(f);
        assert_string_equal(dir_store_field(f, "Node n", "metadata/uid"), "new");
        assert_true(dir_store_said(f, "the later modified one, 'new.json', counts"));
        dir_store_write(f, "old.json",
                        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"older no more\"}}");
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "Node n", "metadata/uid"), "older no more");
        dir_store_remove(f, "old.json");
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "Node n", "metadata/uid"), "new");
        dir_store_write(f, "third.json",
                        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"uid\":\"third\"}}");
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "Node n", "metadata/uid"), "third");
        dir_store_remove(f, "new.json"); /* the one that does not count */
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "Node n", "metadata/uid"), "third");
        dir_store_remove(f, "third.json");
        dir_store_settle(f);
        assert_false(dir_store_has(f, "Node n"));
        dir_store_free(f);
}

/* As an API server has it: what follows an object under its name does not inherit what was known of it. */
static void of_another_uid_the_old_one_goes_first(void **state)
{
        static const struct {
                const char *uid;
                unsigned told;
        } then[] = { { ",\"uid\":\"one\"", 1 },
                     { ",\"uid\":\"one\",\"labels\":{}", 1 },
                     { ",\"uid\":\"two\"", 2 /* gone, new */ },
                     { "", 1 },
                     { ",\"uid\":\"two\"", 1 },
                     { ",\"uid\":\"one\"", 2 } };
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_open(f);
        for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
                unsigned before = f->deliveries;
                char job[200];

                (void) text_format(job, sizeof(job),
                                   "{\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"j\"%s}}", then[i].uid);
                dir_store_write(f, "j.json", job);
                dir_store_settle(f);
                assert_int_equal(f->deliveries - before, then[i].told);
                assert_true(dir_store_has(f, "TrainingJob default/j"));
        }
        dir_store_free(f);
}

static void wait_for_word(struct dir_store *f, const char *words)
{
        uint64_t until = loop_now_usec(f->loop) + patience_usec();

        while (!dir_store_said(f, words) && loop_now_usec(f->loop) < until)
                dir_store_run_for(f, 50000);
        assert_true(dir_store_said(f, words));
}

static void a_directory_that_is_gone_grows_old_and_comes_back(void **state)
{
        struct dir_store *f = dir_store_new();
        char away[80], left[96];

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_open(f);
        (void) text_format(away, sizeof(away), "%s.away", f->path);
        timers_refused = true; /* that it comes back is seen all the same */
        assert_int_equal(rename(f->path, away), 0);
        wait_for_word(f, "is gone");
        timers_refused = false;
        assert_true(store_age_usec(f->store, STORE_ALL_KINDS, loop_now_usec(f->loop) + 5000000) >= 5000000);
        assert_true(dir_store_has(f, "Pod default/a"));
        assert_int_equal(mkdir(f->path, 0755), 0);
        dir_store_write(f, "b.json", DIR_STORE_POD_B);
        wait_for_word(f, "is back");
        dir_store_settle(f);
        assert_true(store_age_usec(f->store, STORE_ALL_KINDS, loop_now_usec(f->loop)) == 0);
        assert_false(dir_store_has(f, "Pod default/a"));
        assert_true(dir_store_has(f, "Pod default/b"));
        (void) text_format(left, sizeof(left), "%s/a.json", away);
        assert_int_equal(unlink(left), 0);
        assert_int_equal(rmdir(away), 0);
        dir_store_free(f);
}

static void bad_specs_are_refused(void **state)
{
        static const struct {
                const char *spec;
                int result;
        } specs[] = { { "dir:", -EINVAL },
                      { "dir:/nonexistent", -ENOENT },
                      { "dir:/etc/passwd", -ENOTDIR },
                      { "etcd", -EINVAL } };
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
                struct store_options options = { .spec = specs[i].spec };
                struct store *store = NULL;
                struct err err = { 0 };
                int r = store_open(loop, &options, &store, &err);

                if (r != specs[i].result || err.msg[0] == '\0')
                        fail_msg("%s: want %d, got %d '%s'", specs[i].spec, specs[i].result, r, err.msg);
        }
        sd_event_unref(loop);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(files_of_every_form_are_read),
                cmocka_unit_test(changes_are_seen_and_nothing_else_is_delivered),
                cmocka_unit_test(half_written_files_change_nothing),
                cmocka_unit_test(of_two_files_the_later_counts),
                cmocka_unit_test(of_another_uid_the_old_one_goes_first),
                cmocka_unit_test(a_directory_that_is_gone_grows_old_and_comes_back),
                cmocka_unit_test(bad_specs_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
