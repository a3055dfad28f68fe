/* What a directory refuses to write, and what it reads of files that are not as they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "tests/support/dir_store.h"

enum write { PUT, PATCH, CREATE, DELETE, EVICT, CHANGE };

/* clang-format off */
static const struct { enum write write; enum store_kind kind; const char *namespace_, *name, *object; int result; const char *says; } writes[] = {
        { PUT,    STORE_INVENTORY,    NULL,      "../x", "{}",                            -EINVAL, "'../x' is no name for an object" },
        { PUT,    STORE_INVENTORY,    NULL,      "n1",   "{\"metadata\":{\"name\":\"n1\"}}", 0,    "" },
        { PUT,    STORE_TRAINING_JOB, "default", "j",    "{}",                            -EINVAL, "a job without a status" },
        { PUT,    STORE_TRAINING_JOB, "default", "none", "{\"status\":{}}",               -ENOENT, "TrainingJob 'default/none' is not in the store" },
        { PUT,    STORE_TRAINING_JOB, "default", "",     "{\"status\":{}}",               -EINVAL, "is no name" },
        { PATCH,  STORE_NODE,         NULL,      "none", "{}",                            -ENOENT, "Node 'none' is not in the store" },
        { PATCH,  STORE_NODE,         NULL,      "n 1",  "{}",                            -ENOENT, "is not in the store" },
        { CREATE, STORE_POD,          "default", NULL,   "{\"metadata\":{}}",             -EINVAL, "no metadata.name" },
        { CREATE, STORE_POD,          "default", NULL,   "{}",                            -EINVAL, "no metadata.name" },
        { CREATE, STORE_POD,          "default", NULL,   "{\"metadata\":{\"name\":\"a\"}}", -EEXIST, "Pod 'default/a' exists" },
        { CREATE, STORE_POD,          "default", NULL,   "{\"metadata\":{\"name\":\"a/b\"}}", -EINVAL, "'a/b' is no name" },
        { CREATE, STORE_POD,          "../x",    NULL,   "{\"metadata\":{\"name\":\"a\"}}", -EINVAL, "is no name" },
        { CREATE, STORE_POD,          "",        NULL,   "{\"metadata\":{\"generateName\":\"made-\"}}", 0, "" },
        { DELETE, STORE_POD,          "default", "none", NULL,                            -ENOENT, "Pod 'default/none' is not in the store" },
        { DELETE, STORE_POD,          "default", "a",    "other",                         -ESTALE, "has uid 'u-a', not 'other'" },
        { DELETE, STORE_POD,          "default", "a",    "u-a",                           0,       "" },
        { EVICT,  STORE_POD,          "default", "none", NULL,                            -ENOENT, "none" },
        { CHANGE, STORE_SPEED_TABLE,  NULL,      "../x", NULL,                            -EINVAL, "is no name" },
        { CHANGE, STORE_SPEED_TABLE,  NULL,      "torn", NULL,                            -EBADMSG, "holds no JSON; mend or remove it" },
        { CHANGE, STORE_SPEED_TABLE,  NULL,      "folder", NULL,                          -EINVAL, "is not a regular file" },
        { CHANGE, STORE_SPEED_TABLE,  NULL,      "unwilling", NULL,                       -EPERM,  "not this one" },
        { CHANGE, STORE_SPEED_TABLE,  NULL,      "new",  NULL,                            0,       "" },
};
/* clang-format on */

static const char *changing;

static json_t *change(void *userdata, const json_t *object, struct err *err)
{
        (void) userdata;
        (void) object;
        if (strcmp(changing, "unwilling") == 0)
                (void) err_set(err, -EPERM, "not this one");
        return strcmp(changing, "unwilling") == 0 ? NULL : json_pack("{s:s}", "kind", "SpeedTable");
}

