/* Binds, evictions and our own objects in a store of files: journalled, put by rename, and never in another's
 * file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "tests/support/dir_store.h"

static void a_bind_is_journalled_and_delivered(void **state)
{
        struct dir_store *f = dir_store_new();
        CLEANUP(free_p) char *journal = NULL;
        CLEANUP(free_p) char *pods = NULL;
        json_t *line;

        (void) state;
        dir_store_write(f, "pods.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_A "," DIR_STORE_POD_B "]}");
        dir_store_open(f);
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), 0);
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), "n1");
        journal = dir_store_read(f, "bindings.jsonl");
        line = json_loads(journal, 0, NULL);
        assert_non_null(line); /* exactly one line */
        assert_string_equal(json_string_value(json_object_get(line, "uid")), "u-a");
        assert_string_equal(json_string_value(json_object_get(line, "namespace")), "default");
        assert_string_equal(json_string_value(json_object_get(line, "name")), "a");
        assert_string_equal(json_string_value(json_object_get(line, "node")), "n1");
        assert_int_equal(strlen(json_string_value(json_object_get(line, "time"))) >= 20, 1);
        assert_int_equal(json_integer_value(json_object_get(line, "sequence")), 1);
        assert_int_equal(strlen(json_string_value(json_object_get(line, "checksum"))), 8);
        assert_int_equal(json_object_size(line), 7);
        json_decref(line);

        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), 0); /* again: a success, and no second line */
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n2"), -EALREADY);
        assert_int_equal(dir_store_bind(f, "a", "u-other", "n1"), -ESTALE);
        assert_int_equal(dir_store_bind(f, "nobody", "u-x", "n1"), -ENOENT);
        assert_int_equal(dir_store_bind(f, "b", "u-b", "n9"), 0); /* bound by others, to the same node */
        assert_int_equal(dir_store_bind(f, "b", "u-b", "n1"), -EALREADY);
        assert_string_equal(f->sentence, "pod 'default/b' is bound to node 'n9'");
        assert_int_equal(dir_store_bind(f, "a", "u-a", ""), -EINVAL);
        free(TAKE(journal));
        journal = dir_store_read(f, "bindings.jsonl");
        assert_ptr_equal(strchr(journal, '\n'), journal + strlen(journal) - 1);
        pods = dir_store_read(f, "pods.json");
        assert_string_equal(pods, "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_A "," DIR_STORE_POD_B
                                  "]}"); /* never rewritten */

        dir_store_close(f);
        dir_store_open(f); /* after a restart */
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), "n1");
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n2"), -EALREADY);
        dir_store_write(f, "pods.json", "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_B "]}");
        dir_store_settle(f);
        assert_false(dir_store_has(f, "Pod default/a")); /* its object left: it holds nothing */
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), -ENOENT);
        dir_store_write(f, "pods.json", "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u-a2\"}}");
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"),
                            ""); /* another pod of its name is not bound */
        dir_store_free(f);
}

static void a_bind_carries_annotations(void **state)
{
        struct dir_store *f = dir_store_new();
        json_t *annotations = json_pack("{s:s}", "remuda.dev/weight", "0.25");
        struct store_binding binding = {
                .namespace_ = "default", .name = "a", .uid = "u-a", .node = "n1", .annotations = annotations
        };

        (void) state;
        dir_store_write(
                f, "a.json",
                "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u-a\",\"annotations\":{\"x\":"
                "\"y\"}}}");
        dir_store_open(f);
        store_bind(f->store, &binding, dir_store_answer, f);
        json_decref(annotations);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_string_equal(dir_store_field(f, "Pod default/a", "metadata/annotations/remuda.dev"), "");
        {
                json_t *got = json_object_get(
                        json_object_get(json_object_get(f->objects, "Pod default/a"), "metadata"),
                        "annotations");

                assert_string_equal(json_string_value(json_object_get(got, "remuda.dev/weight")), "0.25");
                assert_string_equal(json_string_value(json_object_get(got, "x")), "y");
        }
        dir_store_free(f);
}

