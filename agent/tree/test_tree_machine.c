/* Tree machine: what a machine file may hold and what not, names at their limits, and what a record keeps. */
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
#include <sys/stat.h>
#include <unistd.h>

#include "agent/tree/tree.h"
#include "agent/tree/tree_machine.h"
#include "agent/tree/tree_record.h"
#include "base/cleanup.h"

#define HEAD "# remuda machine 1\n"

static struct tree *machine_of(const char *lines)
{
        struct tree *tree = NULL;
        struct err err = { 0 };

        if (tree_machine_open_bytes("f", lines, strlen(lines), &tree, &err) < 0)
                fail_msg("%s", err.msg);
        return tree;
}

static const char *run_of(char c, size_t length)
{
        static char runs[4][2048];
        static unsigned next;
        char *run = runs[next++ % 4];

        memset(run, c, length);
        run[length] = '\0';
        return run;
}

/* clang-format off */
static const struct {
        const char *what, *lines, *why;
} refused[] = {
        { "another head",           "# remuda machine 2\n/x = 1\n", "does not begin with" },
        { "a half escape",          HEAD "/x%4 = 1\n",              "not a clean" },
        { "an escape past F",       HEAD "/x%G0 = 1\n",             "not a clean" },
        { "an escape before 0",     HEAD "/x%/0 = 1\n",             "not a clean" },
        { "an escape past 9",       HEAD "/x%:0 = 1\n",             "not a clean" },
        { "one dot",                HEAD "/x/. = 1\n",              "not a clean" },
        { "an unclean lone entry",  HEAD "/x/../ |\n",              "not a clean" },
        { "words for a major",      HEAD "/dev/x char a 1\n",       "two numbers" },
        { "words for a minor",      HEAD "/dev/x block 1 b\n",      "two numbers" },
        { "a major past 32 bits",   HEAD "/dev/x char 4294967296 1\n", "two numbers" },
        { "a minor past 32 bits",   HEAD "/dev/x char 1 4294967296\n", "two numbers" },
        { "below a device",         HEAD "/x char 1 2\n/x/y/z = 2\n", "lies below" },
};

/* What is read at a path, and as what; NULL: it is refused with -EINVAL. */
static const struct {
        const char *what, *lines, *path, *value;
        enum tree_kind kind;
} taken[] = {
        { "no newline at the end",   HEAD "/x = 1",                     "x",    "1",     TREE_FILE },
        { "an empty file",           HEAD "/x hex\n",                   "x",    "",      TREE_FILE },
        { "an empty line",           HEAD "/x =\n",                     "x",    "",      TREE_FILE },
        { "lines without a line",    HEAD "/x |\n/y = 1\n",             "x",    "",      TREE_FILE },
        { "a FIFO",                  HEAD "/x other\n",                 "x",    NULL,    TREE_OTHER },
        { "a block device",          HEAD "/x block 8 0\n",             "x",    NULL,    TREE_BLOCK },
        { "a directory that has",    HEAD "/x/y = 1\n/x/\n",            "x/y",  "1",     TREE_FILE },
        { "the directory itself",    HEAD "/x/y = 1\n/x/\n",            "x",    NULL,    TREE_DIRECTORY },
        { "escapes of both cases",   HEAD "/%4a%4B%c3%A9 = 1\n",        "JK\xc3\xa9", "1", TREE_FILE },
        { "hex of both cases",       HEAD "/x hex 4a4B4c4D\n",          "x",    "JKLM",  TREE_FILE },
        { "names that begin alike",  HEAD "/a-b/c = 2\n/a/b = 1\n/ab = 3\n/a.b = 4\n", "a-b/c", "2", TREE_FILE },
        { "a comment in lines",      HEAD "/x |\n\tone\n# no content\n/y = 2\n", "x", "one", TREE_FILE },
        { "a blank line",            HEAD "\n/x = 1\n\n",               "x",    "1",     TREE_FILE },
        { "a dot name",              HEAD "/.x/y = 1\n",                ".x/y", "1",     TREE_FILE },
        { "a link to a name",        HEAD "/x -> y\n/y = 1\n",          "x",    "1",     TREE_FILE },
};
/* clang-format on */