static void what_cannot_be_written_is_refused(void **state)
{
        struct dir_store *f = dir_store_new();
        char path[100];

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_write(f, "j.json", "{\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"j\"}}");
        dir_store_write(f, "torn.speedtable.json", "{\"kind\":");
        (void) text_format(path, sizeof(path), "%s/folder.speedtable.json", f->path);
        assert_int_equal(mkdir(path, 0755), 0);
        dir_store_open(f);
        for (size_t i = 0; i < ARRAY_SIZE(writes); i++) {
                const char *text = writes[i].object;
                json_t *object = text == NULL || text[0] != '{' ? NULL : json_loads(text, 0, NULL);
                int before = f->answers;

                changing = writes[i].name;
                if (writes[i].write == PUT)
                        store_put(f->store, writes[i].kind, writes[i].namespace_, writes[i].name, object,
                                  dir_store_answer, f);
                else if (writes[i].write == PATCH)
                        store_patch(f->store, writes[i].kind, writes[i].namespace_, writes[i].name, object,
                                    dir_store_answer, f);
                else if (writes[i].write == CREATE)
                        store_create(f->store, writes[i].kind, writes[i].namespace_, object, dir_store_answer,
                                     f);
                else if (writes[i].write == DELETE)
                        store_delete(f->store, writes[i].kind, writes[i].namespace_, writes[i].name, text, 3,
                                     dir_store_answer, f);
                else if (writes[i].write == EVICT)
                        store_evict(f->store, writes[i].namespace_, writes[i].name, NULL, 3, dir_store_answer,
                                    f);
                else
                        store_change(f->store, writes[i].kind, NULL, writes[i].name, change, dir_store_answer,
                                     f);
                for (int tries = 0; tries < 300 && f->answers == before; tries++)
                        dir_store_run_for(f, 10000);
                if (f->answers != before + 1 || f->result != writes[i].result ||
                    strstr(f->sentence, writes[i].says) == NULL)
                        fail_msg("%zu %s: %d %s", i, writes[i].name, f->result, f->sentence);
                json_decref(object);
        }
        assert_int_equal(store_touch(f->store, "../x"), -EINVAL);
        assert_int_equal(store_touch(f->store, "nobody"), -ENOENT);
        assert_int_equal(store_touch(f->store, "n1"), 0);
        dir_store_free(f);
}

/* What is no object says so, and nothing else is lost by it. */
static void odd_files_are_passed_over(void **state)
{
        struct dir_store *f = dir_store_new();
        char path[100];

        (void) state;
        dir_store_write(f, "good.json", DIR_STORE_POD_A);
        (void) text_format(path, sizeof(path), "%s/pipe.json", f->path);
        assert_int_equal(mkfifo(path, 0600), 0);
        (void) text_format(path, sizeof(path), "%s/folder.json", f->path);
        assert_int_equal(mkdir(path, 0755), 0);
        (void) text_format(path, sizeof(path), "%s/vast.json", f->path);
        assert_int_equal(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)), 0);
        assert_int_equal(truncate(path, (off_t) 3 << 30), 0);
        dir_store_write(f, "twice.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_B "," DIR_STORE_POD_B "]}");
        dir_store_write(f, "items.json",
                        "{\"kind\":\"PodList\",\"items\":[7,{\"metadata\":{}},{\"kind\":\"ConfigMap\"},"
                        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"x\"}}]}");
        dir_store_write(f, "nameless.yaml",
                        "kind: Pod\nmetadata: {name: ''}\n---\n{}\n---\nmetadata: {name: x}\n");
        dir_store_open(f);
        assert_true(dir_store_has(f, "Pod default/a") && dir_store_has(f, "Pod default/b") &&
                    dir_store_has(f, "Pod x/c"));
        assert_int_equal(json_object_size(f->objects), 3);
        assert_true(dir_store_said(f, "'pipe.json': is not a regular file"));
        assert_true(dir_store_said(f, "'folder.json': is not a regular file"));
        assert_true(dir_store_said(f, "'vast.json': has 3221225472 bytes; at most"));
        assert_true(dir_store_said(f, "'twice.json' holds Pod 'default/b' twice; the first one counts"));
        assert_true(dir_store_said(f, "'items.json' holds an item at byte 27 that cannot be read"));
        assert_true(dir_store_said(f, "'items.json' a Pod has no (usable) metadata.name"));
        assert_true(dir_store_said(f, "'nameless.yaml' a Pod has no (usable) metadata.name"));
        assert_true(dir_store_said(f, "'nameless.yaml' an object has no kind"));
        dir_store_free(f);
}

/* A fresh look delivers all once more, and finds what nobody has said. */
static void a_fresh_look_finds_what_nobody_said(void **state)
{
        struct dir_store *f = dir_store_new();
        CLEANUP(close_p) int fd = -1;
        char path[100];
        unsigned before;

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_write(f, "y.yaml", "kind: Node\nmetadata: {name: y}\n");
        dir_store_write(f, "list.yaml", "kind: List\nitems:\n- kind: Node\n  metadata: {name: l}\n");
        dir_store_open(f);
        before = f->deliveries;
        f->synced = 0;
        store_refresh(f->store);
        dir_store_settle(f);
        assert_int_equal(f->deliveries, before + 3);
        assert_true(f->synced != 0);
        (void) text_format(path, sizeof(path), "%s/a.json", f->path);
        fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC); /* by one who has not closed it yet */
        assert_int_equal(write(fd, DIR_STORE_POD_B, strlen(DIR_STORE_POD_B)), strlen(DIR_STORE_POD_B));
        store_refresh(f->store);
        dir_store_settle(f);
        assert_true(dir_store_has(f, "Pod default/b") && !dir_store_has(f, "Pod default/a"));
        dir_store_free(f);
}