static void a_yaml_pod_is_bound_too(void **state)
{
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_write(
                f, "pods.yaml",
                "kind: Pod\nmetadata: {name: one}\n---\nkind: Pod\nmetadata: {name: two}\nspec: {x: 1}\n");
        dir_store_open(f);
        assert_int_equal(dir_store_bind(f, "two", "", "n1"),
                         0); /* no uid anywhere: the name is the identity */
        assert_string_equal(dir_store_field(f, "Pod default/two", "spec/nodeName"), "n1");
        assert_string_equal(dir_store_field(f, "Pod default/one", "spec/nodeName"), "");
        dir_store_close(f);
        dir_store_open(f);
        assert_string_equal(dir_store_field(f, "Pod default/two", "spec/nodeName"), "n1");
        assert_int_equal(dir_store_bind(f, "two", "", "n2"), -EALREADY);
        dir_store_free(f);
}

static void a_torn_journal_line_binds_nothing(void **state)
{
        struct dir_store *f = dir_store_new();
        CLEANUP(free_p) char *journal = NULL;

        (void) state;
        dir_store_write(f, "pods.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_A "," DIR_STORE_POD_B "]}");
        dir_store_write(f, "bindings.jsonl",
                        "{\"uid\":\"u-a\",\"namespace\":\"default\",\"name\":\"a\",\"no");
        dir_store_open(f);
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), "");
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), 0);
        dir_store_close(f);
        dir_store_open(f);
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), "n1");
        journal = dir_store_read(f, "bindings.jsonl");
        assert_non_null(strstr(journal, "\"no\n{\"uid\":\"u-a\""));
        assert_true(dir_store_said(f, "cannot be read"));
        dir_store_free(f);
}

#define POD_C                                                                                                \
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"c\",\"namespace\":\"default\",\"uid\":\"u-c\"},"         \
        "\"spec\":{}}"

/* Two lines, the second damaged or the first gone: what can be read counts, and nothing is bound any more. */
static void a_damaged_journal_stops_commits(void **state)
{
        static const char *const harms[] = { "checksum", "gap", "none" };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(harms); i++) {
                struct dir_store *f = dir_store_new();
                CLEANUP(free_p) char *journal = NULL;
                bool harmed = i < 2;

                dir_store_write(f, "pods.json",
                                "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_A "," POD_C "]}");
                dir_store_write(
                        f, "bindings.jsonl", /* of an older program: as it is */
                        "{\"uid\":\"u-z\",\"namespace\":\"default\",\"name\":\"z\",\"node\":\"n7\"}\n");
                dir_store_open(f);
                assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), 0);
                assert_int_equal(dir_store_bind(f, "c", "u-c", "n2"), 0);
                dir_store_close(f);
                journal = dir_store_read(f, "bindings.jsonl");
                assert_non_null(strstr(journal, ",\"sequence\":2,"));
                if (i == 0)
                        *strstr(strstr(journal, "u-c"), "n2") = 'm';
                else if (i == 1)
                        memset(strchr(journal, '\n') + 1, '\n',
                               (size_t) (strstr(journal, "{\"uid\":\"u-c") - strchr(journal, '\n')) - 1);
                dir_store_write(f, "bindings.jsonl", journal);
                dir_store_open(f);
                assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), i == 1 ? "" : "n1");
                assert_string_equal(dir_store_field(f, "Pod default/c", "spec/nodeName"), i == 0 ? "" : "n2");
                assert_int_equal(dir_store_said(f, "'bindings.jsonl' is damaged"), harmed);
                assert_int_equal(dir_store_bind(f, i == 0 ? "c" : "a", i == 0 ? "u-c" : "u-a", "n1"),
                                 harmed ? -EBADMSG : 0);
                assert_int_equal(strstr(f->sentence,
                                        i == 0 ? "the checksum of line 2" : "line 2 follows line 0") != NULL,
                                 harmed);
                dir_store_free(f);
        }
}

