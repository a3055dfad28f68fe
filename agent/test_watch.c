/* Watch: by which way a change of a tree, of a machine file and of a live machine is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tree/tree_directory.h"
#include "agent/watch.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "tests/support/patience.h"

#define DEVICES "sys/bus/pci/devices"

/* A machine in a folder, and how often it was said that it has changed, by each way. */
struct machine {
        char root[64];
        struct tree *tree;
        sd_event *loop;
        struct watch *watch;
        struct inventory inventory;
        unsigned told, inotify, look, poll;
        unsigned before; /* it was told so often when the last change began */
};

static const char *path_of(const struct machine *m, const char *name)
{
        static char path[256];

        assert_true(text_format(path, sizeof(path), "%s/%s", m->root, name));
        return path;
}

static void put(const struct machine *m, const char *name, const char *content)
{
        FILE *file = fopen(path_of(m, name), "we");

        assert_non_null(file);
        assert_true(fputs(content, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void folder(const struct machine *m, const char *name)
{
        assert_int_equal(mkdir(path_of(m, name), 0700), 0);
}

static void on_changed(void *userdata, const char *why)
{
        struct machine *m = userdata;

        m->told++;
        m->inotify += strcmp(why, "inotify") == 0;
        m->look += strcmp(why, "look") == 0;
        m->poll += strcmp(why, "poll") == 0;
}

static int set_up(void **state)
{
        static const char *const folders[] = {
                "sys",  "sys/bus", "sys/bus/pci", DEVICES,       DEVICES "/a",
                "proc", "dev",     "drivers",     "drivers/one", "drivers/two"
        };
        struct machine *m = calloc(1, sizeof(*m));
        struct device *device;

        assert_non_null(m);
        (void) text_copy(m->root, sizeof(m->root), "/tmp/test_watch.XXXXXX");
        assert_non_null(mkdtemp(m->root));
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
                folder(m, folders[i]);
        put(m, DEVICES "/a/config", "1234");
        assert_int_equal(symlink("../../../../../drivers/one", path_of(m, DEVICES "/a/driver")), 0);
        assert_int_equal(tree_directory_open(m->root, &m->tree, NULL), 0);
        assert_int_equal(loop_new(&m->loop, NULL), 0);
        inventory_init(&m->inventory);
        device = inventory_add_device(&m->inventory);
        assert_non_null(device);
        (void) text_copy(device->pci, sizeof(device->pci), "a");
        assert_non_null(inventory_add_device(&m->inventory)); /* of no address: it is not looked at */
        *state = m;
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
        (void) st;
        (void) type;
        (void) walk;
        return remove(path);
}

static int tear_down(void **state)
{
        struct machine *m = *state;

        watch_free(m->watch);
        inventory_free(&m->inventory);
        tree_close(m->tree);
        assert_null(sd_event_unref(m->loop));
        (void) nftw(m->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        free(m);
        return 0;
}

static void begin(struct machine *m, const char *path, bool is_file, unsigned period_ms)
{
        const struct watch_options options = { .path = path,
                                               .is_file = is_file,
                                               .tree = m->tree,
                                               .period_ms = period_ms,
                                               .changed = on_changed,
                                               .userdata = m };

        assert_int_equal(watch_new(m->loop, &options, &m->watch, NULL), 0);
}

/* After a change that began when `told` was `before`: it is told, by itself or with the next. */
static void wait_for(struct machine *m, const char *what)
{
        uint64_t until = loop_now_usec(m->loop) + patience_usec();

        while (m->told == m->before && loop_now_usec(m->loop) < until)
                assert_true(sd_event_run(m->loop, 1000000) >= 0);
        if (m->told == m->before)
                fail_msg("%s: nobody has noticed", what);
        m->before = m->told;
}

static void a_tree_is_watched_and_what_appears_in_it_too(void **state)
{
        struct machine *m = *state;

        begin(m, m->root, false, 60000);
        assert_string_equal(watch_mode(m->watch), "inotify");
        put(m, DEVICES "/a/config", "5678");
        wait_for(m, "a file");
        folder(m, DEVICES "/b");
        wait_for(m, "a folder");
        put(m, DEVICES "/b/config", "1234");
        wait_for(m, "a file of a new folder");
        assert_int_equal(unlink(path_of(m, DEVICES "/b/config")), 0);
        wait_for(m, "a file that has left");
        assert_int_equal(m->look + m->poll, 0);
}

static void a_tree_that_is_watched_is_looked_at_too(void **state)
{
        struct machine *m = *state;

        begin(m, m->root, false, 5);
        wait_for(m, "the first look"); /* at each fifth time */
        assert_int_equal(m->poll, 0);
}

static void a_machine_file_is_watched(void **state)
{
        struct machine *m = *state;
        char path[96];

        put(m, "machine", "1\n");
        assert_true(text_copy(path, sizeof(path), path_of(m, "machine")));
        begin(m, path, true, 60000);
        assert_string_equal(watch_mode(m->watch), "inotify");
        put(m, "machine", "2\n");
        wait_for(m, "other content");
        put(m, "machine~", "3\n");
        assert_int_equal(rename(path_of(m, "machine~"), path), 0);
        wait_for(m, "another file");
        put(m, "machine", "4\n"); /* of which it knows as well */
        wait_for(m, "its content");
}

static void what_cannot_be_watched_is_read_again_and_again(void **state)
{
        struct machine *m = *state;

        begin(m, "/none/such", true, 5);
        assert_string_equal(watch_mode(m->watch), "poll");
        wait_for(m, "once");
        wait_for(m, "and again");
        assert_int_equal(m->inotify + m->look, 0);
}

static void what_was_not_read_yet_is_read(void **state)
{
        struct machine *m = *state;

        tree_close(m->tree);
        m->tree = NULL;
        begin(m, m->root, false, 5);
        wait_for(m, "no tree");
        assert_int_equal(m->inotify + m->look, 0);
        watch_free(NULL);
}

/* A live machine sends events, which may come for reasons of its own; this test's tree sends none. */
static void a_live_machine_is_looked_at(void **state)
{
        struct machine *m = *state;

        assert_false(watch_is_live(m->root));
        if (!watch_is_live("/"))
                skip(); /* no /sys */
        begin(m, "/", false, 5);
        assert_int_equal(watch_tree(m->watch, m->tree, &m->inventory), 0);
        wait_for(m, "the first look");
        put(m, DEVICES "/a/config", "\xff\xff\xff\xff");
        wait_for(m, "it has fallen off");
        assert_int_equal(unlink(path_of(m, DEVICES "/a/driver")), 0);
        wait_for(m, "no driver");
        assert_int_equal(symlink("../../../../../drivers/two", path_of(m, DEVICES "/a/driver")), 0);
        wait_for(m, "another driver");
        assert_int_equal(unlink(path_of(m, DEVICES "/a/config")), 0);
        wait_for(m, "no configuration space");
        put(m, "dev/null0", "");
        wait_for(m, "a device file");
        m->inventory.device_count = 0;
        assert_int_equal(watch_tree(m->watch, m->tree, &m->inventory), 0);
        wait_for(m, "other devices");
        assert_int_equal(m->inotify + m->poll, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_tree_is_watched_and_what_appears_in_it_too, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_tree_that_is_watched_is_looked_at_too, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_machine_file_is_watched, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_cannot_be_watched_is_read_again_and_again, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(what_was_not_read_yet_is_read, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_live_machine_is_looked_at, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