/* An overlay lies over objects of every form of file. */
static void patches_lie_over_yaml_too(void **state)
{
        struct dir_store *f = dir_store_new();
        json_t *patch = json_loads("{\"metadata\":{\"labels\":{\"a\":\"1\"}}}", 0, NULL);

        (void) state;
        dir_store_write(f, "list.yaml",
                        "kind: List\nitems:\n- kind: Node\n  metadata: {name: k}\n- kind: Node\n  metadata: "
                        "{name: l}\n");
        dir_store_open(f);
        store_patch(f->store, STORE_NODE, NULL, "l", patch, dir_store_answer, f);
        for (int tries = 0; tries < 300 && dir_store_field(f, "Node l", "metadata/labels/a")[0] == '\0';
             tries++)
                dir_store_run_for(f, 10000);
        assert_string_equal(dir_store_field(f, "Node l", "metadata/labels/a"), "1");
        assert_string_equal(dir_store_field(f, "Node k", "metadata/labels"), "");
        json_decref(patch);
        dir_store_free(f);
}

/* What is committed decides: a pod that is bound may go, once, and the first of two lines counts. */
static void what_is_journalled_decides(void **state)
{
        struct dir_store *f = dir_store_new();
        CLEANUP(free_p) char *journal = NULL;

        (void) state;
        dir_store_write(f, "pods.json",
                        "{\"kind\":\"List\",\"items\":[" DIR_STORE_POD_A "," DIR_STORE_POD_C "]}");
        dir_store_write(f, "bindings.jsonl",
                        "{\"uid\":\"u-c\",\"namespace\":\"default\",\"name\":\"c\",\"node\":\"n1\"}\n"
                        "{\"uid\":\"u-c\",\"namespace\":\"default\",\"name\":\"c\",\"node\":\"n2\"}\n");
        dir_store_open(f);
        assert_true(dir_store_said(f, "binds pod 'default/c' to 'n1' and to 'n2': the first line counts"));
        assert_string_equal(dir_store_field(f, "Pod default/c", "spec/nodeName"), "n1");
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), 0);
        for (int i = 0; i < 2; i++) {
                f->result = -1;
                store_evict(f->store, "default", "a", "u-a", 30, dir_store_answer, f);
                dir_store_settle(f);
                assert_int_equal(f->result, 0);
        }
        journal = dir_store_read(f, "evictions.jsonl");
        assert_ptr_equal(strchr(journal, '\n'), journal + strlen(journal) - 1); /* one line */
        dir_store_free(f);
}

static void what_cannot_be_journalled_is_not_bound(void **state)
{
        struct dir_store *f = dir_store_new();
        struct rlimit old;

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_open(f);
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n\xff"), -EINVAL);
        assert_string_equal(f->sentence, "the binding is not valid UTF-8, or memory is out");
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        (void) signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 10, old.rlim_max }), 0);
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), -EFBIG);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_string_equal(f->sentence, "append to 'bindings.jsonl': File too large");
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), "");
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n2"), 0);
        dir_store_free(f);
}

/* Not even of another's: what is behind the link is not ours. */
static void a_journal_that_is_a_link_is_not_read(void **state)
{
        struct dir_store *f = dir_store_new();
        char path[100];

        (void) state;
        dir_store_write(f, "a.json", DIR_STORE_POD_A);
        dir_store_open(f);
        (void) text_format(path, sizeof(path), "%s/bindings.jsonl", f->path);
        assert_int_equal(symlink("/dev/null", path), 0);
        dir_store_settle(f);
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), -ELOOP);
        assert_string_equal(f->sentence, "open 'bindings.jsonl': Too many levels of symbolic links");
        assert_string_equal(dir_store_field(f, "Pod default/a", "spec/nodeName"), "");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(dir_store_bind(f, "a", "u-a", "n1"), 0);
        dir_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_written_is_refused),
                cmocka_unit_test(odd_files_are_passed_over),
                cmocka_unit_test(a_fresh_look_finds_what_nobody_said),
                cmocka_unit_test(patches_lie_over_yaml_too),
                cmocka_unit_test(what_is_journalled_decides),
                cmocka_unit_test(what_cannot_be_journalled_is_not_bound),
                cmocka_unit_test(a_journal_that_is_a_link_is_not_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
