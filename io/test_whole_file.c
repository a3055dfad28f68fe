/* A file has its old content or the new, never a part; what fails leaves nothing beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/read_file.h"
#include "io/whole_file.h"

static char folder[] = "/tmp/remuda-whole-XXXXXX", path[64], part[64];

static int make_folder(void **state)
{
        (void) state;
        return mkdtemp(folder) != NULL && text_format(path, sizeof(path), "%s/file", folder) &&
                               text_format(part, sizeof(part), "%s/.file.part", folder)
                       ? 0
                       : -1;
}

static int remove_folder(void **state)
{
        (void) state;
        (void) unlink(path);
        (void) rmdir(part);
        return rmdir(folder);
}

static void assert_holds(const char *wanted)
{
        CLEANUP(free_p) char *bytes = NULL;

        assert_int_equal(read_file(path, 100, &bytes, NULL, NULL), 0);
        assert_string_equal(bytes, wanted);
}

static void it_is_the_old_or_the_new(void **state)
{
        struct err err = { 0 };
        struct stat st;

        (void) state;
        assert_int_equal(whole_file_write(path, "old", 3, 0600, WHOLE_FILE_SYNCED, &err), 0);
        assert_holds("old");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(whole_file_write(path, "newer", 5, 0600, 0, &err), 0);
        assert_holds("newer");
        assert_int_equal(access(part, F_OK), -1);

        assert_int_equal(mkdir(part, 0700), 0); /* no part can be written */
        assert_true(whole_file_write(path, "x", 1, 0600, 0, &err) < 0);
        assert_non_null(strstr(err.msg, part));
        assert_holds("newer");
}

static void what_cannot_have_its_name_leaves_nothing(void **state)
{
        struct err err = { 0 };

        (void) state;
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(whole_file_write(path, "x", 1, 0600, 0, &err), -EISDIR);
        assert_non_null(strstr(err.msg, path));
        assert_int_equal(access(part, F_OK), -1);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(whole_file_write("/nonexistent/file", "x", 1, 0600, 0, &err), -ENOENT);
}

static void a_file_is_read_whole_or_not_at_all(void **state)
{
        CLEANUP(free_p) char *bytes = NULL;
        struct err err = { 0 };
        size_t size = 0;

        (void) state;
        assert_int_equal(whole_file_write(path, "12345", 5, 0600, 0, &err), 0);
        assert_int_equal(read_file(path, 5, &bytes, &size, &err), 0);
        assert_int_equal(size, 5);
        free(TAKE(bytes));
        assert_int_equal(read_file(path, 4, &bytes, NULL, &err), -E2BIG);
        assert_true(text_ends_with(err.msg, " is larger than 4 bytes"));
        assert_int_equal(read_file(folder, 100, &bytes, NULL, &err), -EIO);
        assert_true(text_ends_with(err.msg, " cannot be read"));
        assert_int_equal(read_file("/nonexistent/file", 100, &bytes, NULL, &err), -ENOENT);
        assert_null(bytes);
        assert_int_equal(unlink(path), 0);
}

static void names_have_an_end(void **state)
{
        char long_name[WHOLE_FILE_PATH_BYTES + 1];
        struct whole_file file;
        struct err err = { 0 };

        (void) state;
        memset(long_name, 'x', sizeof(long_name) - 1);
        long_name[sizeof(long_name) - 1] = '\0';
        assert_int_equal(whole_file_write(long_name, "x", 1, 0600, 0, &err), -ENAMETOOLONG);
        assert_int_equal(whole_file_open(&file, "a record", long_name, &err), -EINVAL);
        assert_string_equal(err.msg, "a record: the file's name is too long");
        assert_int_equal(whole_file_open(&file, "a record", "/nonexistent/file", &err), -ENOENT);
        assert_true(text_starts_with(err.msg, "a record: file '/nonexistent/file.part': "));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_have_its_name_leaves_nothing),
                cmocka_unit_test(a_file_is_read_whole_or_not_at_all),
                cmocka_unit_test(names_have_an_end),
                cmocka_unit_test(it_is_the_old_or_the_new),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
