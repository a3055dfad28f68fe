/* What is laid over others' objects: for which object a file counts, what two changes make together, and what
 * is no overlay at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/directory/overlays.h"

struct fixture {
        char path[64];
        int folder;
        struct overlays all;
        struct object_file *file;
        struct object *object; /* Pod default/a of uid "u" */
};

static struct object *new_object(enum store_kind kind, const char *namespace_, const char *name)
{
        char key[OBJECTS_KEY_BYTES];
        struct object *object;

        assert_true(objects_key(key, kind, namespace_, name));
        object = calloc(1, sizeof(*object) + strlen(key) + 1);
        memcpy(object->key, key, strlen(key) + 1);
        object->kind = (uint8_t) kind;
        return object;
}

static int set_up(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        (void) text_copy(f->path, sizeof(f->path), "/tmp/remuda-overlays-XXXXXX");
        assert_non_null(mkdtemp(f->path));
        f->folder = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        f->file = calloc(1, sizeof(*f->file));
        f->object = new_object(STORE_POD, "default", "a");
        f->object->file = f->file;
        f->object->uid = strdup("u");
        *state = f;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *f = *state;

        overlays_free(&f->all);
        (void) unlinkat(f->folder, "o.patch", 0);
        (void) unlinkat(f->folder, "pod.default.a.patch", 0);
        (void) unlinkat(f->folder, "node..n1.patch", 0);
        (void) close(f->folder);
        (void) rmdir(f->path);
        free(f->object->uid);
        free(f->object);
        free(f->file);
        free(f);
        return 0;
}

static void put(const struct fixture *f, const char *name, const char *bytes)
{
        int fd = openat(f->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, bytes, strlen(bytes)), strlen(bytes));
        (void) close(fd);
}

static void what_is_no_overlay_is_none(void **state)
{
        static const char *const files[] = {
                "",
                "{\"kind\":\"Pod\"",
                "[]",
                "{}",
                "{\"kind\":7,\"name\":\"a\"}",
                "{\"kind\":\"Nothing\",\"name\":\"a\"}",
                "{\"kind\":\"Pod\"}",
                "{\"kind\":\"Pod\",\"name\":\"\"}",
        };
        struct fixture *f = *state;

        assert_null(overlays_read(&f->all, f->folder, "none.patch"));
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                put(f, "o.patch", files[i]);
                if (overlays_read(&f->all, f->folder, "o.patch") != NULL)
                        fail_msg("'%s' is none", files[i]);
        }
        assert_null(overlays_of(&f->all, f->object));
        assert_true(overlays_is_file("o.patch") && !overlays_is_file(".o.patch") &&
                    !overlays_is_file("o.json"));
}

/* clang-format off */
static const struct {
        const char *what, *file;
        const char *uid; /* of the object */
        bool counts;
} rows[] = {
        { "of its uid",              "{\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"u\",\"deleted\":true}",  "u",  true },
        { "of another",              "{\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"v\",\"deleted\":true}",  "u",  false },
        { "of none",                 "{\"kind\":\"Pod\",\"name\":\"a\",\"deleted\":true}",                "u",  true },
        { "of an empty one",         "{\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"\",\"deleted\":true}",   "u",  true },
        { "of one, the object none", "{\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"u\",\"deleted\":true}",  NULL, true },
        { "of another namespace",    "{\"kind\":\"Pod\",\"namespace\":\"x\",\"name\":\"a\",\"uid\":\"u\"}", "u", false },
        { "of another kind",         "{\"kind\":\"Node\",\"name\":\"a\",\"uid\":\"u\"}",                  "u",  false },
};
/* clang-format on */

static void a_file_counts_for_the_object_of_its_uid(void **state)
{
        struct fixture *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                free(f->object->uid);
                f->object->uid = rows[i].uid != NULL ? strdup(rows[i].uid) : NULL;
                overlays_free(&f->all);
                f->all = (struct overlays){ .wrote = false };
                put(f, "o.patch", rows[i].file);
                assert_non_null(overlays_read(&f->all, f->folder, "o.patch"));
                if ((overlays_of(&f->all, f->object) != NULL) != rows[i].counts)
                        fail_msg("%s", rows[i].what);
        }
}

/* Without a uid an older deletion is not for an object whose file is newer. */
static void a_deletion_without_a_uid_is_for_what_was_there(void **state)
{
        struct fixture *f = *state;
        const struct overlay *o;

        put(f, "o.patch", "{\"kind\":\"Pod\",\"name\":\"a\",\"deleted\":true}");
        o = overlays_read(&f->all, f->folder, "o.patch");
        f->file->mtime_usec = o->mtime_usec;
        assert_true(overlays_deletes(o, f->object));
        f->file->mtime_usec = o->mtime_usec + 1;
        assert_false(overlays_deletes(o, f->object));
        put(f, "o.patch", "{\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"u\",\"deleted\":true}");
        o = overlays_read(&f->all, f->folder, "o.patch"); /* in place of the first */
        assert_true(overlays_deletes(o, f->object));
        put(f, "o.patch", "{\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"u\",\"deleted\":\"true\"}");
        assert_false(overlays_deletes(overlays_read(&f->all, f->folder, "o.patch"), f->object));
}