static void lines_of_another_process_count(void **state)
{
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_open(f);
        dir_store_write_bytes(f, "bindings.jsonl",
                              "{\"uid\":\"u-a\",\"namespace\":\"default\",\"name\":\"a\",\"node\":\"n7\"}\n",
                              "a");
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), "n7");
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), -EALREADY);
        dir_store_remove(f, "bindings.jsonl"); /* an operator starts over */
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), "");
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), 0);
        dir_store_free(f);
}

static void many_binds_at_once_are_one_batch(void **state)
{
        struct dir_store *f = dir_store_new();
        struct text list = { 0 };

        (void) state;
        text_append(&list, "{\"kind\":\"List\",\"items\":[");
        for (int i = 0; i < 200; i++)
                text_printf(&list, "%s{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%d\",\"uid\":\"u%d\"}}",
                            i > 0 ? "," : "", i, i);
        text_append(&list, "]}");
        dir_store_write(f, "pods.json", list.data);
        dir_store_open(f);
        for (int i = 0; i < 200; i++) {
                char name[16], uid[16];

                (void) text_format(name, sizeof(name), "p%d", i);
                (void) text_format(uid, sizeof(uid), "u%d", i);
                store_bind(f->store,
                           &(struct store_binding){ "default", name, uid, i % 2 ? "n1" : "n2", NULL },
                           dir_store_answer, f);
        }
        dir_store_run_for(f, 300000);
        assert_int_equal(f->answers, 200);
        assert_string_equal(dir_store_field(f, "Pod default/p0", "spec/nodeName"), "n2");
        assert_string_equal(dir_store_field(f, "Pod default/p199", "spec/nodeName"), "n1");
        text_free(&list);
        dir_store_free(f);
}

static void an_evicted_pod_is_terminating(void **state)
{
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_open(f);
        store_evict(f->store, "default", "a", "u-a", 30, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_true(dir_store_field(f, "Pod default/a", "metadata/deletionTimestamp")[0] == '2');
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), -ESTALE);
        dir_store_close(f);
        dir_store_open(f);
        assert_true(dir_store_field(f, "Pod default/a", "metadata/deletionTimestamp")[0] == '2');
        store_evict(f->store, "default", "a", "u-wrong", 0, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, -ESTALE);
        dir_store_remove(f, "a.json");
        dir_store_settle(f);
        assert_false(dir_store_has(f, "Pod default/a"));
        dir_store_free(f);
}

/* What one journal said is forgotten when it is replaced or removed; what the other says stands. */
static void a_journal_that_is_removed_takes_no_other_along(void **state)
{
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_write(f, "pods.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_A "," DIR_STORE_POD_C "]}");
        dir_store_open(f);
        store_evict(f->store, "default", "a", "u-a", 30, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(dir_store_bind(f, "c", "u-c", "n1"), 0);
        dir_store_remove(f, "bindings.jsonl");
        dir_store_settle(f);
        assert_true(dir_store_said(f, "a journal was replaced or removed"));
        assert_string_equal(dir_store_field(f, "Pod default/c", "spec/nodeName"), "");
        assert_true(dir_store_field(f, "Pod default/a", "metadata/deletionTimestamp")[0] == '2');
        store_evict(f->store, "default", "c", "u-c", 30, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_true(dir_store_field(f, "Pod default/c", "metadata/deletionTimestamp")[0] == '2');
        dir_store_remove(f, "evictions.jsonl");
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "Pod default/a", "metadata/deletionTimestamp"), "");
        assert_true(dir_store_said(f, "'bindings.jsonl' is damaged: it ends after line 0 of 1"));
        assert_int_equal(dir_store_bind(f, "c", "u-c", "n2"), -EBADMSG);
        dir_store_remove(f, ".bindings.jsonl.last"); /* an operator starts over */
        assert_int_equal(dir_store_bind(f, "c", "u-c", "n2"), 0);
        dir_store_free(f);
}