static void lines_are_taken_or_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                struct tree *tree = NULL;
                struct err err = { 0 };

                if (tree_machine_open_bytes("f", refused[i].lines, strlen(refused[i].lines), &tree, &err) !=
                            -EBADMSG ||
                    strstr(err.msg, refused[i].why) == NULL)
                        fail_msg("%s: '%s' does not say '%s'", refused[i].what, err.msg, refused[i].why);
        }
        for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
                struct tree *tree = machine_of(taken[i].lines);
                char buffer[64];
                ssize_t size = tree_read_text(tree, taken[i].path, buffer, sizeof(buffer));

                if (tree_kind(tree, taken[i].path) != taken[i].kind)
                        fail_msg("%s: kind %d", taken[i].what, tree_kind(tree, taken[i].path));
                if (taken[i].value == NULL ? size != -EINVAL
                                           : size < 0 || strcmp(buffer, taken[i].value) != 0)
                        fail_msg("%s: %zd '%s'", taken[i].what, size, buffer);
                tree_close(tree);
        }
}

static void a_nul_and_what_is_too_long_are_refused(void **state)
{
        static const char nul[] = HEAD "/x = 1\0\n";
        struct text text = { 0 };
        struct err err = { 0 };
        struct tree *tree = NULL;

        (void) state;
        assert_int_equal(tree_machine_open_bytes("f", nul, sizeof(nul) - 1, &tree, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "NUL"));
        text_printf(&text, HEAD "/%s = 1\n", run_of('n', 256));
        assert_int_equal(tree_machine_open_bytes("f", text.data, text.size_bytes, &tree, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "not a clean"));
        text_free(&text);
        text_printf(&text, HEAD "/x -> %s\n", run_of('n', TREE_PATH_BYTES));
        assert_int_equal(tree_machine_open_bytes("f", text.data, text.size_bytes, &tree, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "needs a target"));
        text_free(&text);
        assert_int_equal(tree_machine_open_bytes("f", "", ((size_t) 16 << 20) + 1, &tree, &err), -E2BIG);
        for (unsigned i = 0; i < 200001; i++)
                text_printf(&text, i == 0 ? HEAD : "/%u/\n", i);
        tree_close(machine_of(text.data));
        text_append(&text, "/more/\n");
        assert_int_equal(tree_machine_open_bytes("f", text.data, text.size_bytes, &tree, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "more entries"));
        text_free(&text);
}

static void only_a_regular_file_is_a_machine_file(void **state)
{
        char path[] = "/tmp/test_tree_machine.XXXXXX";
        int fd = mkstemp(path);
        struct tree *tree = NULL;
        struct err err = { 0 };

        (void) state;
        assert_true(fd >= 0);
        assert_int_equal(tree_machine_open(path, &tree, &err), -EBADMSG);
        assert_int_equal(ftruncate(fd, ((off_t) 16 << 20) + 1), 0);
        assert_int_equal(tree_machine_open(path, &tree, &err), -E2BIG);
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(write(fd, HEAD "/x = 1\n", strlen(HEAD "/x = 1\n")), strlen(HEAD "/x = 1\n"));
        assert_int_equal(tree_machine_open(path, &tree, &err), 0);
        assert_string_equal(tree_root(tree), path);
        assert_false(tree_is_live(tree));
        tree_close(tree);
        tree_close(NULL);
        (void) close(fd);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(tree_machine_open(path, &tree, &err), -ENOENT);
        assert_int_equal(tree_machine_open("/tmp", &tree, &err), -EINVAL);
}

