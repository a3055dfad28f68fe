/* Measured: read beside the state, again when it is another file, and kept while one is of no use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/measured.h"
#include "base/cleanup.h"
#include "base/text.h"

#define GOOD                                                                                                 \
        "{\"version\": 1, \"measured\": [{\"group\": \"cpu-0\", \"vendor\": \"cpu\", \"model\": \"Xeon\", "  \
        "\"kernel\": \"sgemm-openblas\", \"precision\": \"fp32\", \"gflops\": 14.5, "                        \
        "\"time\": \"2026-11-21T10:00:00Z\"}]}"

struct place {
        char folder[64], state[96], path[96];
        struct services services;
        unsigned events;
        char said[400];
};

static void on_event(void *userdata, const char *type, const char *reason, const char *device,
                     const char *sentence)
{
        struct place *p = userdata;

        assert_string_equal(type, "Warning");
        assert_string_equal(reason, "MeasurementRefused");
        assert_null(device);
        p->events++;
        (void) text_copy(p->said, sizeof(p->said), sentence);
}

static int set_up(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        (void) text_copy(p->folder, sizeof(p->folder), "/tmp/test_measured.XXXXXX");
        assert_non_null(mkdtemp(p->folder));
        assert_true(text_format(p->state, sizeof(p->state), "%s/agent.json", p->folder));
        assert_true(text_format(p->path, sizeof(p->path), "%s/measured.json", p->folder));
        p->services = (struct services){ .event = on_event, .userdata = p };
        *state = p;
        return 0;
}

static int tear_down(void **state)
{
        struct place *p = *state;

        (void) unlink(p->path);
        assert_int_equal(rmdir(p->folder), 0);
        free(p);
        return 0;
}

static void put(const struct place *p, const char *content)
{
        FILE *file = fopen(p->path, "we");

        assert_non_null(file);
        assert_true(fputs(content, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* Is the group told what was measured of it? */
static bool is_told(struct measured *measured)
{
        CLEANUP(inventory_free) struct inventory node;
        struct device_group *group;

        inventory_init(&node);
        group = inventory_add_group(&node);
        assert_non_null(group);
        (void) text_copy(group->name, sizeof(group->name), "cpu-0");
        (void) text_copy(group->vendor, sizeof(group->vendor), "cpu");
        (void) text_copy(group->model, sizeof(group->model), "Xeon");
        measured_tell(measured, &node);
        return group->measured_gflops > 14 && group->measured_gflops < 15;
}

static void what_was_measured_is_told_until_the_file_is_gone(void **state)
{
        struct place *p = *state;
        struct measured *measured = measured_new(&p->services, p->state);

        assert_non_null(measured);
        assert_false(is_told(measured));
        put(p, GOOD);
        assert_true(is_told(measured));
        put(p, "{");
        assert_true(is_told(measured)); /* as before */
        assert_int_equal(p->events, 1);
        assert_non_null(strstr(p->said, "measured.json': line 1: "));
        assert_true(is_told(measured));
        assert_int_equal(p->events, 1); /* it is said once */
        assert_int_equal(unlink(p->path), 0);
        assert_false(is_told(measured));
        assert_int_equal(p->events, 1);
        measured_close(measured);
}

/* clang-format off */
static const struct {
        const char *what, *content;
        mode_t mode; /* 0 = a file */
        const char *said;
} files[] = {
        { "another version",  "{\"version\": 2, \"measured\": []}", 0, "version" },
        { "a key twice",      "{\"version\": 1, \"version\": 1}",   0, "line 1: duplicate object key" },
        { "nothing",          "",                                   0, "line 1: " },
        { "a pipe",           NULL,                                 S_IFIFO | 0600, "not a file of at most 262144 bytes" },
        { "a huge file",      NULL,                                 S_IFREG | 0600, "not a file of at most 262144 bytes" },
};
/* clang-format on */

static void a_file_of_no_use_is_refused(void **state)
{
        struct place *p = *state;

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                struct measured *measured = measured_new(&p->services, p->state);

                assert_non_null(measured);
                if (files[i].content != NULL)
                        put(p, files[i].content);
                else
                        assert_int_equal(mknod(p->path, files[i].mode, 0), 0);
                if (S_ISREG(files[i].mode))
                        assert_int_equal(truncate(p->path, (off_t) 262144 + 1), 0);
                assert_false(is_told(measured));
                if (p->events != i + 1 || strstr(p->said, files[i].said) == NULL)
                        fail_msg("%s: %u %s", files[i].what, p->events, p->said);
                assert_int_equal(unlink(p->path), 0);
                measured_close(measured);
        }
}

static void a_link_is_not_followed(void **state)
{
        struct place *p = *state;
        struct measured *measured = measured_new(&p->services, p->state);

        assert_int_equal(symlink("/etc/passwd", p->path), 0);
        assert_false(is_told(measured));
        assert_int_equal(p->events, 1);
        measured_close(measured);
}

static void without_a_state_nothing_is_read(void **state)
{
        struct place *p = *state;
        struct measured *measured = measured_new(&p->services, "");

        assert_non_null(measured);
        assert_false(is_told(measured) || is_told(NULL));
        assert_int_equal(p->events, 0);
        measured_close(measured);
        measured_close(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_was_measured_is_told_until_the_file_is_gone, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_file_of_no_use_is_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_link_is_not_followed, set_up, tear_down),
                cmocka_unit_test_setup_teardown(without_a_state_nothing_is_read, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
