/* Tree: links, budgets, and machine files that are hostile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/tree/tree.h"
#include "agent/tree/tree_directory.h"
#include "agent/tree/tree_machine.h"
#include "agent/tree/tree_record.h"
#include "base/cleanup.h"

struct place {
        char directory[64];
};

/* The kernel's openat2(), or one as old kernels and some sandboxes have it: none. */
long __wrap_syscall(long number, long a, long b, long c, long d);
long __real_syscall(long number, long a, long b, long c, long d);
static bool openat2_is_refused;

long __wrap_syscall(long number, long a, long b, long c, long d)
{
        if (number != SYS_openat2 || !openat2_is_refused)
                return __real_syscall(number, a, b, c, d);
        errno = ENOSYS;
        return -1;
}

static int set_up(void **state)
{
        struct place *place = calloc(1, sizeof(*place));

        assert_non_null(place);
        (void) text_copy(place->directory, sizeof(place->directory), "/tmp/test_tree.XXXXXX");
        assert_non_null(mkdtemp(place->directory));
        *state = place;
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
        struct place *place = *state;

        (void) nftw(place->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        free(place);
        return 0;
}

static void put(const struct place *place, const char *name, const char *bytes, size_t size)
{
        char path[256];
        FILE *file;

        assert_true(text_format(path, sizeof(path), "%s/%s", place->directory, name));
        file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
}

static void make(const struct place *place, const char *name)
{
        char path[256];

        assert_true(text_format(path, sizeof(path), "%s/%s", place->directory, name));
        assert_int_equal(mkdir(path, 0755), 0);
}

static void point(const struct place *place, const char *name, const char *target)
{
        char path[256];

        assert_true(text_format(path, sizeof(path), "%s/%s", place->directory, name));
        assert_int_equal(symlink(target, path), 0);
}

/* The directory, with and without openat2(), and the machine that is recorded of it must say the same: every
 * check runs on all three. */
static void both(const struct place *place, void (*check)(const struct tree *tree))
{
        struct text text = { 0 };
        struct tree *tree = NULL, *machine = NULL;
        struct err err = { 0 };

        openat2_is_refused = true;
        assert_int_equal(tree_directory_open(place->directory, &tree, &err), 0);
        openat2_is_refused = false;
        check(tree);
        tree_close(tree);
        assert_int_equal(tree_directory_open(place->directory, &tree, &err), 0);
        check(tree);
        assert_int_equal(tree_record_begin(tree, &err), 0);
        check(tree);
        text_append(&text, "# remuda machine 1\n");
        assert_int_equal(tree_record_take(tree, false, &text, &err), 0);
        if (tree_machine_open_bytes("record", text.data, text.size_bytes, &machine, &err) < 0)
                fail_msg("%s\n%s", err.msg, text.data);
        check(machine);
        tree_close(tree);
        tree_close(machine);
        text_free(&text);
}

static void check_reads(const struct tree *tree)
{
        char buffer[64];
        int64_t number = 0;
        uint64_t hex = 0;

        assert_int_equal(tree_read_text(tree, "sys/value", buffer, sizeof(buffer)), 5);
        assert_string_equal(buffer, "hello");
        assert_int_equal(tree_read_text(tree, "/sys/value", buffer, 7), 5);
        assert_int_equal(tree_read_text(tree, "sys/value", buffer, 5), -E2BIG);
        assert_string_equal(buffer, "");
        assert_int_equal(tree_read_text(tree, "sys/binary", buffer, sizeof(buffer)), -EBADMSG);
        assert_int_equal(tree_read(tree, "sys/binary", buffer, sizeof(buffer)), 4);
        assert_memory_equal(buffer, "a\0b\xff", 4);
        assert_int_equal(tree_read_text(tree, "sys/empty", buffer, sizeof(buffer)), 0);
        assert_int_equal(tree_read_int64(tree, "sys/negative", &number), 0);
        assert_int_equal(number, -42);
        assert_int_equal(tree_read_hex64(tree, "sys/hex", &hex), 0);
        assert_int_equal(hex, 0x10de);
        assert_int_equal(tree_read_int64(tree, "sys/value", &number), -EINVAL);
        assert_int_equal(number, -42);
        assert_int_equal(tree_read_text(tree, "sys/nothing", buffer, sizeof(buffer)), -ENOENT);
        assert_int_equal(tree_read_text(tree, "sys", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(tree_read_text(tree, "sys/value/below", buffer, sizeof(buffer)) < 0, 1);
}

static void reads_are_bounded_and_strict(void **state)
{
        const struct place *place = *state;

        make(place, "sys");
        put(place, "sys/value", "hello\n", 6);
        put(place, "sys/binary", "a\0b\xff", 4);
        put(place, "sys/empty", "", 0);
        put(place, "sys/negative", "-42\n", 4);
        put(place, "sys/hex", "0x10de\n", 7);
        both(place, check_reads);
}

static void check_links(const struct tree *tree)
{
        char buffer[TREE_PATH_BYTES];

        assert_int_equal(tree_realpath(tree, "sys/bus/dev0", buffer, sizeof(buffer)),
                         strlen("sys/devices/a/dev0"));
        assert_string_equal(buffer, "sys/devices/a/dev0");
        assert_int_equal(tree_read_text(tree, "sys/bus/dev0/value", buffer, sizeof(buffer)), 1);
        assert_int_equal(tree_read_text(tree, "sys/absolute/value", buffer, sizeof(buffer)), 1);
        assert_int_equal(tree_link_name(tree, "sys/bus/dev0/driver", buffer, sizeof(buffer)), 6);
        assert_string_equal(buffer, "nvidia");
        assert_int_equal(tree_link_name(tree, "sys/bus/dev0/none", buffer, sizeof(buffer)), -ENOENT);
        assert_int_equal(tree_kind(tree, "sys/bus/dev0/driver"), TREE_ABSENT);
        assert_false(tree_has(tree, "sys/loop"));
        assert_true(tree_read(tree, "sys/loop", buffer, sizeof(buffer)) < 0);
        assert_true(tree_realpath(tree, "sys/loop", buffer, sizeof(buffer)) < 0);
        assert_true(tree_read(tree, "sys/deep/deep/deep/x", buffer, sizeof(buffer)) < 0);
        assert_int_equal(tree_read_text(tree, "sys/outside", buffer, sizeof(buffer)), -ENOENT);
        assert_int_equal(tree_read_text(tree, "../../../etc/passwd", buffer, sizeof(buffer)), -ENOENT);
        assert_int_equal(tree_kind(tree, "sys/bus/dev0"), TREE_DIRECTORY);
}

static void links_stay_inside_the_root(void **state)
{
        const struct place *place = *state;

        make(place, "sys");
        make(place, "sys/bus");
        make(place, "sys/devices");
        make(place, "sys/devices/a");
        make(place, "sys/devices/a/dev0");
        put(place, "sys/devices/a/dev0/value", "1\n", 2);
        point(place, "sys/bus/dev0", "../devices/a/dev0");
        point(place, "sys/absolute", "/sys/devices/a/dev0");
        point(place, "sys/devices/a/dev0/driver", "../../../bus/pci/drivers/nvidia");
        point(place, "sys/loop", "loop");
        point(place, "sys/deep", ".");
        point(place, "sys/outside", "../../../../../../etc/passwd");
        both(place, check_links);
}

static void check_lists(const struct tree *tree)
{
        struct tree_names names;

        assert_int_equal(tree_list(tree, "sys", &names), 0);
        assert_int_equal(names.count, 4);
        assert_string_equal(names.names[0], "a");
        assert_string_equal(names.names[1], "a-b");
        assert_string_equal(names.names[2], "a.c");
        assert_string_equal(names.names[3], "b");
        tree_names_free(&names);
        assert_int_equal(tree_list(tree, "sys/a", &names), 0);
        assert_int_equal(names.count, 1);
        tree_names_free(&names);
        assert_int_equal(tree_list(tree, "sys/b", &names), 0);
        assert_int_equal(names.count, 0);
        tree_names_free(&names);
        assert_int_equal(tree_list(tree, "sys/none", &names), -ENOENT);
        assert_true(tree_list(tree, "sys/a/x", &names) < 0);
}

static void lists_are_sorted_and_hide_dots(void **state)
{
        const struct place *place = *state;

        make(place, "sys");
        make(place, "sys/a");
        make(place, "sys/b");
        put(place, "sys/a/x", "1", 1);
        put(place, "sys/a-b", "1", 1);
        put(place, "sys/a.c", "1", 1);
        put(place, "sys/.hidden", "1", 1);
        both(place, check_lists);
}

/* The kernel cannot vouch for ".." while anything on the machine is renamed or mounted; containers do both.
 */
static void renames_elsewhere_hide_nothing(void **state)
{
        const struct place *place = *state;
        struct tree *tree;
        char from[96], to[96], ids[16];
        unsigned lost = 0;
        pid_t child;

        make(place, "sys");
        make(place, "sys/bus");
        make(place, "sys/devices");
        make(place, "sys/devices/0000:18:00.0");
        put(place, "sys/devices/0000:18:00.0/vendor", "0x10de\n", 7);
        put(place, "busy", "", 0);
        point(place, "sys/bus/0000:18:00.0", "../devices/0000:18:00.0");
        assert_true(text_format(from, sizeof(from), "%s/busy", place->directory));
        assert_true(text_format(to, sizeof(to), "%s/busier", place->directory));
        assert_int_equal(tree_directory_open(place->directory, &tree, NULL), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0)
                for (;;)
                        if (rename(from, to) < 0 || rename(to, from) < 0)
                                _exit(1);
        for (unsigned i = 0; i < 20000; i++) {
                lost += tree_read_text(tree, "sys/bus/0000:18:00.0/vendor", ids, sizeof(ids)) <= 0;
                tree_budget(tree, UINT64_MAX);
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        tree_close(tree);
        assert_int_equal(lost, 0);
}

static void fifos_and_nodes_are_never_opened(void **state)
{
        const struct place *place = *state;
        struct tree *tree = NULL;
        char path[128], buffer[16];

        make(place, "sys");
        (void) text_format(path, sizeof(path), "%s/sys/fifo", place->directory);
        assert_int_equal(mkfifo(path, 0600), 0);
        point(place, "sys/link", "fifo");
        assert_int_equal(tree_directory_open(place->directory, &tree, NULL), 0);
        assert_int_equal(tree_read(tree, "sys/fifo", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(tree_read(tree, "sys/link", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(tree_kind(tree, "sys/link"), TREE_OTHER);
        tree_close(tree);
}

static void what_is_no_file_is_not_read(void **state)
{
        const struct place *place = *state;
        struct tree *tree = NULL;
        struct tree_names names;
        char buffer[TREE_PATH_BYTES];

        assert_int_equal(tree_directory_open("/nothing/here", &tree, NULL), -ENOENT);
        memset(buffer, 'x', sizeof(buffer) - 1);
        buffer[sizeof(buffer) - 1] = '\0';
        assert_int_equal(tree_directory_open(buffer, &tree, NULL), -ENAMETOOLONG);
        make(place, "sys");
        put(place, "sys/value", "1\n", 2);
        point(place, "sys/link", "value");
        assert_int_equal(tree_directory_open(place->directory, &tree, NULL), 0);
        assert_int_equal(tree_read(tree, buffer, buffer, 1), -ENAMETOOLONG);
        assert_int_equal(tree_kind(tree, ""), TREE_DIRECTORY);
        assert_int_equal(tree_kind(tree, "sys"), TREE_DIRECTORY);
        assert_int_equal(tree_read(tree, "", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(tree_read(tree, "sys/", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(tree_read(tree, "sys/.", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(tree_read(tree, "sys/..", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(tree_list(tree, "sys/value", &names), -EINVAL);
        assert_int_equal(tree_list(tree, "/", &names), 0);
        assert_int_equal(names.count, 1);
        tree_names_free(&names);
        assert_int_equal(tree_link_name(tree, "sys/link", buffer, sizeof(buffer)), 5);
        assert_int_equal(tree_link_name(tree, "none/link", buffer, sizeof(buffer)), -ENOENT);
        assert_int_equal(tree_realpath(tree, "sys/link", buffer, sizeof(buffer)), 9);
        tree_close(tree);
        assert_int_equal(tree_directory_open("/", &tree, NULL), 0);
        assert_true(tree_is_live(tree));
        assert_int_equal(tree_kind(tree, "dev/null"), TREE_CHARACTER);
        assert_int_equal(tree_read(tree, "dev/null", buffer, sizeof(buffer)), -EINVAL);
        assert_true(tree_read(tree, "proc/self/status", buffer, sizeof(buffer)) > 0);
        tree_close(tree);
}

static void a_directory_past_the_limit_is_refused(void **state)
{
        const struct place *place = *state;
        struct tree_names names;
        struct tree *tree = NULL;
        char path[128];
        int fd;

        make(place, "big");
        for (unsigned i = 0; i <= TREE_NAMES_MAX; i++) {
                (void) text_format(path, sizeof(path), "%s/big/%u", place->directory, i);
                fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                assert_true(fd >= 0);
                (void) close(fd);
                if (i + 1 == TREE_NAMES_MAX) {
                        assert_int_equal(tree_directory_open(place->directory, &tree, NULL), 0);
                        assert_int_equal(tree_list(tree, "big", &names), 0);
                        assert_int_equal(names.count, TREE_NAMES_MAX);
                        tree_names_free(&names);
                }
        }
        assert_int_equal(tree_list(tree, "big", &names), -E2BIG);
        tree_close(tree);
}

static void a_spent_budget_answers_nothing(void **state)
{
        const struct place *place = *state;
        struct tree *tree = NULL;
        char buffer[16];

        put(place, "x", "1\n", 2);
        assert_int_equal(tree_directory_open(place->directory, &tree, NULL), 0);
        tree_budget(tree, 2);
        assert_int_equal(tree_read_text(tree, "x", buffer, sizeof(buffer)), 1);
        assert_int_equal(tree_kind(tree, "x"), TREE_FILE);
        assert_false(tree_exhausted(tree));
        assert_int_equal(tree_read_text(tree, "x", buffer, sizeof(buffer)), -EDQUOT);
        assert_true(tree_exhausted(tree));
        tree_close(tree);
}

/* clang-format off */
static const struct {
        const char *what, *lines, *why;
} broken[] = {
        { "no head",              "/x = 1\n",                                    "does not begin with" },
        { "relative path",        "# remuda machine 1\nx = 1\n",                 "line 2" },
        { "dots",                 "# remuda machine 1\n/x/../y = 1\n",           "not a clean" },
        { "double slash",         "# remuda machine 1\n/x//y = 1\n",             "not a clean" },
        { "the root itself",      "# remuda machine 1\n/\n",                     "not a clean" },
        { "nothing behind it",    "# remuda machine 1\n/x\n",                    "after a path comes" },
        { "odd hex",              "# remuda machine 1\n/x hex abc\n",            "even number" },
        { "bad hex",              "# remuda machine 1\n/x hex zz\n",             "even number" },
        { "content of nothing",   "# remuda machine 1\n\tx\n",                   "belongs to no" },
        { "twice",                "# remuda machine 1\n/x = 1\n/x = 2\n",        "comes twice" },
        { "below a file",         "# remuda machine 1\n/x = 1\n/x/y = 2\n",      "lies below" },
        { "a node without minor", "# remuda machine 1\n/dev/x char 1\n",         "two numbers" },
        { "a bad escape",         "# remuda machine 1\n/x%zz = 1\n",             "not a clean" },
        { "an escaped NUL",       "# remuda machine 1\n/x%00 = 1\n",             "not a clean" },
        { "a link to nothing",    "# remuda machine 1\n/x -> \n",                "needs a target" },
};
/* clang-format on */

static void broken_machine_files_are_refused_with_the_line(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
                struct tree *tree = NULL;
                struct err err = { 0 };

                if (tree_machine_open_bytes("f", broken[i].lines, strlen(broken[i].lines), &tree, &err) == 0)
                        fail_msg("%s: accepted", broken[i].what);
                if (strstr(err.msg, broken[i].why) == NULL)
                        fail_msg("%s: '%s' does not say '%s'", broken[i].what, err.msg, broken[i].why);
        }
}

static void masks_keep_form_and_equality(void **state)
{
        static const char lines[] =
                "# remuda machine 1\n/sys/serial = 2BJ2300049\n/sys/unique_id = 0x1234abcd\n"
                "/sys/other/serial = 2BJ2300049\n/sys/plain = 2BJ2300049\n";
        struct tree *tree = NULL, *masked = NULL;
        struct text text = { 0 };
        char a[64], b[64];

        (void) state;
        assert_int_equal(tree_machine_open_bytes("f", lines, strlen(lines), &tree, NULL), 0);
        assert_int_equal(tree_record_begin(tree, NULL), 0);
        assert_int_equal(tree_read_text(tree, "sys/serial", a, sizeof(a)), 10);
        assert_int_equal(tree_read_text(tree, "sys/other/serial", a, sizeof(a)), 10);
        assert_int_equal(tree_read_text(tree, "sys/unique_id", a, sizeof(a)), 10);
        assert_int_equal(tree_read_text(tree, "sys/plain", a, sizeof(a)), 10);
        text_append(&text, "# remuda machine 1\n");
        assert_int_equal(tree_record_take(tree, true, &text, NULL), 0);
        assert_int_equal(tree_machine_open_bytes("g", text.data, text.size_bytes, &masked, NULL), 0);
        assert_int_equal(tree_read_text(masked, "sys/serial", a, sizeof(a)), 10);
        assert_string_not_equal(a, "2BJ2300049");
        assert_int_equal(tree_read_text(masked, "sys/other/serial", b, sizeof(b)), 10);
        assert_string_equal(a, b);
        assert_int_equal(tree_read_text(masked, "sys/unique_id", a, sizeof(a)), 10);
        assert_int_equal(strncmp(a, "0x", 2), 0);
        assert_string_not_equal(a, "0x1234abcd");
        assert_int_equal(tree_read_text(masked, "sys/plain", a, sizeof(a)), 10);
        assert_string_equal(a, "2BJ2300049");
        tree_close(tree);
        tree_close(masked);
        text_free(&text);
}

static void an_expanded_machine_says_the_same(void **state)
{
        static const char lines[] = "# remuda machine 1\n/sys/a/value = 1\n/sys/b -> a\n/sys/empty/\n"
                                    "/dev/x char 1 3\n/proc/text |\n\tone\n\ttwo\n/sys/raw hex 00ff\n"
                                    "/sys/with%20blank = 7\n";
        const struct place *place = *state;
        struct tree *machine = NULL, *tree = NULL;
        char path[128], buffer[32];
        struct err err = { 0 };

        assert_int_equal(tree_machine_open_bytes("f", lines, strlen(lines), &machine, &err), 0);
        (void) text_format(path, sizeof(path), "%s/expanded", place->directory);
        assert_int_equal(tree_record_expand(machine, path, &err), 0);
        assert_int_equal(tree_record_expand(machine, path, &err) < 0, 1); /* not empty any more */
        assert_int_equal(tree_directory_open(path, &tree, &err), 0);
        assert_int_equal(tree_read_text(tree, "sys/b/value", buffer, sizeof(buffer)), 1);
        assert_int_equal(tree_kind(tree, "sys/empty"), TREE_DIRECTORY);
        assert_int_equal(tree_kind(tree, "dev/x"), TREE_FILE); /* a stand-in */
        assert_int_equal(tree_kind(machine, "dev/x"), TREE_CHARACTER);
        assert_int_equal(tree_read(tree, "proc/text", buffer, sizeof(buffer)), 8);
        assert_memory_equal(buffer, "one\ntwo\n", 8);
        assert_int_equal(tree_read(tree, "sys/raw", buffer, sizeof(buffer)), 2);
        assert_int_equal(tree_read_text(tree, "sys/with blank", buffer, sizeof(buffer)), 1);
        tree_close(machine);
        tree_close(tree);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(reads_are_bounded_and_strict, set_up, tear_down),
                cmocka_unit_test_setup_teardown(links_stay_inside_the_root, set_up, tear_down),
                cmocka_unit_test_setup_teardown(lists_are_sorted_and_hide_dots, set_up, tear_down),
                cmocka_unit_test_setup_teardown(renames_elsewhere_hide_nothing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(fifos_and_nodes_are_never_opened, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_is_no_file_is_not_read, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_directory_past_the_limit_is_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_spent_budget_answers_nothing, set_up, tear_down),
                cmocka_unit_test(broken_machine_files_are_refused_with_the_line),
                cmocka_unit_test(masks_keep_form_and_equality),
                cmocka_unit_test_setup_teardown(an_expanded_machine_says_the_same, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