static int change(struct fixture *f, const struct object *object, const char *patch, const char *status)
{
        json_t *p = patch != NULL ? json_loads(patch, 0, NULL) : NULL;
        json_t *s = status != NULL ? json_loads(status, 0, NULL) : NULL;
        int r = overlays_change(&f->all, f->folder, STORE_POD, "default", "a", object,
                                (struct overlays_change){ .patch = p, .status = s }, NULL);

        json_decref(p);
        json_decref(s);
        return r;
}

/* What the file makes of an object with the label a=1. */
static void expect(struct fixture *f, const char *want)
{
        json_t *object = json_loads("{\"metadata\":{\"labels\":{\"a\":\"1\"}}}", 0, NULL);
        const struct overlay *o = overlays_read(&f->all, f->folder, "pod.default.a.patch");
        CLEANUP(free_p) char *text = NULL;

        assert_non_null(o);
        overlays_apply(o, object);
        text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text, want);
        json_decref(object);
}

static void changes_add_up_and_nulls_are_kept(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(change(f, f->object, "{\"metadata\":{\"labels\":{\"b\":\"2\",\"c\":\"3\"}}}", NULL),
                         0);
        assert_int_equal(change(f, f->object, "{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"4\"}}}", NULL),
                         0);
        assert_int_equal(change(f, f->object, "{\"spec\":[1]}", "{\"phase\":\"Failed\"}"), 0);
        expect(f, "{\"metadata\":{\"labels\":{\"b\":\"2\",\"c\":\"4\"}},\"spec\":[1],\"status\":{\"phase\":"
                  "\"Failed\"}}");
        free(f->object->uid);
        f->object->uid = strdup("another");
        assert_int_equal(change(f, f->object, NULL, "{\"phase\":\"Running\"}"),
                         0); /* of the next of its name */
        expect(f, "{\"metadata\":{\"labels\":{\"a\":\"1\"}},\"status\":{\"phase\":\"Running\"}}");
        assert_int_equal(change(f, NULL, "{\"x\":1}", NULL), 0); /* not known here: whatever its uid */
        expect(f, "{\"metadata\":{\"labels\":{\"a\":\"1\"}},\"status\":{\"phase\":\"Running\"},\"x\":1}");
}

static void what_has_no_file_is_refused(void **state)
{
        struct fixture *f = *state;
        struct err err = { 0 };
        struct overlays_change nothing = { .deleted = true };

        assert_int_equal(
                overlays_change(&f->all, f->folder, STORE_POD, "default", "../a", NULL, nothing, &err),
                -EINVAL);
        assert_true(err.msg[0] != '\0');
        assert_int_equal(overlays_change(&f->all, -1, STORE_POD, "default", "a", NULL, nothing, &err),
                         -EBADF);
}

static void an_object_that_is_gone_takes_its_overlay_along(void **state)
{
        struct fixture *f = *state;
        struct object *node = new_object(STORE_NODE, NULL, "n1");

        put(f, "pod.default.a.patch", "{\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"u\"}");
        assert_non_null(overlays_read(&f->all, f->folder, "pod.default.a.patch"));
        overlays_forget(&f->all, f->folder, f->object);
        assert_null(overlays_of(&f->all, f->object));
        assert_int_equal(faccessat(f->folder, "pod.default.a.patch", F_OK, 0), 0); /* another program's */
        assert_int_equal(change(f, f->object, "{\"x\":1}", NULL), 0);
        overlays_forget(&f->all, f->folder, f->object); /* nothing is known of it: nothing is taken away */
        assert_int_equal(faccessat(f->folder, "pod.default.a.patch", F_OK, 0), 0);
        assert_non_null(overlays_read(&f->all, f->folder, "pod.default.a.patch"));
        overlays_forget(&f->all, f->folder, f->object);
        assert_int_equal(faccessat(f->folder, "pod.default.a.patch", F_OK, 0), -1);
        put(f, "node..n1.patch", "{\"kind\":\"Node\",\"name\":\"n1\"}");
        assert_non_null(overlays_read(&f->all, f->folder, "node..n1.patch"));
        overlays_forget(&f->all, f->folder, node);
        assert_int_equal(faccessat(f->folder, "node..n1.patch", F_OK, 0), -1);
        free(node);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_is_no_overlay_is_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_file_counts_for_the_object_of_its_uid, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_deletion_without_a_uid_is_for_what_was_there, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(changes_add_up_and_nulls_are_kept, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_has_no_file_is_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_object_that_is_gone_takes_its_overlay_along, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