/* Another process holds the lock that our bind waits for, and replaces the file meanwhile. */
static void a_journal_replaced_while_we_wait_takes_no_other_along(void **state)
{
        struct dir_store *f = dir_store_new();
        char journal[96], last[96];
        int ready[2], status;
        pid_t child;
        char c;

        (void) state;
        dir_store_write(f, "pods.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_A "," DIR_STORE_POD_C "]}");
        dir_store_open(f);
        store_evict(f->store, "default", "a", "u-a", 30, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(dir_store_bind(f, "c", "u-c", "n1"), 0);
        (void) text_format(journal, sizeof(journal), "%s/bindings.jsonl", f->path);
        (void) text_format(last, sizeof(last), "%s/.bindings.jsonl.last", f->path);
        assert_int_equal(pipe(ready), 0);
        child = fork();
        if (child == 0) {
                int fd = open(journal, O_RDWR | O_CLOEXEC);

                if (fd < 0 || flock(fd, LOCK_EX) < 0 || write(ready[1], "x", 1) != 1)
                        _exit(1);
                (void) usleep(50000); /* the bind waits by now */
                _exit(unlink(last) < 0 || unlink(journal) < 0);
        }
        assert_int_equal(read(ready[0], &c, 1), 1);
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), -ESTALE); /* it is being deleted all the same */
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        (void) close(ready[0]);
        (void) close(ready[1]);
        assert_true(dir_store_field(f, "Pod default/a", "metadata/deletionTimestamp")[0] == '2');
        assert_string_equal(dir_store_field(f, "Pod default/c", "spec/nodeName"), "");
        dir_store_free(f);
}

struct two_answers {
        int results[3];
        unsigned count;
};

static void keep_answer(void *userdata, int result, const char *sentence)
{
        struct two_answers *answers = userdata;

        (void) sentence;
        answers->results[answers->count++ % 3] = result;
}

/* Two requests about one pod are not judged by the same journal; of another's namesake they are. */
static void a_pod_has_one_request_in_a_batch(void **state)
{
        static const char *const nodes[] = { "n1", "n2", "n3" }, *const namespaces[] = { "default", "default",
                                                                                         "x" };
        struct dir_store *f = dir_store_new();
        struct two_answers answers = { .count = 0 };

        (void) state;
        dir_store_write(f, "pods.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_A
                        ",{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"x\"}}]}");
        dir_store_open(f);
        for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
                struct store_binding binding = { .namespace_ = namespaces[i],
                                                 .name = "a",
                                                 .node = nodes[i],
                                                 .uid = i == 2 ? "any" : "u-a" };

                store_bind(f->store, &binding, keep_answer, &answers);
        }
        dir_store_settle(f);
        assert_int_equal(answers.count, 3);
        assert_int_equal(answers.results[0] + answers.results[1] + answers.results[2], -EAGAIN);
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), "n1");
        assert_string_equal(dir_store_field(f, "Pod x/a", "spec/nodeName"), "n3"); /* of no uid: of any */
        dir_store_free(f);
}

static void who_is_being_deleted_is_not_bound_nor_deleted_again(void **state)
{
        struct dir_store *f = dir_store_new();
        CLEANUP(free_p) char *journal = NULL;

        (void) state;
        dir_store_write(f, "a.json",
                        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"uid\":\"u-a\","
                        "\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"}}");
        dir_store_open(f);
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), -ESTALE);
        assert_string_equal(f->sentence, "pod 'default/a' is being deleted");
        store_evict(f->store, "default", "a", "u-a", 30, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        journal = dir_store_read(f, "evictions.jsonl");
        assert_string_equal(journal, ""); /* its owner said so: there is nothing to write */
        assert_int_equal(dir_store_bind(f, "", "u", "n1"), -EINVAL);
        assert_string_equal(f->sentence, "'' is no name of a pod");
        dir_store_free(f);
}

