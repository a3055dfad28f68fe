/* Configuration: two readers of one file, each with the line of a mistake, and what counts as a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/configuration.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "tests/support/patience.h"

struct place {
        char folder[64], path[96], other[96];
        struct configuration configuration;
        sd_event *loop;
        struct log log;
        size_t changes;
};

static int set_up(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        (void) text_copy(p->folder, sizeof(p->folder), "/tmp/test_configuration.XXXXXX");
        assert_non_null(mkdtemp(p->folder));
        assert_true(text_format(p->path, sizeof(p->path), "%s/agent.yaml", p->folder));
        assert_true(text_format(p->other, sizeof(p->other), "%s/..data", p->folder));
        assert_int_equal(loop_new(&p->loop, NULL), 0);
        log_init(&p->log, "test", NULL, NULL);
        *state = p;
        return 0;
}

static int tear_down(void **state)
{
        struct place *p = *state;

        configuration_free(&p->configuration);
        assert_null(sd_event_unref(p->loop));
        (void) unlink(p->path);
        (void) unlink(p->other);
        assert_int_equal(rmdir(p->folder), 0);
        free(p);
        return 0;
}

static void put(const char *path, const char *content)
{
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        assert_true(fputs(content, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* clang-format off */
static const struct {
        const char *content;
        const char *sentence; /* after the file's path; NULL = it is read */
} files[] = {
        { "",                                             NULL },
        { "pool: reserved\nplugin: {registration: watcher}\n", NULL },
        { "pool: [1]\n",                                  ":1: pool: must be a string" },
        { "pool: regular\nplugin:\n  cdi:\n    name: 7\n", ":4: plugin.cdi.name: is not known here" },
        { "pool: reserved\nresources: 7\n",               ":2: resources: must be " },
        { "pool: {\n",                                    ":" },
};
/* clang-format on */

static void both_readers_say_where_the_mistake_is(void **state)
{
        struct place *p = *state;
        const struct agent_options options = { .config = p->path };

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                struct err err = { 0 };
                char want[256];
                int r;

                put(p->path, files[i].content);
                r = configuration_load(&options, &p->configuration, &err);
                if ((r < 0) != (files[i].sentence != NULL))
                        fail_msg("%s: %d %s", files[i].content, r, err.msg);
                assert_true(text_format(want, sizeof(want), "%s%s", p->path,
                                        files[i].sentence != NULL ? files[i].sentence : ""));
                if (r < 0 && strncmp(err.msg, want, strlen(want)) != 0)
                        fail_msg("%s: %s, not %s", files[i].content, err.msg, want);
        }
        assert_string_equal(p->configuration.agent.pool, "reserved"); /* the last good one stands */
        assert_true(p->configuration.plugin->watcher);
}

static void without_a_file_all_is_by_default(void **state)
{
        struct place *p = *state;
        const struct agent_options none = { .compat = "dcgm" }, missing = { .config = p->path };
        struct err err = { 0 };

        assert_int_equal(configuration_load(&none, &p->configuration, &err), 0);
        assert_string_equal(p->configuration.agent.pool, "regular");
        assert_int_equal(p->configuration.agent.compat, COMPAT_DCGM);
        assert_int_equal(configuration_load(&missing, &p->configuration, &err), -ENOENT);
        assert_int_equal(strncmp(err.msg, "--config: ", 10), 0);
        assert_int_equal(p->configuration.agent.compat, COMPAT_DCGM);
}

static void on_changed(void *userdata)
{
        ((struct place *) userdata)->changes++;
}

static void wait_for_changes(struct place *p, size_t count)
{
        uint64_t until = loop_now_usec(p->loop) + patience_usec();

        while (p->changes < count && loop_now_usec(p->loop) < until)
                assert_true(sd_event_run(p->loop, 1000000) >= 0);
        assert_int_equal(p->changes, count);
}

static void a_file_that_is_replaced_is_a_change(void **state)
{
        struct place *p = *state;
        struct configuration_watch *watch = NULL;
        char aside[96];

        assert_int_equal(configuration_watch_new(p->loop, &p->log, p->path, on_changed, p, &watch, NULL), 0);
        put(p->path, "pool: a\n");
        wait_for_changes(p, 1);
        assert_true(text_format(aside, sizeof(aside), "%s/agent.yaml~", p->folder));
        put(aside, "pool: b\n"); /* no change, and an editor's way */
        assert_int_equal(rename(aside, p->path), 0);
        wait_for_changes(p, 2);
        put(p->other, ""); /* a ConfigMap's way */
        wait_for_changes(p, 3);
        assert_int_equal(kill(getpid(), SIGHUP), 0);
        wait_for_changes(p, 4);
        configuration_watch_free(watch);
        configuration_watch_free(NULL);
}

static void without_a_folder_a_signal_is_a_change(void **state)
{
        static const char *const paths[] = { "/none/such/agent.yaml", "agent.yaml", NULL };
        struct place *p = *state;

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                struct configuration_watch *watch = NULL;

                assert_int_equal(
                        configuration_watch_new(p->loop, &p->log, paths[i], on_changed, p, &watch, NULL), 0);
                assert_int_equal(kill(getpid(), SIGHUP), 0);
                wait_for_changes(p, i + 1);
                configuration_watch_free(watch);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(both_readers_say_where_the_mistake_is, set_up, tear_down),
                cmocka_unit_test_setup_teardown(without_a_file_all_is_by_default, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_file_that_is_replaced_is_a_change, set_up, tear_down),
                cmocka_unit_test_setup_teardown(without_a_folder_a_signal_is_a_change, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