static void the_root_is_a_directory_of_names(void **state)
{
        struct tree *tree = machine_of(HEAD "/x = 1\n/.hidden = 2\n/a/b/c = 3\n/a/b/d = 4\n/f other\n");
        struct tree_names names;
        char buffer[64];

        (void) state;
        assert_int_equal(tree_kind(tree, ""), TREE_DIRECTORY);
        assert_int_equal(tree_kind(tree, "."), TREE_DIRECTORY);
        assert_int_equal(tree_list(tree, "/", &names), 0);
        assert_int_equal(names.count, 3);
        assert_string_equal(names.names[0], "a");
        assert_string_equal(names.names[1], "f");
        assert_string_equal(names.names[2], "x");
        tree_names_free(&names);
        assert_int_equal(tree_list(tree, "a/../a/./b", &names), 0);
        assert_int_equal(names.count, 2);
        tree_names_free(&names);
        assert_int_equal(tree_list(tree, "x", &names), -EINVAL);
        assert_int_equal(tree_read(tree, "", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(tree_read(tree, "f", buffer, sizeof(buffer)), -EINVAL);
        assert_int_equal(tree_read(tree, "a/.b", buffer, sizeof(buffer)), -ENOENT);
        tree_close(tree);
        tree = machine_of(HEAD);
        assert_int_equal(tree_list(tree, "", &names), 0);
        assert_int_equal(names.count, 0);
        tree_names_free(&names);
        tree_close(tree);
}

static void links_are_named_and_bounded(void **state)
{
        struct text text = { 0 };
        struct tree *tree;
        char buffer[TREE_PATH_BYTES];
        const char *n = run_of('n', 250), *m = run_of('m', 400);

        (void) state;
        text_printf(&text, HEAD "/long -> %s/%s/%s/%s\n/%s/%s/%s/%s/x = 1\n", n, n, n, n, n, n, n, n);
        text_printf(&text, "/more -> long/%s/%s\n/loop -> loop\n/near -> x\n/away -> ../a/b\n", n, n);
        text_append(&text, "/again -> more/../more/../more/../more\n/x = 1\n/dir/y = 1\n");
        tree = machine_of(text.data);
        text_free(&text);
        assert_int_equal(tree_link_name(tree, "//near", buffer, sizeof(buffer)), 1);
        assert_string_equal(buffer, "x");
        assert_int_equal(tree_link_name(tree, "away", buffer, sizeof(buffer)), 1);
        assert_string_equal(buffer, "b");
        assert_int_equal(tree_link_name(tree, "away", buffer, 1), -E2BIG);
        assert_int_equal(tree_link_name(tree, "dir", buffer, sizeof(buffer)), 3);
        assert_string_equal(buffer, "dir");
        assert_int_equal(tree_link_name(tree, "loop/x", buffer, sizeof(buffer)), -ELOOP);
        assert_int_equal(tree_link_name(tree, run_of('p', TREE_PATH_BYTES), buffer, sizeof(buffer)),
                         -ENAMETOOLONG);
        assert_true(text_format(buffer, sizeof(buffer), "long/%s", m));
        assert_int_equal(tree_link_name(tree, buffer, buffer, sizeof(buffer)), -ENAMETOOLONG);
        assert_int_equal(tree_realpath(tree, "long/x", buffer, sizeof(buffer)), 4 * 250 + 3 + 2);
        assert_int_equal(tree_realpath(tree, "long/x", buffer, 64), -ENAMETOOLONG);
        assert_int_equal(tree_realpath(tree, run_of('p', TREE_PATH_BYTES), buffer, sizeof(buffer)),
                         -ENAMETOOLONG);
        assert_true(text_format(buffer, sizeof(buffer), "long/%s", m));
        assert_int_equal(tree_read(tree, buffer, buffer, sizeof(buffer)), -ENAMETOOLONG);
        assert_true(text_format(buffer, sizeof(buffer), "more/%s/%s", m, m));
        assert_true(tree_read(tree, buffer, buffer, sizeof(buffer)) < 0);
        tree_budget(tree, 0);
        assert_int_equal(tree_link_name(tree, "near", buffer, sizeof(buffer)), -EDQUOT);
        assert_int_equal(tree_realpath(tree, "near", buffer, sizeof(buffer)), -EDQUOT);
        assert_int_equal(tree_kind(tree, "near"), TREE_ABSENT);
        tree_close(tree);
}

static void a_record_keeps_every_kind(void **state)
{
        static const char lines[] = HEAD "/%20%25%7f = 1\n/block block 8 0\n/char char 1 3\n/dir/\n"
                                         "/fifo other\n/lines |\n\ta\t1\n\tb\n/long hex 0a\n"
                                         "/raw hex 61017f0a\n/raw2 hex 617f0a\n/tab = a\tb\n";
        struct tree *tree = machine_of(lines), *again;
        struct text text = { 0 };
        struct tree_names names;
        char buffer[64];

        (void) state;
        assert_int_equal(tree_record_take(tree, false, &text, NULL), -ENOMEM);
        assert_int_equal(tree_record_begin(tree, NULL), 0);
        assert_int_equal(tree_list(tree, "", &names), 0);
        for (size_t i = 0; i < names.count; i++) {
                (void) tree_kind(tree, names.names[i]);
                (void) tree_read(tree, names.names[i], buffer, 1);
                (void) tree_read(tree, names.names[i], buffer, sizeof(buffer));
                (void) tree_read(tree, names.names[i], buffer, 2);
        }
        tree_names_free(&names);
        assert_int_equal(tree_kind(tree, "absent"), TREE_ABSENT);
        text_append(&text, HEAD);
        assert_int_equal(tree_record_take(tree, false, &text, NULL), 0);
        again = machine_of(text.data);
        assert_int_equal(tree_kind(again, "block"), TREE_BLOCK);
        assert_int_equal(tree_kind(again, "char"), TREE_CHARACTER);
        assert_int_equal(tree_kind(again, "fifo"), TREE_OTHER);
        assert_int_equal(tree_kind(again, "dir"), TREE_DIRECTORY);
        assert_int_equal(tree_read_text(again, " %\x7f", buffer, sizeof(buffer)), 1);
        assert_int_equal(tree_read(again, "raw", buffer, sizeof(buffer)), 4);
        assert_memory_equal(buffer, "a\x01\x7f\n", 4);
        assert_int_equal(tree_read(again, "raw2", buffer, sizeof(buffer)), 3);
        assert_int_equal(tree_read(again, "lines", buffer, sizeof(buffer)), 6);
        assert_memory_equal(buffer, "a\t1\nb\n", 6);
        tree_close(tree);
        tree_close(again);
        text_free(&text);
}

static void masks_reach_what_is_a_serial_number(void **state)
{
        static const char lines[] = HEAD "/gpu |\n\tGPU UUID: \t GPU-12ab\n\tVideo BIOS: 90.1\n"
                                         "/raw/serial hex 00313233\n/serial = {Z1} 7 0xyz x\n";
        struct tree *tree = machine_of(lines), *masked;
        struct text text = { 0 };
        char buffer[64];

        (void) state;
        assert_int_equal(tree_record_begin(tree, NULL), 0);
        assert_true(tree_read(tree, "gpu", buffer, sizeof(buffer)) > 0);
        assert_true(tree_read(tree, "serial", buffer, sizeof(buffer)) > 0);
        assert_true(tree_read(tree, "raw/serial", buffer, sizeof(buffer)) > 0);
        text_append(&text, HEAD);
        assert_int_equal(tree_record_take(tree, true, &text, NULL), 0);
        masked = machine_of(text.data);
        assert_true(tree_read_text(masked, "gpu", buffer, sizeof(buffer)) > 0);
        assert_non_null(strstr(buffer, "GPU-"));
        assert_null(strstr(buffer, "12ab"));
        assert_null(strstr(buffer, "90.1"));
        assert_int_equal(tree_read_text(masked, "serial", buffer, sizeof(buffer)), 13);
        assert_int_equal(buffer[0], '{');
        assert_null(strstr(buffer, "Z1"));
        assert_int_equal(tree_read(masked, "raw/serial", buffer, sizeof(buffer)), 4);
        assert_memory_equal(buffer,
                            "\0"
                            "123",
                            4);
        tree_close(tree);
        tree_close(masked);
        text_free(&text);
}

static void a_machine_is_written_where_nothing_is(void **state)
{
        char directory[] = "/tmp/test_tree_machine.XXXXXX", path[128];
        struct tree *tree = machine_of(HEAD "/a/b/c = 1\n/a/b/\n/l -> a\n/n block 8 0\n");
        struct err err = { 0 };
        struct stat st;

        (void) state;
        assert_non_null(mkdtemp(directory));
        assert_true(text_format(path, sizeof(path), "%s/none/here", directory));
        assert_int_equal(tree_record_expand(tree, path, &err), -ENOENT);
        assert_int_equal(tree_record_expand(tree, directory, &err), 0); /* empty is as good as absent */
        for (const char *const *part = (const char *const[]){ "l", "n", "a/b/c", "a/b", "a", NULL };
             *part != NULL; part++) {
                assert_true(text_format(path, sizeof(path), "%s/%s", directory, *part));
                assert_int_equal(lstat(path, &st), 0);
                assert_int_equal(remove(path), 0);
        }
        assert_int_equal(rmdir(directory), 0);
        tree_close(tree);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_are_taken_or_refused),
                cmocka_unit_test(a_nul_and_what_is_too_long_are_refused),
                cmocka_unit_test(only_a_regular_file_is_a_machine_file),
                cmocka_unit_test(the_root_is_a_directory_of_names),
                cmocka_unit_test(links_are_named_and_bounded),
                cmocka_unit_test(a_record_keeps_every_kind),
                cmocka_unit_test(masks_reach_what_is_a_serial_number),
                cmocka_unit_test(a_machine_is_written_where_nothing_is),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