static void our_own_objects_are_put_by_rename(void **state)
{
        struct dir_store *f = dir_store_new();
        json_t *inventory = json_pack("{s:s, s:{s:s}, s:{s:i}}", "kind", "NodeAccelerators", "metadata",
                                      "name", "n1", "status", "generation", 1);
        uint64_t before;

        (void) state;
        dir_store_open(f);
        store_put(f->store, STORE_INVENTORY, NULL, "n1", inventory, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_true(dir_store_has(f, "NodeAccelerators n1"));
        before = store_inventory_mtime_usec(f->store, "n1");
        dir_store_run_for(f, 20000);
        assert_int_equal(store_touch(f->store, "n1"), 0);
        dir_store_settle(f);
        assert_true(store_inventory_mtime_usec(f->store, "n1") > before);
        assert_int_equal(f->deliveries, 1); /* a touch is not a change */
        assert_int_equal(store_touch(f->store, "n2"), -ENOENT);
        store_put(f->store, STORE_INVENTORY, NULL, "../n1", inventory, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, -EINVAL);
        json_decref(inventory);
        dir_store_free(f);
}

static void a_job_keeps_its_file_and_gets_a_status(void **state)
{
        struct dir_store *f = dir_store_new();
        json_t *job = json_pack("{s:s, s:{s:s}, s:{s:s}}", "kind", "TrainingJob", "metadata", "name",
                                "fashion", "status", "phase", "Running");
        CLEANUP(free_p) char *file = NULL;
        static const char yaml[] = "kind: TrainingJob # mine\nmetadata: {name: fashion}\nspec: {epochs: 3}\n";

        (void) state;
        dir_store_write(f, "job.yaml", yaml);
        dir_store_open(f);
        store_put(f->store, STORE_TRAINING_JOB, "default", "fashion", job, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_string_equal(dir_store_field(f, "TrainingJob default/fashion", "status/phase"), "Running");
        assert_string_equal(dir_store_field(f, "TrainingJob default/fashion", "spec/epochs"),
                            "?"); /* a number: it is there */
        file = dir_store_read(f, "job.yaml");
        assert_string_equal(file, yaml);
        dir_store_close(f);
        dir_store_open(f);
        assert_string_equal(dir_store_field(f, "TrainingJob default/fashion", "status/phase"), "Running");
        store_put(f->store, STORE_TRAINING_JOB, "default", "fashion", job, dir_store_answer,
                  f); /* this store writes */
        dir_store_settle(f);
        dir_store_remove(f, "job.yaml");
        dir_store_settle(f);
        assert_false(dir_store_has(f, "TrainingJob default/fashion"));
        dir_store_write(f, "job.yaml", yaml);
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "TrainingJob default/fashion", "status/phase"),
                            ""); /* a new job of that name */
        json_decref(job);
        dir_store_free(f);
}

static void a_copy_that_goes_takes_no_status_along(void **state)
{
        static const char yaml[] = "kind: TrainingJob\nmetadata: {name: fashion}\nspec: {epochs: 3}\n";
        json_t *job = json_pack("{s:s, s:{s:s}, s:{s:s}}", "kind", "TrainingJob", "metadata", "name",
                                "fashion", "status", "phase", "Running");
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_write(f, "a.yaml", yaml);
        dir_store_write(f, "b.yaml", yaml);
        dir_store_open(f);
        for (const char *copy = "a.yaml"; copy != NULL; copy = *copy == 'a' ? "b.yaml" : NULL) {
                store_put(f->store, STORE_TRAINING_JOB, "default", "fashion", job, dir_store_answer, f);
                dir_store_settle(f);
                assert_int_equal(f->result, 0);
                dir_store_remove(f, copy); /* one of the two does not count, whichever that is */
                dir_store_settle(f);
                dir_store_close(f);
                dir_store_open(f); /* what is kept, not what was delivered */
                assert_string_equal(dir_store_field(f, "TrainingJob default/fashion", "status/phase"),
                                    "Running");
                dir_store_write(f, copy, yaml);
                dir_store_settle(f);
        }
        json_decref(job);
        dir_store_free(f);
}

static void a_patch_lies_beside_the_file(void **state)
{
        struct dir_store *f = dir_store_new();
        json_t *patch = json_loads("{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":null}}}", 0, NULL);
        json_t *more = json_loads("{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"3\"}}}", 0, NULL);

        (void) state;
        dir_store_write(
                f, "n.json",
                "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"labels\":{\"b\":\"2\",\"a\":\"0\"}}}");
        dir_store_open(f);
        store_patch(f->store, STORE_NODE, NULL, "n", patch, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_string_equal(dir_store_field(f, "Node n", "metadata/labels/a"), "1");
        assert_string_equal(dir_store_field(f, "Node n", "metadata/labels/b"), "");
        store_patch(f->store, STORE_NODE, NULL, "n", more, dir_store_answer, f);
        dir_store_settle(f);
        assert_string_equal(dir_store_field(f, "Node n", "metadata/labels/a"), "");
        assert_string_equal(dir_store_field(f, "Node n", "metadata/labels/b"), "");
        assert_string_equal(dir_store_field(f, "Node n", "metadata/labels/c"), "3");
        store_patch(f->store, STORE_NODE, NULL, "other", patch, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, -ENOENT);
        json_decref(patch);
        json_decref(more);
        dir_store_free(f);
}

static void pods_are_created_and_deleted(void **state)
{
        struct dir_store *f = dir_store_new();
        json_t *pod = json_pack("{s:{s:s}, s:{}}", "metadata", "name", "p", "spec");

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_open(f);
        store_create(f->store, STORE_POD, "team", pod, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_int_equal(strlen(dir_store_field(f, "Pod team/p", "metadata/uid")), 36);
        assert_true(dir_store_field(f, "Pod team/p", "metadata/creationTimestamp")[0] == '2');
        store_create(f->store, STORE_POD, "team", pod, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, -EEXIST);
        store_delete(f->store, STORE_POD, "team", "p", "wrong", 0, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, -ESTALE);
        store_delete(f->store, STORE_POD, "team", "p", NULL, 0, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_false(dir_store_has(f, "Pod team/p"));
        store_delete(f->store, STORE_POD, "default", "a", "u-a", 0, dir_store_answer,
                     f); /* somebody else's file */
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_false(dir_store_has(f, "Pod default/a"));
        store_delete(f->store, STORE_POD, "team", "p", NULL, 0, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, -ENOENT);
        json_decref(pod);
        dir_store_free(f);
}

static void closing_answers_what_waits(void **state)
{
        struct dir_store *f = dir_store_new();

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_open(f);
        store_bind(f->store, &(struct store_binding){ "default", "a", "u-a", "n1", NULL }, dir_store_answer,
                   f);
        dir_store_close(f);
        assert_int_equal(f->answers, 1);
        assert_int_equal(f->result, -ECANCELED);
        dir_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_bind_is_journalled_and_delivered),
                cmocka_unit_test(a_bind_carries_annotations),
                cmocka_unit_test(a_yaml_pod_is_bound_too),
                cmocka_unit_test(a_torn_journal_line_binds_nothing),
                cmocka_unit_test(a_damaged_journal_stops_commits),
                cmocka_unit_test(lines_of_another_process_count),
                cmocka_unit_test(many_binds_at_once_are_one_batch),
                cmocka_unit_test(an_evicted_pod_is_terminating),
                cmocka_unit_test(a_pod_has_one_request_in_a_batch),
                cmocka_unit_test(who_is_being_deleted_is_not_bound_nor_deleted_again),
                cmocka_unit_test(a_journal_that_is_removed_takes_no_other_along),
                cmocka_unit_test(a_journal_replaced_while_we_wait_takes_no_other_along),
                cmocka_unit_test(our_own_objects_are_put_by_rename),
                cmocka_unit_test(a_job_keeps_its_file_and_gets_a_status),
                cmocka_unit_test(a_copy_that_goes_takes_no_status_along),
                cmocka_unit_test(a_patch_lies_beside_the_file),
                cmocka_unit_test(pods_are_created_and_deleted),
                cmocka_unit_test(closing_answers_what_waits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
